#include "framework/symbols/background.h"

#include <exception>
#include <system_error>
#include <utility>

namespace assay::symbols {

void Background::end() {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void Background::add(Task task) {
    {
        const std::lock_guard lock(mutex_);
        waiting_.push_back(std::move(task));
    }
    changed_.notify_all();
    if (thread_.joinable()) return;
    try {
        thread_ = std::thread(&Background::work, this);
    } catch (const std::system_error&) {
        drop_waiting();
    }
}

void Background::drop_waiting() {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
}

void Background::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
        if (ends_) return;
        Task task = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        try {
            task();
        } catch (const std::exception&) {
        }
        task = {};
        lock.lock();
    }
}

}  // namespace assay::symbols
