// Opened debug information that waits for the one who needs it.
#pragma once

#include "framework/symbols/debug_info.h"

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace assay::symbols {

// Any thread may call it, but for one object only one at a time.
class DebugInfoPool {
  public:
    DebugInfoPool(std::string debug_root, ImageCache cache)
        : debug_root_(std::move(debug_root)), cache_(std::move(cache)) {}

    // Whether the object was opened or taken before.
    bool knows(const std::string& object_path);
    // Opens an object before it is taken, unless that was done before, or is not worth it: most
    // programs load libraries of which they execute little, and all that waits is in memory.
    void open(const std::string& object_path);
    // Opens the object if that was not done before. Throws what DebugInfo throws.
    std::unique_ptr<DebugInfo> take(const std::string& object_path);
    // As if the object had never been opened.
    void forget(const std::string& object_path);
    // Keeps what was taken for the next who takes it, if it is worth it.
    void give_back(const std::string& object_path, std::unique_ptr<DebugInfo> info);

  private:
    const std::string debug_root_;
    const ImageCache cache_;

    std::mutex mutex_;
    std::set<std::string> known_;  // were opened, or taken
    std::map<std::string, std::unique_ptr<DebugInfo>> opened_;
    std::size_t bytes_ = 0;  // that were decompressed for them
};

}  // namespace assay::symbols
