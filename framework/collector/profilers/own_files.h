// Files that the collector needs open, in a process that it shares with profilers: one that closes
// all descriptors, as daemons do, or one too often, would leave it waiting for ever.
#pragma once

#include <sys/types.h>
#include <vector>

namespace assay::collector {

class OwnFiles {
  public:
    // What is open under this descriptor has to stay so.
    void add(int descriptor);
    // Whether they all are what they were.
    bool are_open() const;

  private:
    struct File {
        int descriptor;
        dev_t device;
        ino_t inode;
    };
    std::vector<File> files_;
};

}  // namespace assay::collector
