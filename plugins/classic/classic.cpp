// Value profiles. Counts the values that an instruction loads, stores, computes and gets as
// operands, with the most frequent ones (Calder, Feller, Eustace, "Value profiling", MICRO 1997).
// Also counts stores that change nothing (Lepak, Lipasti, "On the value locality of store
// instructions", ISCA 2000).
#include "plugins/classic/value_table.h"

#include <assay/profiler.hpp>
#include <assay/text.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace classic {
namespace {

constexpr std::size_t kMostValues = 64;  // returned for one list, as many as assay keeps

enum Event : std::uint32_t { kVals, kZeros, kSame, kTop, kStores, kSilent, kEvents };
constexpr std::array<vp_event_t, kEvents> kEventTable{{
    {"Vals", "values seen", "values"},
    {"Zeros", "values that were zero", "values"},
    {"Same", "values equal to the one before of the same instruction", "values"},
    {"Top", "values equal to the most frequent one of the same instruction", "values"},
    {"Stores", "stores of up to 64 bytes, compared with what they overwrote", "stores"},
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
     "Values to count: of loads, stores (and whether they change anything), results (first "
     "destination register), operands (first two source registers).",
     VP_OPTION_TEXT, 0},
}};

// The names of the lists, by enum Operand.
constexpr std::array<const char*, 5> kListNames{"loaded", "stored", "result", "first-operand",
                                                "second-operand"};

// The kinds of values that --values= selects.
struct Kinds {
    bool loads = true, stores = true, results = false, operands = false;
};

constexpr std::uint8_t kBefore = 128;  // in a site's operand: TRACE_BEFORE

Kinds kinds_of(std::string_view option, std::string_view kinds) {
    Kinds chosen{false, false, false, false};
    const std::map<std::string_view, bool*> known{{"loads", &chosen.loads},
                                                  {"stores", &chosen.stores},
                                                  {"results", &chosen.results},
                                                  {"operands", &chosen.operands}};
    for (;;) {
        const std::string_view kind = kinds.substr(0, kinds.find(','));
        const auto found = known.find(kind);
        if (found == known.end())
            throw assay::BadOption(
                option, kind, "unknown kind of values; use loads, stores, results or operands");
        *found->second = true;
        if (kind.size() == kinds.size()) return chosen;
        kinds.remove_prefix(kind.size() + 1);
    }
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

// The number of 8-byte parts in which all bytes of a store are recorded. 0 if some bytes are not
// recorded: for scatters, repeated strings, fnstenv's 14 bytes and stores of more than 64 bytes.
unsigned parts_of_store(const assay::Trace& trace, std::uint32_t instr) {
    constexpr std::uint32_t kPartBytes = 8, kWithoutItsEnd = 14;
    const std::uint32_t bytes = trace.stored_bytes(instr);
    if (bytes > kPartBytes * kMostParts || bytes == kWithoutItsEnd) return 0;
    if ((trace.instrs()[instr].flags & TRACE_INSTR_VARIABLE) != 0) return 0;
    return std::max((bytes + kPartBytes - 1) / kPartBytes, 1U);
}

// The number of the part that a site has. Parts follow the site of the first one.
unsigned part_of(std::span<const trace_site_t> sites, std::size_t site) {
    unsigned part = 0;
    while (sites[site].kind == TRACE_SITE_VALUE_REST && part < site) --site, ++part;
    return part;
}

// The use of a site's values. Sites that only other profilers asked for are ignored. `store_parts`
// is the number of parts that the instruction stores.
ValueTable table_for(const trace_site_t& site, const Kinds& kinds, unsigned part,
                     unsigned store_parts) {
    ValueTable table;
    table.instr = site.instr;
    const bool whole_store = part < store_parts;
    const bool wide = site.kind == TRACE_SITE_VALUE_REST;
    const bool of_store = (site.operand & ~kBefore) == TRACE_STORED;
    if (whole_store && of_store) {
        table.part = static_cast<std::uint8_t>(part);
        table.parts = static_cast<std::uint8_t>(store_parts);
    }
    const auto use = [&](bool wanted, Operand operand, Role role = Role::kCounted) {
        if (!wanted) return;
        table.list = static_cast<std::uint8_t>(operand);
        table.role = role;
    };
    if (site.kind != TRACE_SITE_VALUE && !(wide && of_store && whole_store)) return table;
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

// Each execution has the same number of values, so kVals counts in contexts. The contexts of the
// other events are unknown.
void add_summary(std::uint64_t pc, std::uint32_t list, Summary summary, assay::Samples& samples) {
    summary.shorten(kMostValues);
    samples.count(pc, kVals, summary.total);
    samples.count(pc, kZeros, summary.zeros, VP_NO_CONTEXT);
    samples.count(pc, kSame, summary.repeated, VP_NO_CONTEXT);
    samples.count(pc, kTop, summary.top(), VP_NO_CONTEXT);
    for (const Counted& each : summary.values) samples.value(pc, each.value, each.count, list);
    samples.rest(pc, summary.error, summary.rest(), list);
}

class ClassicProfiler final : public assay::Profiler {
  public:
    static constexpr const char* kName = "classic";
    static constexpr const char* kDescription =
        "keeps the most frequent values that each instruction loads, stores and computes";
    static constexpr const auto& kEvents = kEventTable;
    static constexpr const auto& kDerived = kDerivedTable;
    static constexpr const auto& kOptions = kOptionTable;
    static constexpr bool kPrintsValues = true;
    static constexpr const auto& kValueLists = kListNames;

    void option(std::string_view name, const std::string& value) override {
        kinds_ = kinds_of(name, value);
    }

    void capture(assay::Captures& wanted) override {
        constexpr trace_value_t kStored = TRACE_STORED | TRACE_WIDE;
        if (kinds_.loads) wanted.values({TRACE_LOADED}, is_load);
        if (kinds_.stores) wanted.values({kStored, kStored | TRACE_BEFORE}, is_store);
        if (kinds_.results) wanted.values({TRACE_DESTINATION}, is_any);
        if (kinds_.operands)
            wanted.values({TRACE_SOURCE0 | TRACE_BEFORE, TRACE_SOURCE1 | TRACE_BEFORE}, is_any);
        if (!kinds_.stores)
            for (const Event event : {kStores, kSilent}) leave_out(event);
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        const auto sites = trace.sites();
        const auto instrs = trace.instrs();
        const auto records = trace.records();
        for (std::size_t i = tables_.by_site.size(); i < sites.size(); ++i) {
            const std::uint32_t instr = sites[i].instr;
            tables_.add(
                table_for(sites[i], kinds_, part_of(sites, i), parts_of_store(trace, instr)),
                instrs[instr].pc);
        }
        if (tables_.by_instr.size() < instrs.size()) tables_.by_instr.resize(instrs.size());
        tables_.half = {};
        tables_.count(records.data(), records.size());
        if (is_sampled()) totals_.touch(tables_, records.data(), records.size());
    }

    void finish(assay::Trace& trace, assay::Samples& samples) override {
        for (const auto& [place, site] : tables_.first_sites)
            add_summary(place.first, place.second, tables_.summary(site), samples);
        const std::vector<StoreCounts>& by_instr = tables_.by_instr;
        for (std::size_t i = 0; i < by_instr.size(); ++i) {
            const std::uint64_t pc = trace.instrs()[i].pc;
            samples.count(pc, kSilent, by_instr[i].silent, VP_NO_CONTEXT);
            samples.count(pc, kStores, by_instr[i].stores);
        }
    }

    // For the estimated error after each burst. Not called in a run without bursts.
    void totals(assay::Trace&, std::span<std::uint64_t> by_event) {
        const Totals all = totals_.of(tables_);
        by_event[kVals] = all.values;
        by_event[kZeros] = all.zeros;
        by_event[kSame] = all.repeated;
        by_event[kTop] = all.top;
        by_event[kSilent] = tables_.of_all_instrs.silent;
        by_event[kStores] = tables_.of_all_instrs.stores;
    }

    std::string summary(std::span<const std::uint64_t> totals) override {
        const auto line = [&](const char* what, Event part, Event whole) {
            return std::string(what) + assay::right(assay::with_commas(totals[part]), 18) + "  (" +
                   assay::percent(totals[part], totals[whole], 1) + ")\n";
        };
        std::string text = "values:       " + assay::right(assay::with_commas(totals[kVals]), 18) +
                           "\n" + line("  most frequent:", kTop, kVals) +
                           line("  as before:    ", kSame, kVals) +
                           line("  zeros:        ", kZeros, kVals);
        if (totals[kStores] != 0) text += line("silent stores:  ", kSilent, kStores);
        return text;
    }

    std::optional<std::string> preface(const trace_instr_t& instr, std::uint32_t list) override {
        if (list >= kListNames.size()) return std::nullopt;
        reading_ = reading_of(instr, static_cast<Operand>(list));
        return kListNames[list];
    }

    std::string format(const trace_instr_t&, std::uint64_t value) override {
        return classic::format(reading_, value);
    }

  private:
    Kinds kinds_;
    ValueTables tables_;
    RunningTotals totals_;
    Reading reading_ = Reading::kInteger;  // how to read the list whose preface was printed
};

}  // namespace
}  // namespace classic

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch =
    assay::dispatch<classic::ClassicProfiler>();
