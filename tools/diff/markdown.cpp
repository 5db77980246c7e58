#include "framework/support/text.h"
#include "tools/diff/writers.h"
#include "tools/output/formats.h"
#include "tools/table/table.h"

#include <fmt/core.h>
#include <algorithm>
#include <initializer_list>
#include <set>
#include <utility>

namespace assay::diff {
namespace {

// GitHub allows 65,536 characters, GitLab a million.
constexpr std::size_t kMostBytes = 60'000, kMostMarkdownRows = 40, kMostNameBytes = 200;

// A code span of GitHub Flavored Markdown, so that names are not taken for markup. Bars would end
// the cell of a table.
std::string code(std::string_view text) {
    std::string shown = printable(text);
    if (shown.size() > kMostNameBytes) {
        std::size_t end = kMostNameBytes;
        while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xC0) == 0x80) --end;
        shown = shown.substr(0, end) + "...";
    }
    if (shown.empty()) return "";
    std::string escaped;
    std::size_t longest = 0, ticks = 0;
    for (const char c : shown) {
        ticks = c == '`' ? ticks + 1 : 0;
        longest = std::max(longest, ticks);
        if (c == '|') escaped += '\\';
        escaped += c;
    }
    const std::string fence(longest + 1, '`');
    const std::string space = longest == 0 ? "" : " ";
    return fence + space + escaped + space + fence;
}

std::string row(std::initializer_list<std::string> cells) {
    std::string line = "|";
    for (const std::string& cell : cells) line += " " + cell + " |";
    return line + "\n";
}

// A function's place with only the last part of its file's path.
std::string short_place(const Comparison& comparison, const Change& change) {
    Change named = change;
    named.file = named.file.substr(named.file.rfind('/') + 1);
    named.former.file = named.former.file.substr(named.former.file.rfind('/') + 1);
    return comparison.place_text(named);
}

std::string with_relative(const std::string& change, const std::string& relative) {
    return relative.empty() ? change : fmt::format("{} ({})", change, relative);
}

std::string change_text(const Change& change, std::size_t event) {
    return with_relative(signed_text(change.difference(event)),
                         relative_text(change.before[event], change.after[event]));
}

// --- Visible part

std::string title(const Programs& programs) {
    std::size_t exceeded = 0, limits = 0;
    for (const Programs::Program& program : programs.all)
        for (const Verdict& verdict : program.comparison->verdicts()) {
            ++limits;
            exceeded += verdict.is_exceeded;
        }
    const std::size_t many = programs.all.size();
    const std::string where = programs.are_many
                                  ? fmt::format("{} program{}", many, many == 1 ? "" : "s")
                                  : code(programs.all.front().command);
    if (limits == 0) return fmt::format("### assay: what changed in {}\n\n", where);
    const std::string what = exceeded == 0   ? "no limit is exceeded"
                             : exceeded == 1 ? "a limit is exceeded"
                                             : fmt::format("{} limits are exceeded", exceeded);
    return fmt::format("### assay: {} in {}\n\n", what, where);
}

void append_verdict(const Programs& programs, const Programs::Program& program,
                    const Verdict& verdict, std::string& out) {
    std::string of = verdict.event;
    if (!verdict.subject.empty()) of += " of " + code(verdict.shown);
    if (programs.are_many) of += " in " + code(program.command);
    const std::string change = with_relative(verdict.change, verdict.relative);
    out += row({of, verdict.before, verdict.after,
                verdict.is_exceeded ? fmt::format("**{}**", change) : change,
                code(verdict.limit->text), verdict.is_exceeded ? "exceeded" : "within"});
}

std::string verdict_table(const Programs& programs) {
    std::string out = row({"event", "base", "head", "change", "limit", ""});
    out += row({"---", "--:", "--:", "--:", "---", "---"});
    std::size_t rows = 0, left = 0;
    for (const bool exceeded : {true, false})
        for (const Programs::Program& program : programs.all)
            for (const Verdict& verdict : program.comparison->verdicts()) {
                if (verdict.is_exceeded != exceeded) continue;
                if (++rows > kMostMarkdownRows)
                    ++left;
                else
                    append_verdict(programs, program, verdict, out);
            }
    if (left != 0) out += fmt::format("\n{} more are not shown.\n", left);
    return out + "\n";
}

std::string total_table(const Programs& programs) {
    std::string out =
        row({programs.are_many ? "event of program" : "event", "base", "head", "change"});
    out += row({"---", "--:", "--:", "--:"});
    std::size_t rows = 0;
    for (const Programs::Program& program : programs.all) {
        const Change totals = program.comparison->totals();
        for (const std::size_t event : program.comparison->shown()) {
            if (++rows > kMostMarkdownRows) break;
            const std::string name = program.comparison->header().events[event].name;
            out += row({programs.are_many ? name + " of " + code(program.command) : name,
                        with_thousands(totals.before[event]), with_thousands(totals.after[event]),
                        change_text(totals, event)});
        }
    }
    return out;
}

// The functions that contribute most to an exceeded limit.
std::string cause(const Programs& programs, const Programs::Program& program,
                  const Verdict& verdict) {
    constexpr std::size_t kMost = 3;
    const Comparison& comparison = *program.comparison;
    const std::vector<std::string> names = event_names(comparison.header());
    const auto found = std::find(names.begin(), names.end(), verdict.event);
    if (found == names.end() || verdict.limit->kind == "function") return "";
    const auto event = static_cast<std::size_t>(found - names.begin());
    std::vector<const Change*> grown;
    for (const Change& change : comparison.functions())
        if (change.difference(event) > 0 &&
            (verdict.limit->kind != "file" || change.file == verdict.subject))
            grown.push_back(&change);
    const std::size_t count = std::min(kMost, grown.size());
    if (count == 0) return "";
    std::partial_sort(grown.begin(), grown.begin() + static_cast<std::ptrdiff_t>(count),
                      grown.end(), [&](const Change* a, const Change* b) {
                          return a->difference(event) > b->difference(event);
                      });
    std::string out = fmt::format("{}{} grew most in ", verdict.event,
                                  programs.are_many ? " of " + code(program.command) : "");
    for (std::size_t i = 0; i < count; ++i)
        out += fmt::format("{}{}: {}", i == 0 ? "" : ", ", code(short_place(comparison, *grown[i])),
                           change_text(*grown[i], event));
    return out + ".\n";
}

std::string causes(const Programs& programs) {
    constexpr std::size_t kMost = 10;
    std::string out;
    std::vector<std::string> texts;
    for (const Programs::Program& program : programs.all) {
        std::set<std::string> events;  // one sentence per event is enough
        for (const Verdict& verdict : program.comparison->verdicts()) {
            if (!verdict.is_exceeded || events.contains(verdict.event)) continue;
            std::string text = cause(programs, program, verdict);
            if (text.empty()) continue;
            events.insert(verdict.event);
            texts.push_back(std::move(text));
        }
    }
    for (std::size_t i = 0; i < std::min(texts.size(), kMost); ++i)
        out += (out.empty() ? "" : "\n") + texts[i];
    return out.empty() ? "" : out + "\n";
}

// --- Folded details

// A summary is HTML, which Markdown does not affect.
std::string folded(std::string_view summary, const std::string& text) {
    return fmt::format("<details><summary>{}</summary>\n\n{}\n</details>\n\n",
                       html_text(printable(summary)), text);
}

template <typename Text>
std::string change_table(const Comparison& comparison, const std::vector<const Change*>& changes,
                         const std::string& of, const Text& text_of) {
    if (changes.empty()) return "No change reaches the threshold.\n";
    std::string head = "|", rule = "|", out;
    for (const std::size_t event : comparison.shown()) {
        head += " " + comparison.header().events[event].name + " |";
        rule += " --: |";
    }
    out = head + " " + of + " |\n" + rule + " --- |\n";
    for (std::size_t i = 0; i < std::min(changes.size(), kMostMarkdownRows); ++i) {
        out += "|";
        for (const std::size_t event : comparison.shown())
            out += " " + change_text(*changes[i], event) + " |";
        out += " " + code(text_of(*changes[i])) + " |\n";
    }
    if (changes.size() > kMostMarkdownRows)
        out += fmt::format("\n{} more are not shown.\n", changes.size() - kMostMarkdownRows);
    return out;
}

std::string details(const Options& options, const Programs& programs,
                    const Programs::Program& program) {
    const Comparison& comparison = *program.comparison;
    std::string out;
    if (options.by.empty())
        out = change_table(comparison, comparison.important_functions(), "function",
                           [&](const Change& change) { return short_place(comparison, change); });
    else
        out = change_table(comparison, comparison.important_groups(), options.by,
                           [&](const Change& change) { return comparison.group_text(change); });
    std::string summary =
        options.by.empty() ? "Functions that changed" : "Counts by " + options.by + " that changed";
    if (programs.are_many) summary += " in " + program.command;
    return folded(summary, out);
}

std::string made_from(const Programs& programs) {
    std::string out;
    for (const Programs::Program& program : programs.all) {
        for (const std::string& warning : program.comparison->warnings())
            out += "- " + code(program.command) + ": " + code(warning) + "\n";
    }
    for (const auto& [side, commands] :
         {std::pair{"base", &programs.only_old}, std::pair{"head", &programs.only_new}})
        for (const std::string& command : *commands)
            out += fmt::format("- only in {}: {}\n", side, code(command));
    return out.empty() ? "" : out + "\n";
}

}  // namespace

void write_markdown(const Options& options, const Programs& programs, Sink& sink) {
    std::string out = title(programs);
    out += options.limits.empty() ? total_table(programs) + "\n" : verdict_table(programs);
    out += causes(programs) + made_from(programs);
    if (!options.limits.empty()) out += folded("Totals", total_table(programs));
    bool is_cut = false;
    for (const bool exceeded : {true, false})
        for (const Programs::Program& program : programs.all) {
            if (program.comparison->is_exceeded() != exceeded) continue;
            if (programs.are_many && !exceeded && program.comparison->important_functions().empty())
                continue;
            const std::string text = details(options, programs, program);
            is_cut |= out.size() + text.size() > kMostBytes;
            if (!is_cut) out += text;
        }
    if (is_cut) out += "There are more changes than fit here: see --format=html.\n";
    sink.write(out);
}

}  // namespace assay::diff
