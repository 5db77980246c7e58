#include "framework/recording/trace_content.h"

#include "framework/support/error.h"
#include "framework/support/text.h"
#include "framework/trace/segment_layout.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace assay::recording {
namespace {

constexpr std::string_view kValues = "values", kDefault = "default", kAll = "all";
constexpr const char* kRunIt = "run the program itself under the profiler (assay --plugin=...)";

struct Records {
    std::string_view word;
    std::uint32_t captures;
    std::string_view what;
};
// A replay derives fetches and branches from blocks, which every trace has.
constexpr std::array<Records, 5> kRecords{
    {{"references", TRACE_RECORDED_REFERENCES | TRACE_RECORDED_LINE_OPERATIONS,
      "references to data"},
     {"fetches", 0, "fetches"},
     {"branches", 0, "branches"},
     {"calls", TRACE_RECORDED_CALLS, "calls"},
     {"system-calls", TRACE_RECORDED_SYSTEM_CALLS, "system calls"}}};

// Opcodes of prefetches, clflush and similar instructions, and of some others. Their effective
// addresses are recorded with references.
constexpr std::array<std::uint16_t, 4> kLineOperations{
    TRACE_OPCODE(1, 0x0d), TRACE_OPCODE(1, 0x18), TRACE_OPCODE(1, 0x1c), TRACE_OPCODE(1, 0xae)};

struct Part {
    std::string_view word;
    std::uint32_t values;
    std::string_view what;
    std::uint32_t access;  // TRACE_INSTR_* of the instructions that have it; 0: all
    std::array<std::uint32_t, 2> list;
};
// In the order of the recorded lists.
constexpr std::array<Part, 6> kParts{
    {{"addresses", TRACE_VALUES_ADDRESSES, "effective addresses", 0, {TRACE_EFFECTIVE_ADDRESS}},
     {"operands",
      TRACE_VALUES_OPERANDS,
      "source registers",
      0,
      {TRACE_SOURCE0 | TRACE_BEFORE, TRACE_SOURCE1 | TRACE_BEFORE}},
     {"loads", TRACE_VALUES_LOADS, "values that are loaded", TRACE_INSTR_LOAD, {TRACE_LOADED}},
     {"stores",
      TRACE_VALUES_STORES,
      "values that are stored",
      TRACE_INSTR_STORE,
      {TRACE_STORED | TRACE_BEFORE, TRACE_STORED}},
     {"results", TRACE_VALUES_RESULTS, "destination registers", 0, {TRACE_DESTINATION}},
     {"branches",
      TRACE_VALUES_BRANCHES,
      "outcomes of branches",
      0,
      {TRACE_BRANCH_TAKEN, TRACE_BRANCH_TARGET}}}};

constexpr std::uint32_t kAllValues = [] {
    std::uint32_t all = 0;
    for (const Part& part : kParts) all |= part.values;
    return all;
}();

[[noreturn]] void unknown(std::string_view word, std::string_view what,
                          const std::vector<std::string>& names) {
    const std::string near = nearest(word.substr(0, word.find('=')), names);
    throw Error(fmt::format("--capture: \"{}\" is no {}; give some of {}{}", word, what,
                            join(names, ", "),
                            near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
}

template <typename Take>
void for_each_word(std::string_view words, char separator, const Take& take) {
    for (;;) {
        const std::size_t end = std::min(words.find(separator), words.size());
        take(words.substr(0, end));
        if (end == words.size()) return;
        words.remove_prefix(end + 1);
    }
}

std::uint32_t values_of_words(std::string_view words) {
    std::uint32_t values = 0;
    for_each_word(words, '+', [&](std::string_view word) {
        const auto* const found = std::find_if(kParts.begin(), kParts.end(),
                                               [&](const Part& part) { return part.word == word; });
        if (found == kParts.end()) {
            std::vector<std::string> names;
            names.reserve(kParts.size());
            for (const Part& part : kParts) names.emplace_back(part.word);
            unknown(word, "kind of values", names);
        }
        values |= found->values;
    });
    return values;
}

void add_word(TraceContent& content, std::string_view word) {
    const TraceContent usual;
    const std::size_t equals = word.find('=');
    if (word.substr(0, equals) == kValues) {
        content.captures |= TRACE_RECORDED_VALUES;
        content.values |= equals == std::string_view::npos
                              ? kAllValues
                              : values_of_words(word.substr(equals + 1));
        return;
    }
    if (word == kDefault || word == kAll) {
        content.captures |= usual.captures;
        if (word == kDefault) return;
        content.captures |= TRACE_RECORDED_VALUES;
        content.values = kAllValues;
        return;
    }
    const auto* const found =
        std::find_if(kRecords.begin(), kRecords.end(),
                     [&](const Records& records) { return records.word == word; });
    if (found == kRecords.end()) {
        std::vector<std::string> names;
        names.reserve(kRecords.size() + 3);
        for (const Records& records : kRecords) names.emplace_back(records.word);
        for (const std::string_view name : {kValues, kDefault, kAll}) names.emplace_back(name);
        unknown(word, "kind of records", names);
    }
    content.captures |= found->captures;
}

// The part that contains a value of a list; nullptr if no part does.
const Part* part_of(std::uint8_t value) {
    for (const Part& part : kParts)
        for (const std::uint32_t each : part.list)
            if (each != TRACE_NONE && trace::value_byte(each) == value) return &part;
    return nullptr;
}

// `word`: the content to record in addition to the present one.
std::string to_record(const TraceContent& content, std::string_view what, const std::string& word) {
    const bool of_values = word.starts_with(kValues);
    std::string list(kDefault);
    if (content.values != 0) list += fmt::format(",{}", kValues);
    if (!of_values || content.values == 0) list += "," + word;
    return fmt::format("{}: record the program again with --capture={}", what, list);
}

// Instructions that do not load have no loaded value. All profilers know this.
std::string missing_of(const trace::ValueList& wanted, const trace::ValueList& recorded,
                       const TraceContent& content) {
    for (unsigned i = 0; i < wanted.count; ++i) {
        const std::uint8_t value = recorded_value(wanted.values[i]);
        if (value != TRACE_NONE && recorded.index_of(value) < recorded.count) continue;
        const Part* const part = part_of(value);
        const unsigned what = wanted.values[i] & ~trace::kReadBefore;
        if (!part)
            return fmt::format("{}: {}",
                               what == TRACE_LATENCY ? "latencies"
                               : what >= TRACE_ST0   ? "registers by their names"
                               : what == TRACE_DESTINATION
                                   ? "destination registers before an instruction"
                                   : "source registers after an instruction",
                               kRunIt);
        if (!(content.values & part->values))
            return to_record(content, part->what, fmt::format("{}={}", kValues, part->word));
    }
    if (!recorded.selected)
        return to_record(content, "values of all instructions", std::string(kValues));
    return "";
}

}  // namespace

TraceContent content_of_words(std::string_view words) {
    TraceContent content;
    content.captures = TRACE_RECORDED_BLOCKS;
    for_each_word(words, ',', [&](std::string_view word) { add_word(content, word); });
    return content;
}

std::unique_ptr<trace::ValueLists> recorded_values(const TraceContent& content) {
    const std::uint32_t values = content.values;
    auto lists = std::make_unique<trace::ValueLists>();
    for (auto& map : lists->lists)
        for (auto& opcode : map)
            for (unsigned access = 0; access < trace::kAccesses; ++access)
                for (const Part& part : kParts) {
                    if (!(values & part.values)) continue;
                    if (part.access != 0 && !(part.access & access)) continue;
                    trace::ValueList& list = opcode[access];
                    list.selected = 1;
                    for (const std::uint32_t value : part.list)
                        if (value != TRACE_NONE) list.add(trace::value_byte(value), true);
                }
    if (!content.has(TRACE_RECORDED_LINE_OPERATIONS)) return lists;
    for (const std::uint16_t opcode : kLineOperations)
        for (trace::ValueList& list : lists->lists[trace::map_index(opcode)][opcode & 0xff]) {
            list.selected = 1;
            if (list.index_of(TRACE_EFFECTIVE_ADDRESS) == list.count)
                list.add(TRACE_EFFECTIVE_ADDRESS, true);
        }
    return lists;
}

// Loaded values, addresses and branches are the same before and after the instruction.
std::uint8_t recorded_value(std::uint8_t value) {
    const auto what = static_cast<std::uint8_t>(value & ~trace::kReadBefore);
    switch (what) {
        case TRACE_EFFECTIVE_ADDRESS:
        case TRACE_LOADED:
        case TRACE_BRANCH_TAKEN:
        case TRACE_BRANCH_TARGET:
            return what;
        default:
            return part_of(value) ? value : std::uint8_t{TRACE_NONE};
    }
}

bool lacks_line_operations(const trace::ValueLists& wanted, const TraceContent& content) {
    if (content.has(TRACE_RECORDED_LINE_OPERATIONS) || content.values & TRACE_VALUES_ADDRESSES)
        return false;
    return std::any_of(kLineOperations.begin(), kLineOperations.end(),
                       [&](std::uint16_t opcode) { return wanted.find(opcode, 0) != nullptr; });
}

std::string missing_values(const trace::ValueLists& wanted, const TraceContent& content) {
    TraceContent taken = content;
    taken.captures |= TRACE_RECORDED_LINE_OPERATIONS;
    const std::unique_ptr<trace::ValueLists> recorded = recorded_values(taken);
    const trace::ValueList* theirs = &wanted.lists[0][0][0];
    const trace::ValueList* ours = &recorded->lists[0][0][0];
    for (std::size_t i = 0; i < sizeof wanted / sizeof *theirs; ++i) {
        if (!theirs[i].selected) continue;
        std::string missing = missing_of(theirs[i], ours[i], content);
        if (!missing.empty()) return missing;
    }
    return "";
}

std::string missing_records(std::uint32_t recorded, const TraceContent& content) {
    if (content.has(recorded)) return "";
    for (const Records& records : kRecords)
        if (records.captures & recorded)
            return to_record(content, records.what, std::string(records.word));
    return "";
}

}  // namespace assay::recording
