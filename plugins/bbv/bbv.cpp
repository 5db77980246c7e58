// The bbv profiler: basic block vectors for SimPoint, in exp-bbv's files.
#include "plugins/bbv/block_numbers.h"
#include "plugins/bbv/thread_vectors.h"
#include "plugins/bbv/vector_line.h"
#include "plugins/common/profiler.h"
#include "plugins/common/text.h"

#include "assay/vprofiler.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bbv {
namespace {

using plugins::rows;

struct Settings {
    std::uint64_t interval_size = 100'000'000;
    std::string bb_out_file;
    std::optional<std::string> pc_out_file;
    bool instr_count_only = false;
};

struct Profiler {
    plugins::TraceSpec spec;
    const vp_host_t* host = nullptr;
    Settings settings;
    BlockNumbers numbers;
    VectorLine line;
    std::vector<bool> with_control_words;  // by block: it has fldcw
    std::map<std::uint32_t, ThreadVectors> threads;
    bool finished = false;         // the files are complete
    std::uint32_t next_instr = 0;  // of vp_finish
    plugins::Samples samples;
    std::string summary;
};
Profiler profiler;

constexpr std::array<vp_event_t, 1> kEvents{{{"Ir", "instructions executed", "instructions"}}};

constexpr std::array<vp_option_t, 4> kOptions{{
    {"interval-size", "N", "100000000", "Instructions of an interval.", VP_OPTION_UNSIGNED, 0},
    {"bb-out-file", "FILE", "bb.out.%p",
     "Where the block vectors go; .gz and .zst compress. Threads but the first have .2, .3, ... "
     "appended.",
     VP_OPTION_OUTPUT_FILE, 0},
    {"pc-out-file", "FILE", nullptr,
     "Where the address and the function of each block go; no such file without it.",
     VP_OPTION_OUTPUT_FILE, 0},
    {"instr-count-only", nullptr, "no", "Write the totals only, and no vectors.", VP_OPTION_YES_NO,
     0},
}};

const char* name() {
    return "bbv";
}
const char* description() {
    return "writes basic block vectors, from which assay simpoint finds the phases of a program";
}
int init(const vp_host_t* host) {
    profiler = {};
    profiler.host = host;
    return 0;
}

int fail(const std::string& why) {
    return plugins::fail(profiler.host, why);
}
int cannot_write(const std::string& path) {
    return fail("cannot write " + path + ": " + std::strerror(errno));
}

bool apply(Settings& settings, std::string_view option, std::string_view value, std::string& why) {
    if (option == "interval-size") {
        constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
        settings.interval_size = std::strtoull(std::string(value).c_str(), nullptr, 10);
        why = "use a number of instructions from 1 to 2^62";
        if (settings.interval_size == 0 || settings.interval_size > kMost)
            return plugins::unusable(option, value, why);
    } else if (option == "bb-out-file" || option == "pc-out-file") {
        why = "use the name of a file";
        if (value.empty()) return plugins::unusable(option, value, why);
        if (option == "bb-out-file")
            settings.bb_out_file = value;
        else
            settings.pc_out_file = value;
    } else {
        settings.instr_count_only = value == "yes";
    }
    return true;
}

int options(const vp_setting_t* given, std::uint32_t count) {
    return plugins::receive(profiler.host, {given, count}, profiler.settings, apply);
}

trace_vlist_table_t* prof_init() {
    profiler.spec.reset(trace_vlist_table_alloc());
    trace_capture_intervals(profiler.spec.get(), profiler.settings.interval_size);
    trace_capture_repeats(profiler.spec.get());
    return profiler.spec.get();
}

// The first thread's file has the name as it was given.
ThreadVectors& vectors_of(std::uint32_t thread) {
    const std::string& path = profiler.settings.bb_out_file;
    return profiler.threads
        .try_emplace(thread, thread == 0 ? path : with_suffix(path, std::to_string(thread + 1)))
        .first->second;
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

unsigned control_words(const trace_block_t& block, const trace_parser_t* parser) {
    const auto instrs = rows(trace_parser_instrs, parser);
    const auto own = instrs.subspan(block.first_instr, block.instr_count);
    return static_cast<unsigned>(std::count_if(own.begin(), own.end(), loads_control_word));
}

// What an interval adds to the totals of its thread.
void add_totals(Totals& totals, const trace_interval_t& interval, const trace_parser_t* parser) {
    const auto blocks = rows(trace_parser_blocks, parser);
    std::vector<bool>& known = profiler.with_control_words;
    for (std::size_t i = known.size(); i < blocks.size(); ++i)
        known.push_back(control_words(blocks[i], parser) != 0);
    totals.instructions += interval.instructions;
    for (std::uint32_t i = 0; i < interval.block_count; ++i) {
        const trace_interval_block_t& part = interval.blocks[i];
        if (known[part.block]) totals.with_control_words[part.block] += part.instructions;
    }
}

std::uint64_t executed_control_words(const Totals& totals, const trace_parser_t* parser) {
    std::uint64_t sum = 0;
    for (const auto& [index, instructions] : totals.with_control_words) {
        const trace_block_t& block = rows(trace_parser_blocks, parser)[index];
        sum += instructions / block.instr_count * control_words(block, parser);
    }
    return sum;
}

// exp-bbv counts each iteration, and once more where the instruction finds that rcx is zero.
void add_repetitions(const trace_parser_t* parser) {
    const auto sites = rows(trace_parser_sites, parser);
    const auto instrs = rows(trace_parser_instrs, parser);
    Totals* totals = nullptr;
    for (const trace_record_t& record : rows(trace_parser_records, parser)) {
        const trace_site_t& site = sites[record.site];
        if (site.kind != TRACE_SITE_COUNT) continue;
        if (!(instrs[site.instr].flags & TRACE_INSTR_REPEATED)) continue;
        if (totals == nullptr) totals = &vectors_of(trace_parser_get_thread(parser)).totals;
        ++totals->repeated;
        totals->repetitions += record.value + (record.aux == 0 ? 1 : 0);
    }
}

// Bounds the number of open files.
int suspend_some() {
    constexpr std::size_t kMostFiles = 64;
    std::vector<ThreadVectors*> open;
    for (auto& [thread, vectors] : profiler.threads)
        if (vectors.is_open()) open.push_back(&vectors);
    if (open.size() <= kMostFiles) return 0;
    for (ThreadVectors* vectors : open)
        if (!vectors->suspend()) return cannot_write(vectors->path());
    return 0;
}

int process(std::uint32_t, trace_parser_t* parser, const vsample_t** samples) {
    *samples = nullptr;
    add_repetitions(parser);
    while (const trace_interval_t* interval = trace_parser_next_interval(parser)) {
        ThreadVectors& vectors = vectors_of(interval->thread);
        add_totals(vectors.totals, *interval, parser);
        if (profiler.settings.instr_count_only) continue;
        if (interval->instructions == 0) continue;  // the one before has taken its end with it
        const bool was_open = vectors.is_open();
        if (!vectors.write(profiler.line.write(*interval, profiler.numbers,
                                               rows(trace_parser_blocks, parser))))
            return cannot_write(vectors.path());
        if (!was_open && suspend_some() < 0) return -1;
    }
    return 0;
}

// In exp-bbv's words.
std::string text_of(std::uint32_t thread, const Totals& totals, const trace_parser_t* parser) {
    const std::uint64_t size = profiler.settings.interval_size;
    const auto scaled = [&](std::uint64_t count) {
        return plugins::scaled(count, trace_parser_scale(parser));
    };
    return "# Thread " + std::to_string(thread + 1) +
           "\n#   Total intervals: " + std::to_string(totals.instructions / size) +
           " (Interval Size " + std::to_string(size) +
           ")\n#   Total instructions: " + std::to_string(totals.instructions) +
           "\n#   Total reps: " + std::to_string(scaled(totals.repetitions)) +
           "\n#   Unique reps: " + std::to_string(scaled(totals.repeated)) +
           "\n#   Total fldcw instructions: " +
           std::to_string(executed_control_words(totals, parser)) + "\n\n";
}

// That which is not inlined; "" if it is not known.
std::string function_at(std::uint64_t pc, const trace_parser_t* parser) {
    std::size_t count = 0;
    const trace_frame_t* frames = trace_parser_frames(parser, pc, &count);
    const std::string name = frames[count - 1].function;
    return name == "???" ? "" : name;
}

// A line for each block: its number, address and function.
int write_pcs(trace_parser_t* parser) {
    const std::string& path = *profiler.settings.pc_out_file;
    std::vector<std::uint64_t> pcs;
    for (const NumberedBlock& block : profiler.numbers.by_address()) pcs.push_back(block.pc);
    trace_parser_prepare_frames(parser, pcs.data(), pcs.size());
    std::string text;
    for (std::size_t i = 0; i < pcs.size(); ++i) {
        char start[48];
        std::snprintf(start, sizeof start, "F:%u:%llx:", profiler.numbers.by_address()[i].number,
                      static_cast<unsigned long long>(pcs[i]));
        text += start + function_at(pcs[i], parser) + "\n";
    }
    const auto file = open_output(path, false);
    return file && file->write(text) && file->close() ? 0 : cannot_write(path);
}

int finish_files(trace_parser_t* parser) {
    while (const trace_interval_t* rest = trace_parser_next_interval(parser))
        if (rest->instructions != 0) add_totals(vectors_of(rest->thread).totals, *rest, parser);
    for (auto& [thread, vectors] : profiler.threads) {
        if (vectors.totals.instructions == 0) continue;
        const std::string text = text_of(thread, vectors.totals, parser);
        if (!vectors.finish("\n\n" + text)) return cannot_write(vectors.path());
        profiler.summary += text;
    }
    if (!profiler.threads.empty())
        profiler.host->describe(profiler.host, "block vectors",
                                profiler.settings.bb_out_file.c_str());
    if (!profiler.settings.pc_out_file) return 0;
    profiler.host->describe(profiler.host, "block addresses",
                            profiler.settings.pc_out_file->c_str());
    return write_pcs(parser);
}

int finish(std::uint32_t, trace_parser_t* parser, const vsample_t** samples) {
    constexpr std::size_t kBatch = 65'536;
    if (!profiler.finished && finish_files(parser) < 0) return -1;
    profiler.finished = true;
    profiler.samples.clear();
    const auto instrs = rows(trace_parser_instrs, parser);
    for (std::uint32_t& i = profiler.next_instr;
         i < instrs.size() && profiler.samples.size() < kBatch; ++i)
        profiler.samples.add(instrs[i].pc, 0, trace_parser_count(parser, i));
    return profiler.samples.give(samples);
}

int totals_so_far(std::uint32_t, trace_parser_t* parser, std::uint64_t* totals, std::uint32_t) {
    const auto instrs = rows(trace_parser_instrs, parser);
    totals[0] = 0;
    for (std::uint32_t i = 0; i < instrs.size(); ++i) totals[0] += trace_parser_count(parser, i);
    return 0;
}

const char* summary(const std::uint64_t*, std::uint32_t) {
    return profiler.summary.c_str();
}

void prof_release() {
    profiler.spec.reset();
    profiler.threads.clear();
}

}  // namespace
}  // namespace bbv

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch = {
    .size = sizeof(vp_dispatch_t),
    .abi_version = VP_ABI_VERSION,
    .vp_name = bbv::name,
    .vp_description = bbv::description,
    .vp_init = bbv::init,
    .vp_events = plugins::table<bbv::kEvents>,
    .vp_option_table = plugins::table<bbv::kOptions>,
    .vp_options = bbv::options,
    .vp_prof_init = bbv::prof_init,
    .vp_prof_release = bbv::prof_release,
    .vp_prof_process = bbv::process,
    .vp_finish = bbv::finish,
    .vp_summary = bbv::summary,
    .vp_totals = bbv::totals_so_far,
};
