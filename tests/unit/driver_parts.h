// The native driver's parts, put together around a trace segment and some code, without a program
// that runs.
#pragma once

#include "framework/collector/trace/segment.h"
#include "framework/driver/native/machine/own_descriptors.h"
#include "framework/driver/native/trace/thread_trace.h"
#include "framework/driver/native/translate/translator.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <csignal>
#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

// What the cache profiler asks for.
inline constexpr assay::trace::Spec kEverything{assay::trace::kCaptureBlockCounts |
                                                    assay::trace::kCaptureReferences |
                                                    assay::trace::kCaptureFetches,
                                                {64, 64},
                                                {64, 64}};

struct Assembled {
    const char* text;  // for the reader
    std::vector<std::uint8_t> bytes;
};

// While there is one, C++ may touch memory that the target named and that is not there: see glue.S.
class TargetMemoryFaults {
  public:
    TargetMemoryFaults() {
        struct sigaction action {};
        action.sa_sigaction = leave;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigaction(SIGSEGV, &action, &before_);
    }
    ~TargetMemoryFaults() { sigaction(SIGSEGV, &before_, nullptr); }
    TargetMemoryFaults(const TargetMemoryFaults&) = delete;
    TargetMemoryFaults& operator=(const TargetMemoryFaults&) = delete;

  private:
    static void leave(int, siginfo_t*, void* ucontext) {
        greg_t& rip = static_cast<ucontext_t*>(ucontext)->uc_mcontext.gregs[REG_RIP];
        const auto is_between = [&rip](const void* begin, const void* end) {
            return reinterpret_cast<greg_t>(begin) <= rip && rip < reinterpret_cast<greg_t>(end);
        };
        if (is_between(reinterpret_cast<const void*>(&assay_copy), assay_copy_end))
            rip = reinterpret_cast<greg_t>(assay_copy_end);
        else if (is_between(reinterpret_cast<const void*>(&assay_touch), assay_touch_end))
            rip = reinterpret_cast<greg_t>(assay_touch_end);
        else
            signal(SIGSEGV, SIG_DFL);
    }

    struct sigaction before_ {};
};

class DriverParts {
  public:
    static constexpr std::size_t kCodeBytes = std::size_t{256} * 1024;

    explicit DriverParts(const assay::trace::Spec& spec = kEverything) {
        segment.control().spec = spec;
        REQUIRE(trace.attach({.segment_fd = dup(segment.fd())}));
        context = buffers.map(trace, 0, assay::trace::kBufferCount);
        REQUIRE(context != nullptr);
        REQUIRE(cache.reserve());
        // In reach of the code cache, as the program's code is.
        start = cache.open_window();
        void* memory_there = mmap(reinterpret_cast<void*>(start), kCodeBytes,
                                  PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        start = reinterpret_cast<std::uint64_t>(memory_there);
        REQUIRE(memory_there != MAP_FAILED);
        std::memset(memory_there, 0xcc, kCodeBytes);
        memory.add({.start = start, .end = start + kCodeBytes});
        cache.initialise(*context, trace.spec(), trace.object_runs().regions());
    }
    DriverParts(const DriverParts&) = delete;
    DriverParts& operator=(const DriverParts&) = delete;

    // Puts code there; returns its address.
    std::uint64_t code(std::uint64_t offset, std::initializer_list<Assembled> instructions) {
        auto* to = reinterpret_cast<std::uint8_t*>(start + offset);
        for (const Assembled& instruction : instructions)
            to = std::copy(instruction.bytes.begin(), instruction.bytes.end(), to);
        return start + offset;
    }

    assay::native::Instruction decoded(const Assembled& instruction) {
        assay::native::Instruction result;
        const std::uint64_t pc = code(0, {instruction});
        REQUIRE(translator.decoder().decode(
            std::span(reinterpret_cast<const std::uint8_t*>(pc), 15), pc, result));
        return result;
    }
    // Those of the buffer that is being filled.
    std::span<const trace_record_t> records() const {
        const auto& slot = *reinterpret_cast<const assay::trace::ThreadSlot*>(
            reinterpret_cast<const unsigned char*>(context) + assay::native::kSlotOffset);
        const auto* first = reinterpret_cast<const trace_record_t*>(slot.buffer_start.load());
        return {first, reinterpret_cast<const trace_record_t*>(slot.cursor.load())};
    }

    assay::collector::Segment segment;
    assay::native::TraceTables trace{assay::native::kDescriptorCare};
    assay::native::ThreadTrace buffers;
    assay::native::Context* context = nullptr;
    assay::native::MemoryMap memory;
    assay::native::CodeWatch watch{memory};
    assay::native::CodeCache cache;
    assay::native::Regions regions;
    assay::native::AllocationFunctions allocation_functions;
    assay::driver::Interpreter interpreter;
    assay::native::Translator translator{memory,      watch, cache, regions, allocation_functions,
                                         interpreter, trace};
    std::uint64_t start = 0;  // of the code, and of a page
};
