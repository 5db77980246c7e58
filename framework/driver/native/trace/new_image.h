// A further process image that is profiled: its trace segment and its lifeline, which the driver
// makes and announces to the collector's side (framework/trace/launch.h).
#pragma once

#include "framework/trace/segment_layout.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace assay::native {

class NewImage {
  public:
    // `values`: null if none are captured. `number`: within its process. Nothing is announced yet;
    // usable() tells whether it can be.
    NewImage(const trace::Spec& spec, const trace::ValueLists* values, std::uint32_t number);
    // Closes what nobody has taken.
    ~NewImage();
    NewImage(const NewImage&) = delete;
    NewImage& operator=(const NewImage&) = delete;

    bool usable() const { return lifeline_[1] >= 0; }
    // Into the segment, at an offset. False if there is no memory.
    bool write(std::uint64_t offset, const void* bytes, std::size_t count) const;
    // The events that its log begins with.
    bool write_log(const std::string& events) const;
    // False if there is nobody who receives.
    bool announce(int channel);
    // After the announcement: it will never run.
    void cancel() const;

    int segment() const { return segment_; }
    int lifeline() const { return lifeline_[1]; }
    // The descriptor, which is no longer closed here.
    int take_segment();
    int take_lifeline();

  private:
    int segment_ = -1;
    int lifeline_[2] = {-1, -1};
};

}  // namespace assay::native
