// The effective-address profiler: the addresses that each instruction references, and their
// pattern.
#include "plugins/effective_address/report.h"
#include "plugins/effective_address/tracker.h"

#include <assay/profiler.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace effective_address {
namespace {

enum Event : uint32_t {
    kReferences,
    kConstant,
    kFew,
    kIrregular,
    kLines,
    kPages,
    kMisaligned,
    kLineCrossing,
    kPageCrossing,
    kFalselyShared,
    kTrulyShared,
    kPageShared,
    kEvents
};
using Counts = std::array<uint64_t, kEvents>;

constexpr std::array<vp_event_t, kEvents> kEventTable{{
    {"Refs", "data references", "references"},
    {"StrC", "references at the instruction's most frequent stride", "references"},
    {"StrF", "references at its next three strides", "references"},
    {"StrI", "references at other strides", "references"},
    {"Lines", "different lines of 64 bytes that the instruction touched", "lines"},
    {"Pages", "different pages of 4096 bytes that the instruction touched", "pages"},
    {"Misal", "misaligned references", "references"},
    {"LineX", "references across two lines", "references"},
    {"PageX", "references across two pages", "references"},
    {"FShr", "references to lines that another thread uses at other bytes, one of them writing",
     "references"},
    {"TShr", "references to lines that another thread uses at the same bytes, one of them writing",
     "references"},
    {"PShr", "references to pages that another thread uses, one of them writing", "references"},
}};

constexpr std::array<vp_derived_t, 6> kDerivedTable{{
    {"constant stride", "StrC / Refs", "%"},
    {"few strides", "StrF / Refs", "%"},
    {"irregular", "StrI / Refs", "%"},
    {"misaligned", "Misal / Refs", "%"},
    {"across lines", "LineX / Refs", "%"},
    {"falsely shared", "FShr / Refs", "%"},
}};

constexpr std::array<vp_option_t, 2> kOptionTable{{
    {"address-report", "FILE", nullptr,
     "Writes strides, footprint, alignment and sharing of every instruction as text.",
     VP_OPTION_OUTPUT_FILE, 0},
    {"hottest", "N", "8", "How many of an instruction's most frequent addresses are kept.",
     VP_OPTION_UNSIGNED, 0},
}};

// For example "walk.c:12 (by_rows)".
std::string place_of(const assay::Trace& trace, uint64_t pc) {
    const trace_frame_t& frame = trace.frames(pc).front();
    const std::string file = frame.file;
    return file.substr(file.rfind('/') + 1) + ":" + std::to_string(frame.line) + " (" +
           frame.function + ")";
}

// For example "table + 8", or "block of make.c:12 (make)"; "" if the data are unknown.
std::string data_at(const assay::Trace& trace, uint64_t address) {
    uint64_t offset = 0;
    const trace_data_object_t* const object = trace.data_object_at(address, offset);
    if (object == nullptr) return "";
    std::string name = object->name;
    if (object->kind == TRACE_DATA_STACK)
        name = "stack of thread " + std::to_string(object->thread + 1);
    else if (object->context != 0)
        name = "block of " + place_of(trace, trace.context_table()[object->context].call);
    else if (object->kind == TRACE_DATA_FILE)
        name = name.substr(name.rfind('/') + 1);
    if (name.empty()) return "";
    return offset == 0 ? name : name + " + " + std::to_string(offset);
}

// The member that the references of a site access, if they begin at the address.
Field field_at(const assay::Trace& trace, uint32_t site, uint64_t address) {
    Field field;
    uint64_t offset = 0;
    const trace_data_type_t* row = trace.data_type(trace.type_of_site(site, offset));
    for (; row != nullptr && row->outer != 0; row = trace.data_type(row->outer)) {
        field.member = row->name + (field.member.empty() ? "" : "." + field.member);
        field.aligned = row->name;
    }
    if (row == nullptr) return field;
    field.type = row->name;
    field.is_struct = row->kind == TRACE_TYPE_STRUCT;
    field.bytes = row->bytes;
    if (offset != UINT64_MAX) field.start = address - offset;
    return field;
}

// Calls `count(event, number)` for the events that do not depend on other operands.
template <typename Count>
void count_operand(const Operand& operand, const Count& count) {
    const Pattern pattern = operand.pattern();
    count(kReferences, operand.references());
    count(kConstant, pattern.constant);
    count(kFew, pattern.few);
    count(kIrregular, operand.references() - pattern.constant - pattern.few);
    count(kLines, operand.footprint().lines());
    count(kPages, operand.footprint().pages());
    count(kMisaligned, operand.alignment().misaligned);
    count(kLineCrossing, operand.alignment().line_crossing);
    count(kPageCrossing, operand.alignment().page_crossing);
}

class EffectiveAddressProfiler final : public assay::Profiler {
  public:
    static constexpr const char* kName = "effective_address";
    static constexpr const char* kDescription =
        "tells which addresses each instruction touches: strides, footprint, alignment, sharing";
    static constexpr const auto& kEvents = kEventTable;
    static constexpr const auto& kDerived = kDerivedTable;
    static constexpr const auto& kOptions = kOptionTable;
    static constexpr bool kPrintsValues = true;

    void option(std::string_view name, const std::string& value) override {
        constexpr std::size_t kMostHottest = Operand::kMostAddresses;
        if (name == "address-report") {
            report_file_ = value;
            return;
        }
        hottest_ = std::strtoull(value.c_str(), nullptr, 10);
        if (hottest_ > kMostHottest)
            throw assay::BadOption(name, value, "at most " + std::to_string(kMostHottest));
    }

    void capture(assay::Captures& wanted) override {
        wanted.runs();
        if (!is_sampled()) return;
        tracker_.note_changes();
        for (const uint32_t event : {kLines, kPages}) unscaled(event);
        for (const uint32_t event : {kFalselyShared, kTrulyShared, kPageShared})
            no_error(event, "bursts show part of what threads share");
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        try {
            track(trace);
        } catch (const std::bad_alloc&) {
            throw std::runtime_error("no memory for the addresses of thread " +
                                     std::to_string(trace.thread() + 1));
        }
    }

    void finish(assay::Trace& trace, assay::Samples&) override {
        tracker_.finish();
        const std::vector<Touch> touches = tracker_.sharing().touches();
        sharing_ = evaluate(
            touches, tracker_.sharing().scale(), tracker_.operands().size() + 1,
            [&](uint32_t number) { return tracker_.operand(number).writes(); }, tracker_.ends());
        report(trace);
        sharing_.lines.clear();  // they point into `touches`
        if (tracker_.sharing().scale() != 1)
            describe("Sharing",
                     "of one of " + std::to_string(tracker_.sharing().scale()) + " pages, scaled");
    }

    bool finish_more(assay::Trace&, assay::Samples& samples) override {
        constexpr std::size_t kPortion = 8192;
        const std::span<const Operand> operands = tracker_.operands();
        for (; next_operand_ < operands.size() && samples.size() < kPortion; ++next_operand_)
            add_operand(operands[next_operand_], sharing_.by_operand[next_operand_ + 1], samples);
        return next_operand_ < operands.size();
    }

    // For the estimated error after each burst. Runs of references do not cross bursts. Not called
    // in a run without bursts.
    void totals(assay::Trace&, std::span<uint64_t> by_event) {
        counted_.resize(tracker_.operands().size() + 1);
        for (const uint32_t number : tracker_.take_changed()) {
            Counts& counted = counted_[number];
            count_operand(tracker_.operand(number), [&](Event event, uint64_t now) {
                totals_[event] += now - std::exchange(counted[event], now);
            });
        }
        std::copy(totals_.begin(), totals_.end(), by_event.begin());
    }

    std::string summary(std::span<const uint64_t>) override { return summary_; }

    std::optional<std::string> preface(const trace_instr_t& instr, uint32_t) override {
        if (!(instr.flags & (TRACE_INSTR_LOAD | TRACE_INSTR_STORE))) return std::nullopt;
        return "addresses";
    }

    std::string format(const trace_instr_t&, uint64_t value) override {
        char text[24];
        std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
        return text;
    }

  private:
    void track(const assay::Trace& trace) {
        std::span<const trace_record_t> records = trace.records();
        const uint32_t thread = trace.thread();
        tracker_.learn(trace.sites(), trace.instrs().data());
        // The first thread is alone until it creates another thread.
        for (const trace_marker_t& marker : trace.markers()) {
            if (thread != 0 || !alone_) break;
            if (marker.operation != TRACE_MARKER_THREAD) continue;
            tracker_.process(thread, true, records.first(marker.record));
            records = records.subspan(marker.record);
            alone_ = false;
        }
        tracker_.process(thread, thread == 0 && alone_, records);
        if (const trace_marker_t* const ending = trace.thread_end())
            tracker_.end(thread, ending->address);
    }

    void report(const assay::Trace& trace) {
        const Results results{tracker_,
                              sharing_,
                              [&](uint64_t pc) { return place_of(trace, pc); },
                              [&](uint64_t address) { return data_at(trace, address); },
                              [&](uint32_t operand, uint64_t address) {
                                  return field_at(trace, tracker_.site(operand), address);
                              },
                              trace.scale()};
        trace.prepare_frames(report_file_.empty() ? instructions_of_summary(results)
                                                  : instructions_of_report(results));
        summary_ = summarise(results);
        if (!report_file_.empty() && !write_report(results, report_file_))
            warn("--address-report: " + report_file_ +
                 " cannot be written: " + std::strerror(errno));
    }

    void add_operand(const Operand& operand, const Shared& shared, assay::Samples& samples) const {
        const uint64_t pc = operand.pc();
        // Runs are recorded without their single references, so the contexts of these are unknown.
        const auto add = [&](Event event, uint64_t number) {
            samples.count(pc, event, number, event == kReferences ? 0 : VP_NO_CONTEXT);
        };
        count_operand(operand, add);
        add(kFalselyShared, shared.falsely);
        add(kTrulyShared, shared.truly);
        add(kPageShared, shared.pages);
        // References to addresses outside the list are returned together, so that shares refer to
        // all references.
        uint64_t others = operand.references(), least = operand.references();
        for (const Item& item : operand.addresses(hottest_)) {
            samples.value(pc, item.value, item.count);
            others -= std::min(others, item.count);
            least = item.count;
        }
        samples.rest(pc, std::min(others, least), others);
    }

    std::string report_file_;
    std::size_t hottest_ = 8;
    Tracker tracker_;
    bool alone_ = true;  // the first thread has not created another thread yet
    SharingResult sharing_;
    std::size_t next_operand_ = 0;  // position of finish_more()
    std::vector<Counts> counted_;   // by operand: its part of `totals_`
    Counts totals_{};               // the result of totals()
    std::string summary_;
};

}  // namespace
}  // namespace effective_address

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch =
    assay::dispatch<effective_address::EffectiveAddressProfiler>();
