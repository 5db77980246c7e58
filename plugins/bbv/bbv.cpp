// The bbv profiler: writes basic block vectors for SimPoint in exp-bbv's format.
#include "plugins/bbv/thread_vectors.h"

#include <assay/profiler.hpp>
#include <assay/text.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace bbv {
namespace {

struct Settings {
    std::uint64_t interval_size = 100'000'000;
    std::string bb_out_file;
    std::optional<std::string> pc_out_file;
    bool instr_count_only = false;
};

constexpr std::array<vp_event_t, 1> kEventTable{{{"Ir", "instructions executed", "instructions"}}};

constexpr std::array<vp_option_t, 4> kOptionTable{{
    {"interval-size", "N", "100000000",
     "Instructions of an interval; 10M is 10000000, and k and G stand for thousands and billions.",
     VP_OPTION_COUNT, 0},
    {"bb-out-file", "FILE", "bb.out.%p",
     "The file for block vectors; .gz and .zst compress. Threads after the first append .2, .3, "
     "... to its name.",
     VP_OPTION_OUTPUT_FILE, 0},
    {"pc-out-file", "FILE", nullptr,
     "The file for the address and function of each block; default: no such file.",
     VP_OPTION_OUTPUT_FILE, 0},
    {"instr-count-only", nullptr, "no", "Write the totals only, and no vectors.", VP_OPTION_YES_NO,
     0},
}};

[[noreturn]] void cannot_write(const std::string& path) {
    throw std::runtime_error("cannot write " + path + ": " + std::strerror(errno));
}

void apply(Settings& settings, std::string_view option, const std::string& value) {
    if (option == "interval-size") {
        constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
        settings.interval_size = std::strtoull(value.c_str(), nullptr, 10);
        if (settings.interval_size == 0 || settings.interval_size > kMost)
            throw assay::BadOption(option, value, "use a number of instructions from 1 to 2^62");
    } else if (option == "instr-count-only") {
        settings.instr_count_only = value == "yes";
    } else if (value.empty()) {
        throw assay::BadOption(option, value, "use the name of a file");
    } else if (option == "bb-out-file") {
        settings.bb_out_file = value;
    } else {
        settings.pc_out_file = value;
    }
}

// fldcw is D9 /5 with an operand in memory (Intel SDM volume 2).
bool loads_control_word(const trace_instr_t& instr) {
    constexpr std::uint16_t kOpcode = TRACE_OPCODE(0, 0xd9);
    constexpr unsigned kExtension = 5, kFirstRegister = 0xc0;
    if (instr.opcode != kOpcode) return false;
    const auto* opcode =
        static_cast<const std::uint8_t*>(std::memchr(instr.bytes, 0xd9, instr.length));
    if (opcode == nullptr || opcode + 1 == instr.bytes + instr.length) return false;
    return opcode[1] < kFirstRegister && (opcode[1] >> 3 & 7U) == kExtension;
}

unsigned control_words(const trace_block_t& block, const assay::Trace& trace) {
    const auto own = trace.instrs().subspan(block.first_instr, block.instr_count);
    return static_cast<unsigned>(std::count_if(own.begin(), own.end(), loads_control_word));
}

std::uint64_t executed_control_words(const Totals& totals, const assay::Trace& trace) {
    std::uint64_t sum = 0;
    for (const auto& [index, instructions] : totals.with_control_words) {
        const trace_block_t& block = trace.blocks()[index];
        sum += instructions / block.instr_count * control_words(block, trace);
    }
    return sum;
}

// The function whose code contains `pc`, without inlined functions; "" if it is unknown.
std::string function_at(std::uint64_t pc, const assay::Trace& trace) {
    const std::string name = trace.frames(pc).back().function;
    return name == "???" ? "" : name;
}

class BbvProfiler final : public assay::Profiler {
  public:
    static constexpr const char* kName = "bbv";
    static constexpr const char* kDescription =
        "writes basic block vectors, from which assay simpoint finds the phases of a program";
    static constexpr const auto& kEvents = kEventTable;
    static constexpr const auto& kOptions = kOptionTable;

    void option(std::string_view name, const std::string& value) override {
        apply(settings_, name, value);
    }

    void capture(assay::Captures& wanted) override {
        wanted.intervals(settings_.interval_size);
        wanted.repeats();
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        add_repetitions(trace);
        while (const auto interval = trace.next_interval()) {
            ThreadVectors& vectors = vectors_of(interval->thread);
            add_totals(vectors.totals, *interval, trace);
            if (settings_.instr_count_only) continue;
            if (interval->instructions == 0) continue;  // the thread ended with the last interval
            const bool was_open = vectors.is_open();
            if (!vectors.write(line_.write(interval->blocks, numbers_, trace.blocks())))
                cannot_write(vectors.path());
            if (!was_open) suspend_some();
        }
    }

    void finish(assay::Trace& trace, assay::Samples&) override {
        while (const auto rest = trace.next_interval())
            if (rest->instructions != 0) add_totals(vectors_of(rest->thread).totals, *rest, trace);
        for (auto& [thread, vectors] : threads_) {
            if (vectors.totals.instructions == 0) continue;
            const std::string text = text_of(thread, vectors.totals, trace);
            if (!vectors.finish("\n\n" + text)) cannot_write(vectors.path());
            summary_ += text;
        }
        if (!threads_.empty()) describe("block vectors", settings_.bb_out_file);
        if (!settings_.pc_out_file) return;
        describe("block addresses", *settings_.pc_out_file);
        write_pcs(*settings_.pc_out_file, trace);
    }

    bool finish_more(assay::Trace& trace, assay::Samples& samples) override {
        constexpr std::size_t kPortion = 65'536;
        const auto instrs = trace.instrs();
        for (; next_instr_ < instrs.size() && samples.size() < kPortion; ++next_instr_)
            samples.count(instrs[next_instr_].pc, 0, trace.count(next_instr_));
        return next_instr_ < instrs.size();
    }

    void totals(assay::Trace& trace, std::span<std::uint64_t> by_event) {
        for (std::uint32_t i = 0; i < trace.instrs().size(); ++i) by_event[0] += trace.count(i);
    }

    std::string summary(std::span<const std::uint64_t>) override { return summary_; }

  private:
    // The first thread's file has the name that the user gave.
    ThreadVectors& vectors_of(std::uint32_t thread) {
        const std::string& path = settings_.bb_out_file;
        return threads_
            .try_emplace(thread, thread == 0 ? path : with_suffix(path, std::to_string(thread + 1)))
            .first->second;
    }

    // Adds an interval to the totals of its thread.
    void add_totals(Totals& totals, const assay::Interval& interval, const assay::Trace& trace) {
        const auto blocks = trace.blocks();
        std::vector<bool>& known = with_control_words_;
        for (std::size_t i = known.size(); i < blocks.size(); ++i)
            known.push_back(control_words(blocks[i], trace) != 0);
        totals.instructions += interval.instructions;
        for (const trace_interval_block_t& part : interval.blocks)
            if (known[part.block]) totals.with_control_words[part.block] += part.instructions;
    }

    // exp-bbv counts each iteration, and once more when the instruction finds that rcx is zero.
    void add_repetitions(const assay::Trace& trace) {
        const auto sites = trace.sites();
        const auto instrs = trace.instrs();
        Totals* totals = nullptr;
        for (const trace_record_t& record : trace.records()) {
            const trace_site_t& site = sites[record.site];
            if (site.kind != TRACE_SITE_COUNT) continue;
            if (!(instrs[site.instr].flags & TRACE_INSTR_REPEATED)) continue;
            if (totals == nullptr) totals = &vectors_of(trace.thread()).totals;
            ++totals->repeated;
            totals->repetitions += record.value + (record.aux == 0 ? 1 : 0);
        }
    }

    // Limits the number of open files.
    void suspend_some() {
        constexpr std::size_t kMostFiles = 64;
        std::vector<ThreadVectors*> open;
        for (auto& [thread, vectors] : threads_)
            if (vectors.is_open()) open.push_back(&vectors);
        if (open.size() <= kMostFiles) return;
        for (ThreadVectors* vectors : open)
            if (!vectors->suspend()) cannot_write(vectors->path());
    }

    // The totals of a thread, in exp-bbv's words.
    std::string text_of(std::uint32_t thread, const Totals& totals,
                        const assay::Trace& trace) const {
        const std::uint64_t size = settings_.interval_size;
        const auto scaled = [&](std::uint64_t count) {
            return assay::scaled(count, trace.scale());
        };
        return "# Thread " + std::to_string(thread + 1) +
               "\n#   Total intervals: " + std::to_string(totals.instructions / size) +
               " (Interval Size " + std::to_string(size) +
               ")\n#   Total instructions: " + std::to_string(totals.instructions) +
               "\n#   Total reps: " + std::to_string(scaled(totals.repetitions)) +
               "\n#   Unique reps: " + std::to_string(scaled(totals.repeated)) +
               "\n#   Total fldcw instructions: " +
               std::to_string(executed_control_words(totals, trace)) + "\n\n";
    }

    // A line for each block: its number, address and function.
    void write_pcs(const std::string& path, const assay::Trace& trace) {
        std::vector<std::uint64_t> pcs;
        for (const NumberedBlock& block : numbers_.by_address()) pcs.push_back(block.pc);
        trace.prepare_frames(pcs);
        std::string text;
        for (const NumberedBlock& block : numbers_.by_address()) {
            char start[48];
            std::snprintf(start, sizeof start, "F:%u:%llx:", block.number,
                          static_cast<unsigned long long>(block.pc));
            text += start + function_at(block.pc, trace) + "\n";
        }
        const auto file = open_output(path, false);
        if (!file || !file->write(text) || !file->close()) cannot_write(path);
    }

    Settings settings_;
    BlockNumbers numbers_;
    VectorLine line_;
    std::vector<bool> with_control_words_;  // by block: it contains fldcw
    std::map<std::uint32_t, ThreadVectors> threads_;
    std::uint32_t next_instr_ = 0;  // position of finish_more()
    std::string summary_;
};

}  // namespace
}  // namespace bbv

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch = assay::dispatch<bbv::BbvProfiler>();
