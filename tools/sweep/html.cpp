#include "tools/output/html.h"
#include "framework/support/text.h"
#include "tools/sweep/page.h"
#include "tools/sweep/writers.h"

namespace assay::sweep {

// Nothing of the sweep stands in the page as it is: the title is escaped, and in the data, which
// are JSON, no "<" is left that could begin an end of their element. The policy keeps the page from
// loading or sending anything, whatever is in them.
void write_html(const Plan& plan, const Results& results, Sink& sink) {
    const std::string title = html_text(printable(join(plan.program(), " ")));
    sink.write(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
        "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n"
        "<title>" +
        title + " - assay sweep</title>\n<style>\n");
    for (const std::string_view piece : kStyle) sink.write(piece);
    sink.write(
        "</style>\n</head>\n<body>\n<div class=\"top\"><div><h1>" + title +
        "</h1></div></div>\n<main id=\"app\"></main>\n<noscript>This page draws its plots by "
        "JavaScript.</noscript>\n<script type=\"application/json\" id=\"data\">");
    Sink data(
        [&](std::string_view bytes) {
            for (const char byte : bytes)
                sink.write(byte == '<' ? std::string_view("\\u003c") : std::string_view(&byte, 1));
        },
        Compress::kByName);
    write_json(plan, results, data);
    data.finish();
    sink.write("</script>\n<script>\n");
    for (const std::string_view piece : kScript) sink.write(piece);
    sink.write("</script>\n</body>\n</html>\n");
}

}  // namespace assay::sweep
