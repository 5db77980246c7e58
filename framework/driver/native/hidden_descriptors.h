// The descriptors that the driver holds while the program runs, and the system calls by which the
// program could meet them: for the program they do not exist.
#pragma once

#include "framework/trace/launch.h"

namespace assay::native {

class HiddenDescriptors {
  public:
    void take(const trace::Launch& launch);

    // Where new images are announced; -1 if children are not followed.
    int channel() const { return channel_; }
    bool hides(long descriptor) const {
        return descriptor >= 0 && (descriptor == channel_ || descriptor == lifeline_);
    }
    // The child of a fork leaves its parent's lifeline to the parent; `own`: its own, or -1.
    void replace_lifeline(int own);
    // close_range(2) for all but these.
    long close_range(unsigned first, unsigned last, unsigned flags) const;

  private:
    int channel_ = -1, lifeline_ = -1;
};

}  // namespace assay::native
