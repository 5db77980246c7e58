// What is passed between the collector and the process of a profiler, as parts of messages.
#pragma once

#include "assay/vprofiler.h"
#include "framework/collector/hosted/channel.h"
#include "framework/collector/profilers/profiler_handle.h"

#include <cstdint>

namespace assay::collector {

// With the mapping that its pc was in when it was returned.
struct PlacedSample {
    vsample_t sample;
    std::uint64_t mapping;
};

void add(Message& message, const ProfilerFacts& facts);
// Throws GarbledMessage.
ProfilerFacts take_facts(Fields& fields);

}  // namespace assay::collector
