#include "tools/list/function.h"

#include "framework/support/text.h"
#include "framework/x86/decoder.h"
#include "tools/code/object_code.h"
#include "tools/sources/source_finder.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace assay::list {
namespace {

constexpr std::string_view kUnknown = "???";

// The instruction as profilers see it during a run, except that pc is the link-time address.
trace_instr_t instr_of(const native::Instruction& instruction) {
    trace_instr_t instr{};
    instr.pc = instruction.pc;
    instr.length = instruction.form->length;
    instr.flags = instruction.form->trace_flags;
    instr.opcode = instruction.form->opcode;
    std::memcpy(instr.bytes, instruction.bytes, instr.length);
    return instr;
}

// The objects at the current paths of their code. The build ids have already been compared.
std::vector<events::Object> objects_with_code(
    const std::vector<std::unique_ptr<ObjectCode>>& code) {
    std::vector<events::Object> objects;
    for (const std::unique_ptr<ObjectCode>& each : code)
        if (each->problem().empty()) objects.push_back({each->path(), ""});
    return objects;
}

}  // namespace

struct FunctionWriter::Decoders {
    native::Decoder native;
};

std::vector<std::uint64_t> Row::counts(const Profile& profile) const {
    std::vector<std::uint64_t> sum(profile.totals().size());
    for (const Profile::Instruction* part : parts) profile.counts().add_to(sum, part->row);
    return sum;
}

Instructions::Instructions(const Profile& profile) {
    profile.check_instructions();
    const auto place = [](const auto* at) { return std::pair(at->object, at->address); };
    for (const Profile::Instruction& at : profile.instructions()) parts_.push_back(&at);
    for (const Profile::Values& at : profile.values()) values_.push_back(&at);
    std::stable_sort(parts_.begin(), parts_.end(),
                     [&](const auto* a, const auto* b) { return place(a) < place(b); });
    std::stable_sort(values_.begin(), values_.end(), [&](const auto* a, const auto* b) {
        return std::tuple(place(a), a->list.name) < std::tuple(place(b), b->list.name);
    });
    auto part = parts_.cbegin();
    auto value = values_.cbegin();
    while (part != parts_.cend() || value != values_.cend()) {
        const bool is_counted =
            part != parts_.cend() && (value == values_.cend() || place(*part) <= place(*value));
        const auto at = is_counted ? place(*part) : place(*value);
        const std::uint32_t in = is_counted ? (*part)->place : (*value)->place;
        const auto is_other = [&](const auto* each) { return place(each) != at; };
        const auto parts_end = std::find_if(part, parts_.cend(), is_other);
        const auto values_end = std::find_if(value, values_.cend(), is_other);
        rows_.push_back({at.first,
                         at.second,
                         profile.text(profile.places()[in].function),
                         {part, parts_end},
                         {value, values_end}});
        part = parts_end;
        value = values_end;
    }
}

std::string text_of(const Function& function, const DisplayNames& names) {
    if (function.outer.empty()) return names(function.name);
    return fmt::format("{}, inlined into {}", names(function.name), names(function.outer));
}

FunctionWriter::FunctionWriter(const Options& options, const Profile& profile,
                               const Columns& columns, const DisplayNames& names,
                               ValuePrinter& values,
                               const std::vector<std::unique_ptr<ObjectCode>>& code, Output& output)
    : options_(options),
      profile_(profile),
      columns_(columns),
      names_(names),
      values_(values),
      output_(output),
      disassembler_(options.syntax),
      finder_(options.where, objects_with_code(code)),
      decoders_(std::make_unique<Decoders>()) {}

FunctionWriter::~FunctionWriter() = default;

std::string FunctionWriter::heading(const Table& table) {
    return table.heading("   address  instruction");
}

std::string FunctionWriter::title(const Function& function) const {
    return printable(fmt::format("{}  ({})", text_of(function, names_),
                                 profile_.objects()[function.object].path));
}

void FunctionWriter::write(const Function& function, ObjectCode& code) {
    const Lines lines = named_lines(function, code);
    Table table(columns_);
    for (const Row* row : function.rows) table.fit(row->counts(profile_));
    if (options_.full)
        output_.section(title(function));
    else
        output_.write("-- " + title(function) + "\n");
    const std::vector<std::string> sources = source_lines(lines, code);
    if (!warnings_.empty()) output_.write(std::exchange(warnings_, "") + "\n");
    output_.write(heading(table) + "\n");
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (!sources[i].empty()) output_.write(printable(sources[i]) + "\n");
        write_line(lines[i], table, code);
    }
    output_.write("\n");
}

void FunctionWriter::write_rows(const Function& function, ObjectCode& code,
                                const std::vector<const Row*>& rows, const Table& table) {
    // One or two lines between rows tell more than a mark for the gap.
    constexpr std::size_t kShortestGap = 3;
    const Lines lines = named_lines(function, code);
    const std::vector<std::string> sources = source_lines(lines, code);
    output_.write(std::exchange(warnings_, "") + "-- " + title(function) + "\n");
    std::string_view source;  // of the next line, unless that of the last one written
    std::size_t next = 0;     // the first line not yet written
    bool is_first = true;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (std::find(rows.begin(), rows.end(), lines[i].row) == rows.end()) continue;
        const bool is_gap = i >= next + kShortestGap;
        if (is_gap && !is_first) output_.write("...\n");
        for (; next <= i; ++next) {
            if (!sources[next].empty()) source = sources[next];
            if ((is_gap || is_first) && next != i) continue;
            if (!source.empty()) output_.write(printable(std::exchange(source, {})) + "\n");
            write_line(lines[next], table, code);
        }
        is_first = false;
    }
}

FunctionWriter::Lines FunctionWriter::named_lines(const Function& function, ObjectCode& code) {
    Lines lines = lines_of(function, code);
    std::vector<CodeText*> texts;
    for (Line& line : lines) texts.push_back(&line.code);
    name_targets(texts, code);
    return lines;
}

void FunctionWriter::write_line(const Line& line, const Table& table, const ObjectCode& code) {
    const std::string text = fmt::format("{:>10x}  {}", line.address, printable(line.code.text));
    output_.write(line.row ? table.row(line.row->counts(profile_), text) : table.empty_row(text));
    if (!line.row) return;
    const std::string margin(table.empty_row("").size() - 1 + std::string("   address  ").size(),
                             ' ');
    const std::size_t width = options_.brief() ? width_of_page() : std::string::npos;
    for (const std::string& values :
         values_of(*line.row, code, width - std::min(width, margin.size())))
        output_.write(fmt::format("{}  {}\n", margin, printable(values)));
}

// All instructions of a function with a known extent, and all addresses with counts. An address
// with counts can lie within another instruction, if a jump skips a prefix. Each is shown, even if
// the bytes between are data.
FunctionWriter::Lines FunctionWriter::lines_of(const Function& function, const ObjectCode& code) {
    Lines lines;
    auto row = function.rows.begin();
    const auto end = function.rows.end();
    std::uint64_t address = function.low;
    while (address < function.high || row != end) {
        if (row != end && (address >= function.high || (*row)->address < address))
            address = (*row)->address;
        const bool counted = row != end && (*row)->address == address;
        lines.push_back(line_at(address, counted ? *row : nullptr, code));
        const std::uint64_t next = address + std::max<std::size_t>(lines.back().code.length, 1);
        if (counted) ++row;
        for (; row != end && (*row)->address < next; ++row)
            lines.push_back(line_at((*row)->address, *row, code));
        address = next;
    }
    return lines;
}

FunctionWriter::Line FunctionWriter::line_at(std::uint64_t address, const Row* row,
                                             const ObjectCode& code) {
    const std::span<const std::uint8_t> bytes = code.bytes(address);
    if (bytes.empty()) return {address, row, {"?"}};
    return {address, row, print_code(disassembler_, decoders_->native, code, address)};
}

// The text above each line: its place in the source, if that differs from the line before.
std::vector<std::string> FunctionWriter::source_lines(const Lines& lines, const ObjectCode& code) {
    std::vector<std::string> above(lines.size());
    if (!options_.source || !code.problem().empty()) return above;
    std::vector<std::uint64_t> addresses;
    for (const Line& line : lines) addresses.push_back(line.address);
    if (!std::is_sorted(addresses.begin(), addresses.end())) return above;
    symbolizer_.learn({code.path(), addresses});  // keeps the debug information for the next
                                                  // function
    const auto places = symbolizer_.resolve(code.path(), addresses);
    std::string_view file, function;
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const symbols::Frame& frame = places[i].frames.front();
        if (frame.file == file && frame.line == number && frame.function == function) continue;
        file = frame.file;
        number = frame.line;
        function = frame.function;
        if (file == kUnknown) continue;
        above[i] =
            fmt::format("{}:{}{}: {}", std::string_view(file).substr(file.rfind('/') + 1), number,
                        places[i].frames.size() > 1 ? fmt::format(" ({})", names_(function)) : "",
                        source_text(file, number));
    }
    return above;
}

std::string_view FunctionWriter::source_text(std::string_view file, std::uint32_t line) {
    auto known = sources_.find(file);
    if (known == sources_.end()) {
        const std::string name(file);
        known = sources_.emplace(name, read_lines(name)).first;
    }
    const std::vector<std::string>& lines = known->second;
    return line >= 1 && line <= lines.size() ? std::string_view(lines[line - 1])
                                             : std::string_view();
}

std::vector<std::string> FunctionWriter::read_lines(const std::string& file) {
    std::vector<std::string> lines;
    const SourceFinder::Source source = finder_.find(file);
    if (source.status == SourceFinder::Status::kLeftOut)
        warnings_ += fmt::format("Warning: {} is left out: nothing says that it is a source; {}\n",
                                 printable(file), kHowToShow);
    if (source.status != SourceFinder::Status::kFound) return lines;
    const std::string text = read_source_or_warn(source.path).value_or("");
    for (const std::string_view line : split_lines(text)) lines.emplace_back(line);
    const std::string warning = warning_if_newer(file, source.path, {&options_.profile, 1});
    if (!warning.empty()) warnings_ += warning + "\n";
    return lines;
}

std::vector<std::string> FunctionWriter::values_of(const Row& row, const ObjectCode& code,
                                                   std::size_t width) {
    if (row.values.empty()) return {};
    const std::span<const std::uint8_t> bytes = code.bytes(row.address);
    native::Instruction instruction;
    if (bytes.empty() || !decoders_->native.decode(bytes, row.address, instruction))
        return values_.print(row.values, nullptr, width);
    const trace_instr_t instr = instr_of(instruction);
    return values_.print(row.values, &instr, width);
}

}  // namespace assay::list
