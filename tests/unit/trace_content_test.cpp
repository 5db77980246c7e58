// What a trace has: words for it, and what is said of what it has not.
#include "framework/recording/trace_content.h"
#include "framework/support/error.h"

#include <doctest/doctest.h>
#include <string>

namespace trace_content_test {

using namespace assay;
using namespace assay::recording;

namespace {

constexpr std::uint16_t kMov = 0x8b, kAdd = 0x01;

std::string refusal(std::string_view words) {
    try {
        content_of_words(words);
        return "";
    } catch (const Error& e) {
        return e.what();
    }
}

// A profiler that wants `value` of an opcode, with any operands.
std::unique_ptr<trace::ValueLists> wanting(std::uint16_t opcode, trace_value_t value) {
    auto lists = std::make_unique<trace::ValueLists>();
    for (trace::ValueList& list : lists->lists[0][opcode]) {
        list.selected = 1;
        list.add(trace::value_byte(value), (value & TRACE_WIDE) != 0);
    }
    return lists;
}

}  // namespace

TEST_CASE("words say what a trace has, and blocks are always there") {
    CHECK(content_of_words("default").captures == TraceContent().captures);
    CHECK(content_of_words("default").values == 0);
    CHECK(content_of_words("branches,fetches").captures == TRACE_RECORDED_BLOCKS);
    CHECK(content_of_words("calls,references").captures ==
          (TRACE_RECORDED_BLOCKS | TRACE_RECORDED_CALLS | TRACE_RECORDED_REFERENCES |
           TRACE_RECORDED_LINE_OPERATIONS));
    const TraceContent some = content_of_words("values=loads+results,values=stores");
    CHECK(some.captures == (TRACE_RECORDED_BLOCKS | TRACE_RECORDED_VALUES));
    CHECK(some.values == (TRACE_VALUES_LOADS | TRACE_VALUES_STORES | TRACE_VALUES_RESULTS));
    CHECK(content_of_words("all").values == content_of_words("values").values);
    CHECK(content_of_words("all").has(TraceContent().captures | TRACE_RECORDED_VALUES));
}

TEST_CASE("a wrong word is named with the nearest one") {
    CHECK(refusal("calls,call")
              .find("\"call\" is no kind of records; give some of references, "
                    "fetches, branches, calls") != std::string::npos);
    CHECK(refusal("calls,call").find("(did you mean calls?)") != std::string::npos);
    CHECK(refusal("values=load").find("\"load\" is no kind of values") != std::string::npos);
    CHECK(refusal("values=load").find("(did you mean loads?)") != std::string::npos);
    CHECK(refusal("calls,").find("\"\" is no kind of records") != std::string::npos);
    CHECK(refusal("value=loads").find("(did you mean values?)") != std::string::npos);
}

TEST_CASE("loads and stores are recorded of what loads and stores, all else of everything") {
    const auto some = recorded_values({0, TRACE_VALUES_LOADS | TRACE_VALUES_STORES});
    CHECK(some->find(kMov, 0) == nullptr);
    const trace::ValueList* const both = some->find(kAdd, TRACE_INSTR_LOAD | TRACE_INSTR_STORE);
    REQUIRE(both != nullptr);
    CHECK(both->count == 3);
    CHECK(both->wide == 7);
    CHECK(both->values[0] == TRACE_LOADED);
    CHECK(both->values[1] == trace::value_byte(TRACE_STORED | TRACE_BEFORE));
    CHECK(both->values[2] == TRACE_STORED);
    CHECK(recorded_values({0, TRACE_VALUES_RESULTS})->find(kMov, 0)->count == 1);
    // Of prefetches, in any trace with references. Older ones lack them, and are read nevertheless.
    constexpr std::uint16_t kPrefetch = TRACE_OPCODE(1, 0x18);
    const TraceContent older{TraceContent().captures &
                             ~std::uint32_t{TRACE_RECORDED_LINE_OPERATIONS}};
    const auto operations = recorded_values({});
    CHECK(operations->find(kPrefetch, 0)->count == 1);
    CHECK(operations->find(kMov, 0) == nullptr);
    CHECK(recorded_values(older)->find(kPrefetch, 0) == nullptr);
    CHECK(missing_values(*operations, {}) == "");
    CHECK(missing_values(*operations, older) == "");
    CHECK(lacks_line_operations(*operations, older));
    CHECK_FALSE(lacks_line_operations(*operations, {}));
}

TEST_CASE("what a profiler wants and a trace has not is named, with how to record it") {
    const TraceContent plain, loads = content_of_words("default,values=loads"),
                              all = content_of_words("all");
    const auto loaded = wanting(kMov, TRACE_LOADED | TRACE_WIDE);
    CHECK(missing_values(*loaded, all) == "");
    CHECK(missing_values(*loaded, plain) ==
          "values that are loaded: record the program again with --capture=default,values=loads");
    // Of an instruction that does not load a replay would not know that it was executed.
    CHECK(missing_values(*loaded, loads) ==
          "values of all instructions: record the program again with --capture=default,values");
    for (const unsigned access : {0U, unsigned{TRACE_INSTR_STORE}})
        loaded->lists[0][kMov][access].selected = 0;
    CHECK(missing_values(*loaded, loads) == "");
    CHECK(missing_values(*wanting(kMov, TRACE_DESTINATION), loads) ==
          "destination registers: record the program again with --capture=default,values");
    for (const trace_value_t never :
         {trace_value_t{TRACE_LATENCY}, trace_value_t{TRACE_GPR0 + 3}, trace_value_t{TRACE_SOURCE0},
          trace_value_t{TRACE_DESTINATION | TRACE_BEFORE}})
        CHECK(missing_values(*wanting(kMov, never), all).find("run the program itself") !=
              std::string::npos);
    // The same before and behind.
    CHECK(missing_values(*wanting(kMov, TRACE_LOADED | TRACE_BEFORE), all) == "");
    CHECK(missing_records(TRACE_RECORDED_CALLS, plain) == "");
    CHECK(missing_records(TRACE_RECORDED_CALLS, content_of_words("values")) ==
          "calls: record the program again with --capture=default,values,calls");
}

}  // namespace trace_content_test
