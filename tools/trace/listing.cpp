#include "tools/trace/listing.h"

#include "framework/support/plain_names.h"
#include "framework/support/text.h"
#include "framework/trace/value_lists.h"
#include "tools/output/formats.h"

#include <fmt/format.h>
#include <iterator>

namespace assay::tracing {
namespace {

bool is_reference(const trace_site_t& site) {
    return site.kind == TRACE_SITE_READ || site.kind == TRACE_SITE_WRITE ||
           site.kind == TRACE_SITE_MODIFY;
}

bool overlaps(const std::pair<std::uint64_t, std::uint64_t>& range, std::uint64_t address,
              std::uint64_t bytes) {
    return address <= range.second &&
           address + std::max<std::uint64_t>(bytes, 1) - 1 >= range.first;
}

// Appends a comma and a CSV field (RFC 4180).
void append_field(std::string& line, std::string_view text) {
    line += ',';
    if (text.find_first_of(",\"\n\r") == std::string_view::npos) {
        line += text;
        return;
    }
    line += '"';
    for (const char c : text) line.append(c == '"' ? 2 : 1, c);
    line += '"';
}

// The name of an instruction's value (trace_vlist.h), padded to the column's width.
const char* name_of_value(unsigned operand) {
    const bool before = operand & trace::kReadBefore;
    switch (operand & ~trace::kReadBefore) {
        case TRACE_EFFECTIVE_ADDRESS:
            return "address";
        case TRACE_LOADED:
            return "loaded";
        case TRACE_STORED:
            return before ? "old" : "stored";
        case TRACE_DESTINATION:
            return "output";
        case TRACE_SOURCE0:
            return "input";
        case TRACE_SOURCE1:
            return "input2";
        case TRACE_BRANCH_TAKEN:
            return "taken";
        case TRACE_BRANCH_TARGET:
            return "target";
        default:
            return "value";
    }
}

const char* kind_of(const trace_site_t& site) {
    const bool is_value = site.kind == TRACE_SITE_VALUE || site.kind == TRACE_SITE_VALUE_REST;
    return is_value ? name_of_value(site.operand) : kind_name(site.kind);
}

// The name of the part that begins, padded to the column's width.
const char* name_of_part(std::uint32_t ended, bool warms_up) {
    switch (ended) {
        case trace::kRestEnds:
            return warms_up ? "warm-up" : "burst";
        case trace::kWarmUpEnds:
            return "burst";
        case trace::kBurstEnds:
            return "rest";
        default:
            return "end";
    }
}

// Simulation points always have a warm-up.
bool warms_up(const replay::ImageTrace& image) {
    return image.image().sample_period == 0 || image.image().sample_warm_up != 0;
}

std::string_view name_of(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::vector<bool> in_functions(const std::optional<Pattern>& function,
                               const replay::ImageTrace& image, const Places& places) {
    std::vector<bool> wanted;
    if (!function) return wanted;
    // Neighbouring instructions mostly belong to the same function.
    std::string_view last;
    const auto is_wanted = [&](std::string_view name) {
        return any_spelling(name, [&](std::string_view each) { return function->is_in(each); });
    };
    bool last_wanted = is_wanted(last);
    for (std::uint32_t i = 0; i < image.instrs().size(); ++i) {
        const std::string_view name = places[i].function;
        if (name != last) last_wanted = is_wanted(name);
        last = name;
        wanted.push_back(last_wanted);
    }
    return wanted;
}

Listing::Listing(const Options& options, Sink& sink) : options_(options), sink_(sink) {}

void Listing::write_head() {
    if (has_head_) return;
    has_head_ = true;
    if (options_.format == Format::kCsv)
        sink_.write(
            fmt::format("pid,image,thread,instruction,pc,kind,address,bytes,object,function,file,"
                        "line{}\n",
                        options_.instructions ? ",disassembly" : ""));
    else if (options_.format == Format::kText)
        sink_.write(fmt::format("{:>6} {:>12} {:>14} {:<7} {:>14} {:>5}  {}\n", "thread",
                                "instruction", "pc", "kind", "address", "bytes",
                                "object:function (file:line)"));
}

void Listing::find_wanted(const replay::ImageTrace& image, const Places& places) {
    places_ = &places;
    wanted_ = in_functions(options_.function, image, places);
    endings_.assign(image.instrs().size(), {});
}

std::string Listing::write(const replay::ImageTrace& image, const Places& places, bool with_title) {
    if (with_title && options_.format == Format::kText)
        sink_.write(fmt::format("{}== process {}, image {}: {}\n", has_head_ ? "\n" : "",
                                image.pid(), image.number(),
                                printable(join(image.command().arguments, " "))));
    write_head();
    find_wanted(image, places);
    Walk walk(image, options_.region);
    ExecutedInstructions executed(image, options_.region,
                                  [&](const Executed& each) { write(image, each); });
    for (Event event; walk.next(event);) {
        if (options_.region.thread && event.thread != *options_.region.thread) continue;
        const bool in_executed = event.site->kind == TRACE_SITE_BLOCK ||
                                 event.site->kind == TRACE_SITE_BLOCK_LEFT ||
                                 is_reference(*event.site);
        const bool is_burst = event.site->kind == TRACE_SITE_BURST;
        if (options_.instructions && (in_executed || is_burst)) executed.take(event);
        if (options_.instructions && in_executed) continue;
        if (!is_shown(event)) continue;
        if (is_burst)
            write_boundary(image, event);
        else
            write(image, event);
    }
    executed.finish();
    return walk.problem();
}

bool Listing::is_shown(const Event& event) const {
    if (!(options_.kinds >> event.site->kind & 1)) return false;
    if (event.site->kind == TRACE_SITE_BURST)
        return event.aux != trace::kGoesOnAt && wanted_.empty() && !options_.addresses;
    if (event.site->kind == TRACE_SITE_VALUE && event.site->operand == TRACE_NONE) return false;
    if (!wanted_.empty() && !wanted_[event.instr]) return false;
    if (options_.addresses && !(is_reference(*event.site) &&
                                overlaps(*options_.addresses, event.value, event.site->bytes)))
        return false;
    return true;
}

void Listing::write(const replay::ImageTrace& image, const Event& event) {
    Row row{event.thread + 1, event.instruction, event.instr, kind_of(*event.site), {}, 0};
    if (event.site->kind == TRACE_SITE_BLOCK) {
        const trace_block_t& block = image.blocks()[image.instrs()[event.instr].block];
        const std::uint64_t last = event.instruction + block.instr_count - 1;
        if (event.instruction > options_.region.to || last < options_.region.from) return;
        const trace_instr_t& end = image.instrs()[block.first_instr + block.instr_count - 1];
        row.bytes = end.pc + end.length - block.pc;
        row.instr = block.first_instr;
    } else {
        if (!options_.region.has(event.instruction)) return;
        row.address = event.value;
        row.bytes = event.site->bytes;
    }
    write_row(image, row);
}

void Listing::write(const replay::ImageTrace& image, const Executed& executed) {
    if (!wanted_.empty() && !wanted_[executed.instr]) return;
    const auto is_shown = [&](const Reference& reference) {
        return (options_.kinds >> reference.kind & 1) &&
               (!options_.addresses ||
                overlaps(*options_.addresses, reference.address, reference.bytes));
    };
    const bool any = std::any_of(executed.references.begin(), executed.references.end(), is_shown);
    if ((options_.addresses || !(options_.kinds >> TRACE_SITE_BLOCK & 1)) && !any) return;
    write_row(image, {executed.thread + 1,
                      executed.number,
                      executed.instr,
                      "instr",
                      {},
                      image.instrs()[executed.instr].length});
    for (const Reference& reference : executed.references)
        if (is_shown(reference))
            write_row(image, {executed.thread + 1, executed.number, executed.instr,
                              kind_name(reference.kind), reference.address, reference.bytes});
}

// The boundary of a burst, which has no place in the program.
void Listing::write_boundary(const replay::ImageTrace& image, const Event& event) {
    if (!options_.region.has(event.instruction)) return;
    const char* const kind = name_of_part(event.aux, warms_up(image));
    switch (options_.format) {
        default:
            return sink_.write(fmt::format("{:>6} {:>12} {:>14} {}\n", event.thread + 1,
                                           event.instruction, "", kind));
        case Format::kCsv:
            return sink_.write(fmt::format("{},{},{},{},,{},,0,,,,0{}\n", image.pid(),
                                           image.number(), event.thread + 1, event.instruction,
                                           kind, options_.instructions ? "," : ""));
        case Format::kJson:
            return sink_.write(fmt::format(
                "{{\"pid\":{},\"image\":{},\"thread\":{},\"instruction\":{},\"pc\":null,"
                "\"kind\":\"{}\",\"address\":null,\"bytes\":0,\"object\":\"\",\"function\":\"\","
                "\"file\":\"\",\"line\":0{}}}\n",
                image.pid(), image.number(), event.thread + 1, event.instruction, kind,
                options_.instructions ? ",\"disassembly\":\"\"" : ""));
    }
}

void Listing::write_row(const replay::ImageTrace& image, const Row& row) {
    const std::uint64_t pc = image.instrs()[row.instr].pc;
    line_.clear();
    const auto out = std::back_inserter(line_);
    switch (options_.format) {
        default:
            fmt::format_to(out, "{:>6} {:>12} {:>14x} {:<7} ", row.thread, row.instruction, pc,
                           row.kind);
            if (row.address)
                fmt::format_to(out, "{:>14x} ", *row.address);
            else
                line_.append(15, ' ');
            if (row.bytes != 0)
                fmt::format_to(out, "{:>5}  ", row.bytes);
            else
                line_.append(7, ' ');
            break;
        case Format::kCsv:
            fmt::format_to(out, "{},{},{},{},{:#x},{},", image.pid(), image.number(), row.thread,
                           row.instruction, pc, row.kind);
            if (row.address) fmt::format_to(out, "{:#x}", *row.address);
            fmt::format_to(out, ",{}", row.bytes);
            break;
        case Format::kJson:
            fmt::format_to(out,
                           "{{\"pid\":{},\"image\":{},\"thread\":{},\"instruction\":{},"
                           "\"pc\":\"{:#x}\",\"kind\":\"{}\",\"address\":",
                           image.pid(), image.number(), row.thread, row.instruction, pc, row.kind);
            if (row.address)
                fmt::format_to(out, "\"{:#x}\"", *row.address);
            else
                line_ += "null";
            fmt::format_to(out, ",\"bytes\":{}", row.bytes);
            break;
    }
    line_ += ending(image, row.instr);
    sink_.write(line_);
}

const std::string& Listing::ending(const replay::ImageTrace& image, std::uint32_t instr) {
    std::string& known = endings_[instr];
    if (known.empty()) known = make_ending(image, instr);
    return known;
}

std::string Listing::make_ending(const replay::ImageTrace& image, std::uint32_t instr) const {
    const Place& place = (*places_)[instr];
    const trace_instr_t& code = image.instrs()[instr];
    const isa::Architecture* const emulated = image.emulated();
    const isa::ElfKind elf = emulated ? emulated->elf : isa::kX86;
    const std::string text = options_.instructions
                                 ? disassembler_.print({code.bytes, code.length}, code.pc, elf).text
                                 : "";
    std::string line;
    switch (options_.format) {
        default:
            line = fmt::format("{}:{}", name_of(place.object), place.function);
            if (place.line != 0) line += fmt::format(" ({}:{})", name_of(place.file), place.line);
            line = printable(line);
            if (options_.instructions) line += "  " + text;
            break;
        case Format::kCsv:
            append_field(line, place.object);
            append_field(line, place.function);
            append_field(line, place.file);
            line += fmt::format(",{}", place.line);
            if (options_.instructions) append_field(line, text);
            break;
        case Format::kJson:
            line = fmt::format(",\"object\":{},\"function\":{},\"file\":{},\"line\":{}",
                               json_string(place.object), json_string(place.function),
                               json_string(place.file), place.line);
            if (options_.instructions)
                line += fmt::format(",\"disassembly\":{}", json_string(text));
            line += '}';
            break;
    }
    return line + '\n';
}

}  // namespace assay::tracing
