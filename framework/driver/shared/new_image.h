// A new process image that is profiled. The driver makes its trace segment and its lifeline, and
// announces both to the collector's side (framework/trace/launch.h).
#pragma once

#include "framework/trace/segment_layout.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace assay::driver {

class NewImage {
  public:
    // `values`: null if no values are captured. `number`: the image's number in its process.
    // `parent`: the process that started this one. It may have ended, so getppid(2) may name
    // another. Announces nothing yet. usable() is false if something failed.
    NewImage(const trace::Spec& spec, const trace::ValueLists* values, std::uint32_t number,
             int parent);
    // Closes the descriptors that were not taken.
    ~NewImage();
    NewImage(const NewImage&) = delete;
    NewImage& operator=(const NewImage&) = delete;

    bool usable() const { return lifeline_[1] >= 0; }
    // Writes into the segment at `offset`. False if there is no memory.
    bool write(std::uint64_t offset, const void* bytes, std::size_t count) const;
    // Writes the first events of the log.
    bool write_log(const std::string& events) const;
    // False if no process receives the announcement.
    bool announce(int channel);
    // Call this after the announcement if the image will never run.
    void cancel() const;

    int segment() const { return segment_; }
    int lifeline() const { return lifeline_[1]; }
    // These return the descriptor, and the caller then owns it.
    int take_segment();
    int take_lifeline();

  private:
    int segment_ = -1;
    int lifeline_[2] = {-1, -1};
};

}  // namespace assay::driver
