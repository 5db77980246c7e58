#include "tools/trace/import.h"

#include "framework/events/file.h"
#include "framework/events/lexical.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "tools/trace/places.h"

#include <fmt/core.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace assay::tracing {
namespace {

void check_input(const Import& import) {
    std::error_code ignored;
    if (std::filesystem::equivalent(import.file, import.output, ignored))
        throw Error(
            fmt::format("-o {}: this is the imported file; choose another name", import.output));
    if (import.format == Format::kDrmemtrace && std::filesystem::is_directory(import.file, ignored))
        return;
    if (!events::can_be_read_again(import.file))
        throw Error(
            fmt::format("{} cannot be read twice, as an import must do; write it to a file first",
                        import.file));
    if (events::beginning_of_file(import.file, 1).empty())
        throw Error(fmt::format("{} is empty", import.file));
}

}  // namespace

void import_trace(const Import& import) {
    check_input(import);
    TraceMaker maker(import.output, import.file);
    try {
        if (import.format == Format::kLackey)
            read_lackey(import, maker);
        else if (import.format == Format::kDin)
            read_din(import, maker);
        else if (import.format == Format::kDrmemtrace)
            read_drmemtrace(import, maker);
        else
            read_champsim(import, maker);
        maker.finish();
        if (maker.instructions() == 0)
            throw Error(fmt::format("{} has no instructions", import.file));
    } catch (const Error&) {
        if (std::filesystem::is_regular_file(import.output)) unlink(import.output.c_str());
        throw;
    }
}

// Lines of lackey and Dinero.

namespace {

// References beyond this number are taken for another execution of the same instruction.
constexpr std::size_t kMostReferences = std::size_t{1} << 20;

// Calls consume(line) for each line. Adds file and line to the message of any Error that it throws.
template <typename Consume>
void for_each_line(const std::string& path, const Consume& consume) {
    events::LineCutter cutter;
    std::uint64_t number = 0;
    const auto take = [&](std::string_view line) {
        ++number;
        if (line.ends_with('\r')) line.remove_suffix(1);
        try {
            consume(line);
        } catch (const Error& error) {
            throw Error(fmt::format("{}:{}: {}", path, number, error.what()));
        }
    };
    events::read_file(path, [&](std::string_view block) {
        if (!cutter.feed(block, take))
            throw Error(fmt::format("{}:{}: the line is too long", path, number + 1));
    });
    if (const std::string rest = cutter.take_rest(); !rest.empty()) take(rest);
}

std::string shown(std::string_view line) {
    constexpr std::size_t kMost = 60;
    return printable(line.substr(0, kMost));
}

// Removes a number from the front of `text`. No value if there is no number.
std::optional<std::uint64_t> take_number(std::string_view& text, int base) {
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc()) return {};
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    return value;
}

void skip_blanks(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
}

// An instruction is complete when the next one begins. Data before the first instruction belong to
// an instruction at address 0, with one execution for each reference.
class PendingInstruction {
  public:
    explicit PendingInstruction(TraceMaker& maker) : maker_(maker) {}

    void begin(std::uint64_t pc, std::uint8_t length) {
        flush();
        instruction_ = {pc, length, 0, false};
        is_pending_ = true;
    }
    void refer(const Reference& reference) {
        if (!is_pending_) {
            maker_.add({0, 1, 0, false}, {&reference, 1});
            return;
        }
        if (references_.size() == kMostReferences) begin(instruction_.pc, instruction_.length);
        references_.push_back(reference);
    }
    void flush() {
        if (is_pending_) maker_.add(instruction_, references_);
        references_.clear();
        is_pending_ = false;
    }

  private:
    TraceMaker& maker_;
    TraceMaker::Instruction instruction_{};
    std::vector<Reference> references_;
    bool is_pending_ = false;
};

// --- Lackey. Lines of Valgrind itself begin with ==PID==.

}  // namespace

void read_lackey(const Import& import, TraceMaker& maker) {
    PendingInstruction pending(maker);
    for_each_line(import.file, [&](std::string_view line) {
        if (line.starts_with("==") || line.starts_with("--") || line.empty()) return;
        const bool fetch = line.starts_with("I ");
        const char letter = fetch ? 'I' : line.size() > 2 && line[0] == ' ' ? line[1] : '\0';
        std::string_view rest = line.substr(std::min<std::size_t>(line.size(), 2));
        skip_blanks(rest);
        const std::optional<std::uint64_t> address = take_number(rest, 16);
        const bool comma = rest.starts_with(',');
        if (comma) rest.remove_prefix(1);
        const std::uint64_t bytes = comma ? take_number(rest, 10).value_or(0) : 0;
        const bool known = letter == 'I' || letter == 'L' || letter == 'S' || letter == 'M';
        if (!known || !address || !comma || !rest.empty())
            throw Error(
                fmt::format("'{}' is not a line of lackey: 'I  ADDRESS,BYTES', or ' L', ' S' "
                            "or ' M' instead of 'I '",
                            shown(line)));
        const std::uint64_t most = fetch ? kMostInstructionBytes : UINT16_MAX;
        if (bytes == 0 || bytes > most)
            throw Error(fmt::format("'{}': the bytes must be 1 to {}", shown(line), most));
        if (fetch)
            pending.begin(*address, static_cast<std::uint8_t>(bytes));
        else
            pending.refer({*address, static_cast<std::uint16_t>(bytes),
                           static_cast<std::uint8_t>(letter == 'L'   ? TRACE_SITE_READ
                                                     : letter == 'S' ? TRACE_SITE_WRITE
                                                                     : TRACE_SITE_MODIFY)});
    });
    pending.flush();
}

namespace {

// --- Dinero. Text after the address is a comment. Escape records, for unknown accesses (3) and
// flushes of the cache (4), are no references.

struct DinLine {
    char label;
    std::uint64_t address;
};
std::optional<DinLine> din_line(std::string_view line) {
    std::string_view rest = line;
    skip_blanks(rest);
    if (rest.empty()) return {};
    const char label = rest.front();
    rest.remove_prefix(1);
    const bool separated = rest.starts_with(' ') || rest.starts_with('\t');
    skip_blanks(rest);
    if (rest.starts_with("0x") || rest.starts_with("0X")) rest.remove_prefix(2);
    const std::optional<std::uint64_t> address = take_number(rest, 16);
    if (label < '0' || label > '4' || !separated || !address ||
        (!rest.empty() && rest.front() != ' ' && rest.front() != '\t'))
        throw Error(
            fmt::format("'{}' is not a line of din: a label (0 read, 1 write, 2 fetch, 3 and 4 "
                        "escape) and a hexadecimal address",
                        shown(line)));
    return DinLine{label, *address};
}

}  // namespace

void read_din(const Import& import, TraceMaker& maker) {
    Lengths lengths;
    std::optional<std::uint64_t> last;
    for_each_line(import.file, [&](std::string_view text) {
        const std::optional<DinLine> line = din_line(text);
        if (!line || line->label != '2') return;
        if (last) lengths.learn(*last, line->address);
        last = line->address;
    });
    PendingInstruction pending(maker);
    std::uint64_t escapes = 0;
    for_each_line(import.file, [&](std::string_view text) {
        const std::optional<DinLine> line = din_line(text);
        if (!line) return;
        if (line->label > '2')
            ++escapes;
        else if (line->label == '2')
            pending.begin(line->address, lengths.of(line->address, 1));
        else
            pending.refer({line->address, static_cast<std::uint16_t>(import.reference_bytes),
                           static_cast<std::uint8_t>(line->label == '0' ? TRACE_SITE_READ
                                                                        : TRACE_SITE_WRITE)});
    });
    pending.flush();
    if (escapes != 0)
        log::remark(
            fmt::format("{}: left out {} escape record{} (labels 3 and 4): a trace has no "
                        "unknown accesses and no flushes",
                        import.file, escapes, escapes == 1 ? "" : "s"));
}

}  // namespace assay::tracing
