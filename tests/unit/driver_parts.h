// The native driver's parts, put together around a trace segment and some code, without a program
// that runs.
#pragma once

#include "framework/collector/trace/segment.h"
#include "framework/driver/native/trace/thread_trace.h"
#include "framework/driver/native/translate/translator.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstring>
#include <initializer_list>
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
        cache.initialise(*context, trace.spec());
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

    assay::collector::Segment segment;
    assay::native::TraceTables trace;
    assay::native::ThreadTrace buffers;
    assay::native::Context* context = nullptr;
    assay::native::MemoryMap memory;
    assay::native::CodeWatch watch{memory};
    assay::native::CodeCache cache;
    assay::native::Regions regions;
    assay::native::Translator translator{memory, watch, cache, regions, trace};
    std::uint64_t start = 0;  // of the code, and of a page
};
