#include "framework/symbols/debug_info_pool.h"

#include <exception>

namespace assay::symbols {

namespace {

constexpr std::size_t kMostBytes = std::size_t{256} << 20;

}  // namespace

bool DebugInfoPool::knows(const std::string& object_path) {
    const std::lock_guard lock(mutex_);
    return known_.contains(object_path);
}

void DebugInfoPool::open(const std::string& object_path) {
    {
        const std::lock_guard lock(mutex_);
        if (bytes_ >= kMostBytes || known_.contains(object_path)) return;
    }
    try {
        give_back(object_path, std::make_unique<DebugInfo>(object_path, debug_root_, cache_));
    } catch (const std::exception&) {
        // Whoever takes the object will learn why.
    }
}

std::unique_ptr<DebugInfo> DebugInfoPool::take(const std::string& object_path) {
    {
        const std::lock_guard lock(mutex_);
        known_.insert(object_path);
        if (auto entry = opened_.extract(object_path)) {
            bytes_ -= entry.mapped()->decompressed_bytes();
            return std::move(entry.mapped());
        }
    }
    return std::make_unique<DebugInfo>(object_path, debug_root_, cache_);
}

void DebugInfoPool::forget(const std::string& object_path) {
    const std::lock_guard lock(mutex_);
    known_.erase(object_path);
    if (const auto entry = opened_.extract(object_path))
        bytes_ -= entry.mapped()->decompressed_bytes();
}

void DebugInfoPool::give_back(const std::string& object_path, std::unique_ptr<DebugInfo> info) {
    const std::lock_guard lock(mutex_);
    known_.insert(object_path);
    if (bytes_ >= kMostBytes) return;
    bytes_ += info->decompressed_bytes();
    opened_[object_path] = std::move(info);
}

}  // namespace assay::symbols
