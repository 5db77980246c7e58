// A process of assay's own process group, which tells what signals are sent to all of the group: to
// whom kill(2) has sent one, its receivers cannot see.
#pragma once

#include <sys/types.h>

namespace assay::collector {

class Witness {
  public:
    // Forks, with all signals blocked. If that fails, nothing is ever seen.
    Witness();
    // Ends the process.
    ~Witness();
    Witness(const Witness&) = delete;
    Witness& operator=(const Witness&) = delete;

    // Whether this signal, which the calling process has just got from that sender, has come to the
    // witness as well, or comes soon: waits for that a moment. Async-signal-safe, and in any
    // thread, also when the process has ended.
    static bool saw(int signal, pid_t sender);
    void end();
    // In another process that fork(2) has made of this one.
    void abandon();

  private:
    pid_t pid_ = -1;
};

}  // namespace assay::collector
