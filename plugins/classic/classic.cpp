// Value profiles: which values an instruction loads, stores, computes and is given, how often the
// most frequent one (Calder, Feller, Eustace, "Value profiling", MICRO 1997), and which stores
// change nothing (Lepak, Lipasti, "On the value locality of store instructions", ISCA 2000).
#include "plugins/classic/running_totals.h"
#include "plugins/classic/value_format.h"
#include "plugins/classic/value_table.h"
#include "plugins/common/profiler.h"
#include "plugins/common/text.h"

#include "assay/vprofiler.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace classic {
namespace {

constexpr std::size_t kMostValues = 64;  // returned for one list; assay keeps no more

enum Event : std::uint32_t { kVals, kZeros, kSame, kTop, kStores, kSilent, kEvents };
constexpr std::array<vp_event_t, kEvents> kEventTable{{
    {"Vals", "values seen", "values"},
    {"Zeros", "values that were zero", "values"},
    {"Same", "values equal to the one before of the same instruction in its basic block", "values"},
    {"Top", "values equal to the most frequent one of the same instruction", "values"},
    {"Stores", "stores of up to 8 bytes, compared with what they overwrote", "stores"},
    {"Silent", "stores that changed nothing", "stores"},
}};
constexpr std::array<vp_derived_t, 4> kDerivedTable{{
    {"invariance", "Top / Vals", "%"},
    {"last value", "Same / Vals", "%"},
    {"zeros", "Zeros / Vals", "%"},
    {"silent stores", "Silent / Stores", "%"},
}};

constexpr std::array<vp_option_t, 1> kOptionTable{{
    {"values", "KIND,...", "loads,stores",
     "Which values: of loads, stores (and whether these change anything), results (first "
     "destination register), operands (first two source registers).",
     VP_OPTION_TEXT, 0},
}};

// The lists, by enum Operand.
constexpr std::array<const char*, 5> kListNames{"loaded", "stored", "result", "first-operand",
                                                "second-operand"};

// What --values= chooses.
struct Kinds {
    bool loads = true, stores = true, results = false, operands = false;
};

struct Profiler {
    plugins::TraceSpec spec;
    const vp_host_t* host = nullptr;
    Kinds kinds;
    std::unique_ptr<ValueTables> tables;
    RunningTotals totals;
    plugins::Samples samples;
    bool finished = false;
    Reading reading = Reading::kInteger;  // of the list whose preface was asked for
    std::string text;
};
Profiler profiler;

constexpr std::uint8_t kBefore = 128;  // in a site's operand: TRACE_BEFORE

const char* name() {
    return "classic";
}
const char* description() {
    return "keeps the most frequent values that each instruction loads, stores and computes";
}
int initialise(const vp_host_t* host) {
    profiler = Profiler{};
    profiler.host = host;
    return 0;
}
void release() {
    profiler = Profiler{};
}

bool apply(Kinds& chosen, std::string_view name, std::string_view kinds, std::string& why) {
    chosen = {false, false, false, false};
    const std::map<std::string_view, bool*> known{{"loads", &chosen.loads},
                                                  {"stores", &chosen.stores},
                                                  {"results", &chosen.results},
                                                  {"operands", &chosen.operands}};
    for (;;) {
        const std::string_view kind = kinds.substr(0, kinds.find(','));
        const auto found = known.find(kind);
        if (found == known.end()) {
            why = "no such kind of values; there are loads, stores, results, operands";
            return plugins::unusable(name, kind, why);
        }
        *found->second = true;
        if (kind.size() == kinds.size()) return true;
        kinds.remove_prefix(kind.size() + 1);
    }
}

int receive_options(const vp_setting_t* settings, uint32_t count) {
    return plugins::receive(profiler.host, {settings, count}, profiler.kinds, apply);
}

int is_load(uint16_t /*opcode*/, uint32_t flags) {
    return (flags & TRACE_INSTR_LOAD) != 0;
}
int is_store(uint16_t /*opcode*/, uint32_t flags) {
    return (flags & TRACE_INSTR_STORE) != 0;
}
int is_any(uint16_t /*opcode*/, uint32_t /*flags*/) {
    return 1;
}

void capture(trace_selector_t selector, std::initializer_list<trace_value_t> values) {
    const plugins::ValueList list(trace_vlist_alloc());
    for (const trace_value_t value : values) trace_add_value_to_vlist(list.get(), value);
    trace_add_vlist_by_select(profiler.spec.get(), selector, list.get());
}

trace_vlist_table_t* begin() {
    constexpr trace_value_t kStoredBefore = TRACE_STORED | TRACE_BEFORE;
    profiler.spec.reset(trace_vlist_table_alloc());
    profiler.tables = std::make_unique<ValueTables>();
    profiler.totals = {};
    const Kinds& kinds = profiler.kinds;
    if (kinds.loads) capture(is_load, {TRACE_LOADED});
    if (kinds.stores) capture(is_store, {TRACE_STORED, kStoredBefore});
    if (kinds.results) capture(is_any, {TRACE_DESTINATION});
    if (kinds.operands)
        capture(is_any, {TRACE_SOURCE0 | TRACE_BEFORE, TRACE_SOURCE1 | TRACE_BEFORE});
    if (!kinds.stores)
        for (const Event event : {kStores, kSilent}) profiler.host->leave_out(profiler.host, event);
    return profiler.spec.get();
}

void end() {
    profiler.spec.reset();
    profiler.tables.reset();
}

// Whether a value has all that the instruction stores: not of wide vectors, scatters and repeated
// strings.
bool is_whole_store(const trace_parser_t* parser, const trace_instr_t& instr, std::uint32_t index) {
    constexpr std::uint32_t kValueBytes = 8;
    return trace_parser_stored_bytes(parser, index) <= kValueBytes &&
           (instr.flags & TRACE_INSTR_VARIABLE) == 0;
}

// What a site's values are for. Other profilers may ask for other values.
ValueTable table_for(const trace_site_t& site, bool whole_store) {
    ValueTable table;
    table.instr = site.instr;
    const auto use = [&](bool wanted, Operand operand, Role role = Role::kCounted) {
        if (!wanted) return;
        table.list = static_cast<std::uint8_t>(operand);
        table.role = role;
    };
    if (site.kind != TRACE_SITE_VALUE) return table;
    const Kinds& kinds = profiler.kinds;
    switch (site.operand) {
        case TRACE_LOADED:
            use(kinds.loads, Operand::kLoaded);
            break;
        case TRACE_STORED:
            use(kinds.stores, Operand::kStored, whole_store ? Role::kStored : Role::kCounted);
            break;
        case TRACE_STORED | kBefore:
            use(kinds.stores && whole_store, Operand::kStored, Role::kOverwritten);
            break;
        case TRACE_DESTINATION:
            use(kinds.results, Operand::kResult);
            break;
        case TRACE_SOURCE0 | kBefore:
            use(kinds.operands, Operand::kFirstSource);
            break;
        case TRACE_SOURCE1 | kBefore:
            use(kinds.operands, Operand::kSecondSource);
            break;
        default:
            break;
    }
    return table;
}

int process(uint32_t /*pid*/, trace_parser_t* parser, const vsample_t** samples) {
    *samples = nullptr;
    std::size_t site_count = 0, instr_count = 0, count = 0;
    const trace_site_t* sites = trace_parser_sites(parser, &site_count);
    const trace_record_t* records = trace_parser_records(parser, &count);
    const trace_instr_t* instrs = trace_parser_instrs(parser, &instr_count);
    ValueTables& tables = *profiler.tables;
    for (std::size_t i = tables.by_site.size(); i < site_count; ++i) {
        const trace_instr_t& instr = instrs[sites[i].instr];
        tables.add(table_for(sites[i], is_whole_store(parser, instr, sites[i].instr)), instr.pc);
    }
    if (tables.by_instr.size() < instr_count) tables.by_instr.resize(instr_count);
    tables.half = {};
    tables.count(records, count);
    if (plugins::samples_bursts(profiler.host)) profiler.totals.touch(tables, records, count);
    return 0;
}

// --- At the end.

void add(std::uint64_t pc, std::uint32_t event, std::uint64_t weight, std::uint64_t value = 0) {
    profiler.samples.add(pc, event, weight, value);
}

void add_summary(std::uint64_t pc, std::uint32_t list, Summary summary) {
    summary.shorten(kMostValues);
    add(pc, kVals, summary.total);
    add(pc, kZeros, summary.zeros);
    add(pc, kSame, summary.repeated);
    add(pc, kTop, summary.top());
    for (const Counted& each : summary.values) add(pc, VP_VALUE_OF(list), each.count, each.value);
    add(pc, VP_VALUE_REST(list), summary.rest(), summary.error);
}

int finish(uint32_t /*pid*/, trace_parser_t* parser, const vsample_t** samples) {
    profiler.samples.clear();
    *samples = nullptr;
    if (std::exchange(profiler.finished, true)) return 0;
    std::size_t instr_count = 0;
    const trace_instr_t* instrs = trace_parser_instrs(parser, &instr_count);
    for (const auto& [place, site] : profiler.tables->first_sites)
        add_summary(place.first, place.second, profiler.tables->summary(site));
    const std::vector<StoreCounts>& by_instr = profiler.tables->by_instr;
    for (std::size_t i = 0; i < by_instr.size(); ++i) {
        add(instrs[i].pc, kSilent, by_instr[i].silent);
        add(instrs[i].pc, kStores, by_instr[i].stores);
    }
    return profiler.samples.give(samples);
}

// Of which the error is estimated, behind each burst. Where there are none, nobody asks.
int totals(uint32_t /*pid*/, trace_parser_t* /*parser*/, uint64_t* by_event, uint32_t /*count*/) {
    const ValueTables& tables = *profiler.tables;
    const Totals all = profiler.totals.of(tables);
    by_event[kVals] += all.values;
    by_event[kZeros] += all.zeros;
    by_event[kSame] += all.repeated;
    by_event[kTop] += all.top;
    by_event[kSilent] += tables.of_all_instrs.silent;
    by_event[kStores] += tables.of_all_instrs.stores;
    return 0;
}

const char* summarise(const uint64_t* totals, uint32_t count) {
    if (count != kEvents) return nullptr;
    const auto line = [&](const char* what, Event part, Event whole) {
        return std::string(what) + plugins::right(plugins::with_commas(totals[part]), 18) + "  (" +
               plugins::percent(totals[part], totals[whole], 1) + ")\n";
    };
    profiler.text = "values:       " + plugins::right(plugins::with_commas(totals[kVals]), 18) +
                    "\n" + line("  most frequent:", kTop, kVals) +
                    line("  as before:    ", kSame, kVals) +
                    line("  zeros:        ", kZeros, kVals);
    if (totals[kStores] != 0) profiler.text += line("silent stores:  ", kSilent, kStores);
    return profiler.text.c_str();
}

// --- For tools.

const char* list_preface(const trace_instr_t* instr, uint32_t list) {
    if (list >= kListNames.size()) return nullptr;
    profiler.reading = reading_of(*instr, static_cast<Operand>(list));
    return kListNames[list];
}

const char* format_value(const trace_instr_t* /*instr*/, uint64_t value) {
    profiler.text = format(profiler.reading, value);
    return profiler.text.c_str();
}

}  // namespace
}  // namespace classic

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch;
const vp_dispatch_t assay_vp_dispatch = {
    .size = sizeof(vp_dispatch_t),
    .abi_version = VP_ABI_VERSION,
    .vp_name = classic::name,
    .vp_description = classic::description,
    .vp_init = classic::initialise,
    .vp_release = classic::release,
    .vp_events = plugins::table<classic::kEventTable>,
    .vp_derived = plugins::table<classic::kDerivedTable>,
    .vp_option_table = plugins::table<classic::kOptionTable>,
    .vp_options = classic::receive_options,
    .vp_prof_init = classic::begin,
    .vp_prof_release = classic::end,
    .vp_prof_process = classic::process,
    .vp_finish = classic::finish,
    .vp_summary = classic::summarise,
    .vp_preface = nullptr,
    .vp_format = classic::format_value,
    .vp_value_lists = plugins::table<classic::kListNames>,
    .vp_list_preface = classic::list_preface,
    .vp_totals = classic::totals,
};
