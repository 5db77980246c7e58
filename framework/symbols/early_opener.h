// Opens the debug information of objects on a thread of its own, before it is needed.
#pragma once

#include "framework/symbols/debug_info.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace assay::symbols {

class EarlyOpener {
  public:
    EarlyOpener(std::string debug_root, ImageCache cache)
        : debug_root_(std::move(debug_root)), cache_(std::move(cache)) {}
    // Waits for at most one object: the one that is being opened. The others are left.
    ~EarlyOpener();
    EarlyOpener(const EarlyOpener&) = delete;
    EarlyOpener& operator=(const EarlyOpener&) = delete;

    // Objects are opened one after the other. Those that were wanted before are not again.
    void want(const std::string& object_path);
    // Opens the object here and now, unless it was wanted before.
    void open(const std::string& object_path);
    // Keeps what was taken for the next who takes it.
    void put_back(const std::string& object_path, std::unique_ptr<DebugInfo> info);
    // Opens the object here if it was not its turn yet.
    std::unique_ptr<DebugInfo> take(const std::string& object_path);

  private:
    void work();
    void keep(const std::string& object_path, std::unique_ptr<DebugInfo> info);  // under mutex_

    std::unique_ptr<DebugInfo> try_to_open(const std::string& object_path) const;

    const std::string debug_root_;
    const ImageCache cache_;
    std::set<std::string> wanted_;  // ever

    std::mutex mutex_;
    std::condition_variable changed_;  // anything below
    std::deque<std::string> waiting_;
    std::string opening_;  // empty if none is
    std::map<std::string, std::unique_ptr<DebugInfo>> opened_;
    std::size_t bytes_ = 0;  // that were decompressed for them
    bool ends_ = false;
    std::thread thread_;
};

}  // namespace assay::symbols
