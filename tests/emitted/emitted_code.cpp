// emitted-code FILE...
//
// Prints what the native driver makes of each unit of the programs' code, under many combinations
// of captures: a line for each unit, with the combination, where the unit begins, and digests of
// its hot code, of its cold code, and of what is noted of it (exits, points of recovery, sites).
// For whoever changes how code is emitted and means to change nothing of what is:
//
//     build/tests/emitted/emitted-code build/tests/programs/* > before
//     (change, build)
//     build/tests/emitted/emitted-code build/tests/programs/* | diff before -
//
// Nothing of the programs is executed. Code is put where the driver would put it, at addresses that
// are the same each time.
#include "framework/collector/trace/segment.h"
#include "framework/driver/native/load/elf_functions.h"
#include "framework/driver/native/machine/own_descriptors.h"
#include "framework/driver/native/trace/thread_trace.h"
#include "framework/driver/native/translate/translator.h"

#include <elf.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace assay;
using namespace assay::native;

// The executable parts of a file, and the offsets of its functions.
struct Code {
    std::string bytes;
    std::vector<std::uint64_t> functions;
};

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "emitted-code: %s\n", what.c_str());
    std::exit(1);
}

// Empty where the file is no program.
Code code_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string file{std::istreambuf_iterator<char>(in), {}};
    Elf64_Ehdr header{};
    if (file.size() < sizeof header || file.compare(0, SELFMAG, ELFMAG) != 0) return {};
    std::memcpy(&header, file.data(), sizeof header);
    Code code;
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment{};
        std::memcpy(&segment, file.data() + header.e_phoff + i * sizeof segment, sizeof segment);
        if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
        code.bytes = file.substr(segment.p_offset, segment.p_filesz);
        for_each_function(path, [&](const char*, std::uint64_t offset) {
            if (offset - segment.p_offset < segment.p_filesz)
                code.functions.push_back(offset - segment.p_offset);
        });
        break;
    }
    std::sort(code.functions.begin(), code.functions.end());
    return code;
}

struct Combination {
    std::string name;
    trace::Spec spec{};
    std::vector<trace_value_t> values;  // of all instructions
};

// Each choice of each kind with each of the others.
std::vector<Combination> combinations() {
    using Choice = std::pair<const char*, void (*)(Combination&)>;
    const std::vector<std::vector<Choice>> kinds{
        {{"", [](Combination&) {}},
         {"counts ", [](Combination& c) { c.spec.captures |= trace::kCaptureBlockCounts; }},
         {"intervals ",
          [](Combination& c) {
              c.spec.captures |= trace::kCaptureBlockCounts;
              c.spec.interval = 1000;
          }},
         {"bursts ",
          [](Combination& c) {
              c.spec.captures |= trace::kCaptureBlockCounts;
              c.spec.regions.sample_burst = 1000;
              c.spec.regions.sample_period = 100000;
              c.spec.regions.sample_interval = 1000;
          }},
         {"range ",
          [](Combination& c) {
              c.spec.captures |= trace::kCaptureBlockCounts;
              c.spec.regions.from_instruction = 1000;
              c.spec.regions.to_instruction = 2000;
          }}},
        {{"", [](Combination&) {}},
         {"references ", [](Combination& c) { c.spec.captures |= trace::kCaptureReferences; }},
         {"filtered ",
          [](Combination& c) {
              c.spec.captures |= trace::kCaptureReferences;
              c.spec.data = {64, 64};
          }},
         {"misses ",
          [](Combination& c) {
              c.spec.captures |= trace::kCaptureReferences;
              c.spec.data = {64, 64};
              c.spec.data.ways = 12;
          }},
         {"footprints ",
          [](Combination& c) {
              c.spec.captures |= trace::kCaptureReferences;
              c.spec.data = {64, 64};
              c.spec.data.kind = trace::Filter::kFootprints;
          }},
         {"footprints-code ",
          [](Combination& c) {
              c.spec.captures |= trace::kCaptureReferences | trace::kCaptureCode;
              c.spec.data = {64, 64};
              c.spec.data.kind = trace::Filter::kFootprints;
              c.spec.code_line = 64;
          }},
         {"runs ",
          [](Combination& c) {
              c.spec.captures |= trace::kCaptureReferences;
              c.spec.data.kind = trace::Filter::kRuns;
          }}},
        {{"", [](Combination&) {}},
         {"fetches ",
          [](Combination& c) {
              c.spec.captures |= trace::kCaptureFetches;
              c.spec.fetch = {64, 64};
          }},
         {"fetch misses ",
          [](Combination& c) {
              c.spec.captures |= trace::kCaptureFetches;
              c.spec.fetch = {64, 64};
              c.spec.fetch.ways = 8;
          }}},
        {{"", [](Combination&) {}},
         {"branches ",
          [](Combination& c) {
              c.spec.captures |= trace::kCaptureBranches;
              c.spec.branches =
                  TRACE_CONDITIONAL_BRANCHES | TRACE_INDIRECT_BRANCHES | TRACE_RETURNS;
          }},
         {"predictions ",
          [](Combination& c) {
              c.spec.captures |= trace::kCapturePredictions | trace::kCaptureBlockCounts;
              c.spec.predictor = {4, 10, 9};
          }}},
        {{"", [](Combination&) {}},
         {"calls repeats ",
          [](Combination& c) {
              c.spec.captures |= trace::kCaptureCalls | trace::kCaptureRepeats;
          }}},
        {{"", [](Combination&) {}},
         {"values ", [](Combination& c) {
              c.spec.captures |= trace::kCaptureValues;
              c.values = {TRACE_EFFECTIVE_ADDRESS,
                          TRACE_LOADED,
                          TRACE_STORED,
                          TRACE_DESTINATION,
                          TRACE_SOURCE0,
                          static_cast<trace_value_t>(TRACE_STORED | TRACE_BEFORE),
                          TRACE_BRANCH_TAKEN,
                          TRACE_BRANCH_TARGET,
                          TRACE_LATENCY,
                          TRACE_VECTOR0};
          }}}};
    std::vector<Combination> all{{}};
    for (const std::vector<Choice>& choices : kinds) {
        std::vector<Combination> longer;
        for (const Combination& so_far : all)
            for (const auto& [name, apply] : choices) {
                longer.push_back(so_far);
                longer.back().name += name;
                apply(longer.back());
            }
        all = std::move(longer);
    }
    return all;
}

// FNV-1a.
class Digest {
  public:
    void add(const void* data, std::size_t bytes) {
        const auto* at = static_cast<const unsigned char*>(data);
        for (std::size_t i = 0; i < bytes; ++i) value_ = (value_ ^ at[i]) * 0x100000001b3ULL;
    }
    void add(std::uint64_t number) { add(&number, sizeof number); }
    unsigned long long value() const { return value_; }

  private:
    std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

// A driver without a program that runs.
class Driver {
  public:
    explicit Driver(const Combination& combination) {
        segment_.control().spec = combination.spec;
        if (!combination.values.empty()) select_all(combination.values);
        if (!trace_.attach({.segment_fd = dup(segment_.fd())})) fail("no trace segment");
        Context* const context = buffers_.map(trace_, 0, trace::kBufferCount);
        if (context == nullptr || !cache_.reserve()) fail("no memory");
        window_ = cache_.open_window();
        regions_.initialise(trace_.spec());
        cache_.initialise(*context, trace_.spec(), trace_.object_runs().regions());
    }

    void translate(const Code& code, const std::string& name) {
        void* const memory = mmap(reinterpret_cast<void*>(window_), code.bytes.size() + kMargin,
                                  PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) fail("no memory");
        const auto start = reinterpret_cast<std::uint64_t>(memory);
        std::memcpy(memory, code.bytes.data(), code.bytes.size());
        memory_.add({.start = start, .end = start + code.bytes.size()});
        std::vector<std::uint64_t> waiting;
        for (const std::uint64_t function : code.functions) waiting.push_back(start + function);
        std::set<std::uint64_t> known;
        while (!waiting.empty() && !cache_.nearly_full()) {
            const std::uint64_t pc = waiting.back();
            waiting.pop_back();
            if (pc - start >= code.bytes.size() || !known.insert(pc).second) continue;
            const Block* const block =
                translator_.translate(pc, kCollecting, known.size() % 2 == 0);
            if (block == nullptr) continue;
            const Unit& unit = cache_.units()[block->unit];
            print(unit, name, pc - start);
            for (std::uint32_t i = 0; i < unit.exit_count; ++i)
                waiting.push_back(cache_.exits()[unit.first_exit + i].target);
        }
    }

  private:
    static constexpr std::size_t kMargin = 4096;

    void select_all(const std::vector<trace_value_t>& values) {
        for (auto& map : segment_.value_lists().lists)
            for (auto& opcode : map)
                for (trace::ValueList& list : opcode) {
                    list.selected = 1;
                    for (const trace_value_t value : values)
                        list.values[list.count++] = trace::value_byte(value);
                }
    }

    static unsigned long long digest(std::uint64_t begin, std::uint64_t end) {
        Digest digest;
        digest.add(reinterpret_cast<const void*>(begin), end - begin);
        return digest.value();
    }

    void print(const Unit& unit, const std::string& name, std::uint64_t offset) {
        Digest noted;
        for (std::uint32_t i = 0; i < unit.exit_count; ++i) {
            const Exit& exit = cache_.exits()[unit.first_exit + i];
            noted.add(static_cast<std::uint64_t>(exit.kind));
            noted.add(exit.target);
            noted.add(exit.stub);
            noted.add(exit.jump);
            noted.add(exit.counted_beyond);
            noted.add(exit.first_site);
        }
        for (std::uint32_t i = 0; i < unit.point_count; ++i)
            noted.add(&cache_.points()[unit.first_point + i], sizeof(RecoveryPoint));
        for (std::uint32_t i = 0; i < unit.block_count; ++i) {
            const Block& block = cache_.blocks()[unit.first_block + i];
            noted.add(block.entry);
            noted.add(block.entry_fetched);
            noted.add(block.entry_counted);
            noted.add(block.landing);
            noted.add(block.to_count);
        }
        for (std::uint32_t site = unit.first_site; site < unit.end_site; ++site)
            noted.add(&segment_.sites()[site], sizeof(trace_site_t));
        std::printf("%s 0x%llx hot %llu %016llx cold %llu %016llx noted %016llx\n", name.c_str(),
                    static_cast<unsigned long long>(offset),
                    static_cast<unsigned long long>(unit.hot_end - unit.hot_begin),
                    digest(unit.hot_begin, unit.hot_end),
                    static_cast<unsigned long long>(unit.cold_end - unit.cold_begin),
                    digest(unit.cold_begin, unit.cold_end), noted.value());
    }

    collector::Segment segment_;
    TraceTables trace_{kDescriptorCare};
    ThreadTrace buffers_;
    MemoryMap memory_;
    CodeWatch watch_{memory_};
    CodeCache cache_;
    Regions regions_;
    AllocationFunctions allocation_functions_;
    assay::driver::Interpreter interpreter_;
    Translator translator_{memory_,      watch_, cache_, regions_, allocation_functions_,
                           interpreter_, trace_};
    std::uint64_t window_ = 0;
};

// In a process of its own: all begin with the same address space.
void print_all(const Code& code, const std::string& file, const Combination& combination) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const auto driver = std::make_unique<Driver>(combination);
        driver->translate(code, file + " [" + combination.name + "]");
        std::fflush(stdout);
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        fail(file + " [" + combination.name + "]: the driver ended with status " +
             std::to_string(status));
}

}  // namespace

int main(int argc, char** argv) {
    constexpr unsigned long kQuery = 0xffffffff;
    const int now = personality(kQuery);
    if (!(now & ADDR_NO_RANDOMIZE)) {
        if (personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) < 0)
            fail("personality(2) is refused, so that addresses would differ each time");
        execv("/proc/self/exe", argv);
        fail("cannot be executed again");
    }
    for (int i = 1; i < argc; ++i) {
        const std::string path = argv[i];
        const Code code = code_of(path);
        if (code.functions.empty()) continue;
        for (const Combination& combination : combinations())
            print_all(code, path.substr(path.rfind('/') + 1), combination);
    }
}
