#include "framework/symbols/early_opener.h"

#include <algorithm>
#include <exception>
#include <system_error>

namespace assay::symbols {

namespace {

// No more objects are opened early once so much has been decompressed: most programs load
// libraries of which they execute little, and all that waits here is in memory at once.
constexpr std::size_t kMostBytes = std::size_t{256} << 20;

}  // namespace

// Null if it cannot be opened: whoever takes the object will learn why.
std::unique_ptr<DebugInfo> EarlyOpener::try_to_open(const std::string& object_path) const {
    try {
        return std::make_unique<DebugInfo>(object_path, debug_root_, cache_);
    } catch (const std::exception&) {
        return nullptr;
    }
}

EarlyOpener::~EarlyOpener() {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void EarlyOpener::want(const std::string& object_path) {
    if (!wanted_.insert(object_path).second) return;
    {
        const std::lock_guard lock(mutex_);
        waiting_.push_back(object_path);
    }
    changed_.notify_all();
    if (thread_.joinable()) return;
    try {
        thread_ = std::thread(&EarlyOpener::work, this);
    } catch (const std::system_error&) {
        // There can be no more threads: take() opens everything.
    }
}

void EarlyOpener::open(const std::string& object_path) {
    const std::lock_guard lock(mutex_);
    if (bytes_ >= kMostBytes || !wanted_.insert(object_path).second) return;
    if (std::unique_ptr<DebugInfo> info = try_to_open(object_path)) {
        keep(object_path, std::move(info));
    }
}

void EarlyOpener::put_back(const std::string& object_path, std::unique_ptr<DebugInfo> info) {
    const std::lock_guard lock(mutex_);
    wanted_.insert(object_path);
    if (bytes_ < kMostBytes) keep(object_path, std::move(info));
}

void EarlyOpener::keep(const std::string& object_path, std::unique_ptr<DebugInfo> info) {
    bytes_ += info->decompressed_bytes();
    opened_[object_path] = std::move(info);
}

std::unique_ptr<DebugInfo> EarlyOpener::take(const std::string& object_path) {
    {
        std::unique_lock lock(mutex_);
        std::erase(waiting_, object_path);
        changed_.wait(lock, [&] { return opening_ != object_path; });
        if (auto entry = opened_.extract(object_path)) {
            bytes_ -= entry.mapped()->decompressed_bytes();
            return std::move(entry.mapped());
        }
    }
    return std::make_unique<DebugInfo>(object_path, debug_root_, cache_);
}

void EarlyOpener::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ends_ || (!waiting_.empty() && bytes_ < kMostBytes); });
        if (ends_) return;
        opening_ = waiting_.front();
        waiting_.pop_front();
        lock.unlock();
        std::unique_ptr<DebugInfo> info = try_to_open(opening_);
        lock.lock();
        if (info != nullptr) keep(opening_, std::move(info));
        opening_.clear();
        changed_.notify_all();
    }
}

}  // namespace assay::symbols
