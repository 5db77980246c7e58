// The used-bytes profiler. It counts the bytes that are fetched into a cache, and those of them
// that are used.
#include "plugins/common/geometry.h"
#include "plugins/used_bytes/report.h"
#include "plugins/used_bytes/simulator.h"

#include <assay/profiler.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace used_bytes {
namespace {

enum Event : std::uint32_t { kRead, kUsed, kWasted, kAgain, kColumns, kEvents = 2 * kColumns };

constexpr std::array<vp_event_t, kEvents> kEventTable{{
    {"ReadB", "bytes of the lines fetched into the cache", "bytes"},
    {"UsedB", "bytes of them that were read or written before the line left the cache", "bytes"},
    {"WastedB", "bytes of them that were not", "bytes"},
    {"AgainB", "bytes of lines that had been fetched before", "bytes"},
    {"CodeReadB", "of ReadB, those fetched for instructions", "bytes"},
    {"CodeUsedB", "of UsedB, those of lines fetched for instructions", "bytes"},
    {"CodeWastedB", "of WastedB, those of lines fetched for instructions", "bytes"},
    {"CodeAgainB", "of AgainB, those of lines fetched for instructions", "bytes"},
}};

constexpr std::array<vp_derived_t, 4> kDerivedTable{{
    {"wasted", "WastedB / ReadB", "%"},
    {"code wasted", "CodeWastedB / CodeReadB", "%"},
    {"unique bytes", "ReadB - AgainB", ""},
    {"double read overhead", "AgainB / (ReadB - AgainB)", "%"},
}};

// Lists of values for each instruction that fetches enough lines: the number of lines by offset of
// a used byte, and by number of used bytes. Lines of code have the same two lists.
enum List : std::uint32_t { kOffsets, kBytes, kCodeLists };
constexpr std::array kListNames{"offsets", "bytes", "code_offsets", "code_bytes"};

struct Settings {
    cache::Geometry geometry{2097152, 8, 64};
    std::optional<SectionChoice> section;
    bool instructions = false;
    std::string report;  // file name, or ""
};

constexpr std::array<vp_option_t, 5> kOptionTable{{
    {"cache", "SIZE,WAYS,LINE", "2097152,8,64",
     "The cache that is simulated: bytes, associativity, bytes of a line.", VP_OPTION_TEXT, 0},
    {"LL", "SIZE,WAYS,LINE", nullptr, "The same as --cache.", VP_OPTION_TEXT, 0},
    {"instructions", "yes|no", "no", "Also fetches instructions through the cache.",
     VP_OPTION_YES_NO, 0},
    {"section", "NAME[#N]", nullptr,
     "Counts only fetches in phases of this name, or in the Nth of them.", VP_OPTION_TEXT, 0},
    {"usage-report", "FILE", nullptr,
     "Writes a text about sections, arenas, threads, and lines that are fetched more than once.",
     VP_OPTION_OUTPUT_FILE, 0},
}};

// Throws std::invalid_argument with the reason if the value is unusable.
void apply(Settings& settings, std::string_view name, std::string_view value) {
    if (name == "cache" || name == "LL") {
        std::string why;
        const auto geometry = cache::parse_geometry(value, why);
        if (!geometry) throw assay::BadOption(name, value, why);
        settings.geometry = *geometry;
    } else if (name == "section") {
        settings.section = parse_section(value);
        if (settings.section->name.empty())
            throw assay::BadOption(name, value, "name a phase of the program");
    } else if (name == "instructions") {
        settings.instructions = value == "yes";
    } else {
        settings.report = value;
    }
}

// The pcs of a point and of the calls that lead to it, innermost first.
std::vector<std::uint64_t> pcs_of(const assay::Trace& trace, const Point& point) {
    constexpr std::size_t kMost = 40;
    const auto contexts = trace.context_table();
    std::vector<std::uint64_t> pcs{trace.instrs()[point.by.instr].pc};
    for (std::uint32_t c = point.context; c != 0 && pcs.size() < kMost; c = contexts[c].parent)
        pcs.push_back(contexts[c].call);
    return pcs;
}

std::vector<std::string> stack_of(const assay::Trace& trace, const Point& point) {
    std::vector<std::string> lines;
    for (const std::uint64_t pc : pcs_of(trace, point))
        for (const trace_frame_t& frame : trace.frames(pc))
            lines.push_back(std::string(frame.function) + " (" + frame.file + ":" +
                            std::to_string(frame.line) + ")");
    return lines;
}

bool write_file(const std::string& name, const std::string& text) {
    std::FILE* const file = std::fopen(name.c_str(), "w");
    if (!file) return false;
    const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    return std::fclose(file) == 0 && written;
}

class UsedBytesProfiler final : public assay::Profiler {
  public:
    static constexpr const char* kName = "used_bytes";
    static constexpr const char* kDescription =
        "simulates one cache and counts how many of the fetched bytes are used";
    static constexpr const auto& kEvents = kEventTable;
    static constexpr const auto& kDerived = kDerivedTable;
    static constexpr const auto& kOptions = kOptionTable;
    static constexpr bool kPrintsValues = true;
    static constexpr const auto& kValueLists = kListNames;

    void option(std::string_view name, const std::string& value) override {
        apply(settings_, name, value);
    }
    void check_options() override {
        if (settings_.instructions) return;
        for (std::uint32_t event = kColumns; event < used_bytes::kEvents; ++event) leave_out(event);
    }

    void capture(assay::Captures& wanted) override {
        const cache::Geometry& geometry = settings_.geometry;
        describe("cache", cache::describe(geometry));
        try {
            simulator_ = std::make_unique<Simulator>(geometry, settings_.section);
        } catch (const std::bad_alloc&) {
            throw std::runtime_error(
                "no memory for the tables of the simulated cache; make it smaller with --cache");
        }
        wanted.footprints(geometry.line, static_cast<std::uint32_t>(geometry.sets()));
        if (settings_.instructions) wanted.code(geometry.line);
        wanted.calls();
        if (is_sampled()) capture_bursts(wanted);
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        try {
            simulator_->process(trace.sites(), {.thread = trace.thread(),
                                                .records = trace.records(),
                                                .contexts = trace.contexts(),
                                                .markers = trace.markers(),
                                                .footprints = trace.footprints(),
                                                .warms_up = trace.is_warm_up()});
        } catch (const std::bad_alloc&) {
            throw std::runtime_error("no memory for the histories of the program's cache lines");
        }
    }

    void finish(assay::Trace& trace, assay::Samples& samples) override {
        simulator_->finish();
        add_all(trace, samples);
        add_patterns(trace, samples);
        report(trace);
    }

    // The totals whose sampling error is estimated.
    void totals(assay::Trace&, std::span<std::uint64_t> by_event) {
        const Accounts& accounts = simulator_->accounts();
        by_event[kRead] = accounts.total().lines * simulator_->line_bytes();
        by_event[kColumns + kRead] = accounts.code().lines * simulator_->line_bytes();
    }

    std::string summary(std::span<const std::uint64_t>) override { return summary_; }

    std::optional<std::string> preface(const trace_instr_t&, std::uint32_t list) override {
        constexpr std::array kPrefaces{
            "used in lines it fetched, by offset", "used bytes of such a line",
            "used in lines fetched for code, by offset", "used bytes of such a line of code"};
        if (list >= kPrefaces.size()) return std::nullopt;
        return kPrefaces[list];
    }

  private:
    // Bursts can count only fetched lines, and only if the cache is warm.
    void capture_bursts(assay::Captures& wanted) const {
        constexpr std::uint64_t kInstructionsPerLine = 20;  // as in the cache profiler
        wanted.warm_up(kInstructionsPerLine * settings_.geometry.size / settings_.geometry.line);
        for (const std::uint32_t first : {0U, std::uint32_t{kColumns}}) {
            for (const Event event : {kUsed, kWasted})
                no_error(first + event, "uses after a burst are not seen");
            no_error(first + kAgain, "fetches between bursts are not seen");
        }
    }

    void add_usage(std::uint64_t pc, const Point& point, assay::Samples& samples) const {
        const Usage& usage = point.usage;
        const std::uint64_t line = simulator_->line_bytes();
        const auto add = [&](std::uint32_t event, std::uint64_t weight) {
            samples.count(pc, event, weight, point.context);
        };
        for (const std::uint32_t first : {0U, std::uint32_t{kColumns}}) {
            if (first != 0 && !point.by.code) return;
            add(first + kRead, usage.lines * line);
            add(first + kUsed, usage.used);
            add(first + kWasted, usage.lines * line - usage.used);
            add(first + kAgain, usage.again * line);
        }
    }

    void add_all(const assay::Trace& trace, assay::Samples& samples) const {
        const auto instrs = trace.instrs();
        for (const Point& point : simulator_->accounts().points())
            add_usage(instrs[point.by.instr].pc, point, samples);
    }

    // Leaves out instructions that fetch less than a thousandth of all lines, because the lists are
    // long.
    void add_patterns(const assay::Trace& trace, assay::Samples& samples) const {
        constexpr std::uint64_t kLeast = 1000;
        const Accounts& accounts = simulator_->accounts();
        const std::uint32_t part = std::max(simulator_->line_bytes() / kParts, 1U);
        for (const auto& [by, number] : accounts.pattern_numbers()) {
            const Pattern& pattern = accounts.pattern(number);
            if (pattern.lines == 0 || pattern.lines * kLeast < accounts.total().lines) continue;
            const std::uint64_t pc = trace.instrs()[by.instr].pc;
            const std::uint32_t lists = std::uint32_t{by.code} * kCodeLists;
            for (std::uint32_t i = 0; i < kParts; ++i)
                samples.value(pc, std::uint64_t{i} * part, pattern.lines_with(i), lists + kOffsets);
            for (std::uint32_t i = 1; i <= kParts; ++i)
                samples.value(pc, std::uint64_t{i} * part, pattern.part_count[i], lists + kBytes);
        }
    }

    void prepare_stacks(const assay::Trace& trace) const {
        const Accounts& accounts = simulator_->accounts();
        std::vector<std::uint64_t> pcs;
        for (const PointNumber point : points_of_report(accounts))
            for (const std::uint64_t pc : pcs_of(trace, accounts.points()[point]))
                pcs.push_back(pc);
        trace.prepare_frames(pcs);
    }

    // Warns if phases do not match, are too deep, or if the wanted one has not begun.
    void warn_of_sections() const {
        const Sections& sections = simulator_->accounts().sections();
        if (const std::uint64_t stray = sections.stray_ends())
            warn(std::to_string(stray) + " phases ended that had not begun in their thread");
        if (const std::uint64_t deep = sections.left_out())
            warn(std::to_string(deep) + " phases began within " +
                 std::to_string(Sections::kMostDepth) +
                 " others that had not ended, and are not counted separately; end each phase");
        if (const std::string why = sections.why_nothing(); !why.empty())
            warn("--section=" + used_bytes::describe(*settings_.section) + ": " + why);
    }

    void report(const assay::Trace& trace) {
        const Accounts& accounts = simulator_->accounts();
        const ReportInput input{
            accounts, cache::describe(settings_.geometry), simulator_->line_bytes(),
            [&](PointNumber point) { return stack_of(trace, accounts.points()[point]); },
            trace.scale()};
        summary_ = short_report(input);
        warn_of_sections();
        const std::string& file = settings_.report;
        if (file.empty()) return;
        prepare_stacks(trace);
        if (!write_file(file, long_report(input)))
            warn("cannot write " + file + ": " + std::strerror(errno));
    }

    Settings settings_;
    std::unique_ptr<Simulator> simulator_;
    std::string summary_;
};

}  // namespace
}  // namespace used_bytes

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch =
    assay::dispatch<used_bytes::UsedBytesProfiler>();
