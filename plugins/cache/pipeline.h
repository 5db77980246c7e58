// Work in two stages: the first is done by a thread of its own, the second by the caller's, each
// for one piece after the other, in the order in which they come.
#pragma once

#include <sched.h>
#include <signal.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace cache {

template <typename Piece>
class Pipeline {
  public:
    using Stage = std::function<void(Piece&)>;

    // `threaded`: the first stage is worth a thread, where there is a processor for it.
    Pipeline(bool threaded, Stage first, Stage second)
        : first_(std::move(first)),
          second_(std::move(second)),
          has_thread_(threaded && can_have_thread()) {}
    Pipeline(const Pipeline&) = delete;
    Pipeline& operator=(const Pipeline&) = delete;
    ~Pipeline() {
        if (!worker_.joinable()) return;
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
        }
        work_.notify_one();
        worker_.join();
    }

    // Whether there is a processor for a thread.
    static bool can_have_thread() {
        cpu_set_t set;
        return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
    }

    // A piece to be filled: one that is done with, or a new one.
    std::unique_ptr<Piece> empty() {
        if (free_.empty()) return std::make_unique<Piece>();
        std::unique_ptr<Piece> piece = std::move(free_.back());
        free_.pop_back();
        return piece;
    }
    // Whether pieces go to another thread, so that what they refer to must stay.
    bool has_thread() const { return has_thread_; }
    // The first stage is not worth a thread any more. All pieces are behind both stages then.
    void do_without_thread() {
        finish();
        has_thread_ = false;
    }

    // The next piece. Both stages may be done now or later; what the first throws comes out of here
    // or of finish().
    void put(std::unique_ptr<Piece> piece) {
        if (!has_thread_) {
            first_(*piece);
            second_(*piece);
            free_.push_back(std::move(piece));
            return;
        }
        if (!worker_.joinable()) start();
        std::size_t left = 0;
        {
            const std::lock_guard lock(mutex_);
            waiting_.push_back(std::move(piece));
            left = waiting_.size();
        }
        // To wake the thread takes as long as some pieces: it is not done for each.
        if (left >= kWakeAt) work_.notify_one();
        take_ready(left >= kMost ? kMost / 2 : kMost);
    }
    // Until all pieces are behind the first stage: what that reads can be changed then.
    void settle() {
        std::unique_lock lock(mutex_);
        wait_for(lock, 0);
    }
    // Until all are behind both.
    void finish() { take_ready(0); }

  private:
    static constexpr std::size_t kMost = 32, kWakeAt = 4;
    // Rather than let the first stage run dry, the second one lets so many wait.
    static constexpr std::size_t kFew = 8, kMostReady = 64;

    // Does the second stage of what is behind the first, and waits until at most so many are not.
    void take_ready(std::size_t most_waiting) {
        std::unique_lock lock(mutex_);
        wait_for(lock, most_waiting);
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
        const bool all = most_waiting == 0;
        while (!ready_.empty() && (all || waiting_.size() >= kFew || ready_.size() > kMostReady)) {
            std::unique_ptr<Piece> piece = std::move(ready_.front());
            ready_.pop_front();
            lock.unlock();
            second_(*piece);
            free_.push_back(std::move(piece));
            lock.lock();
        }
    }

    // The thread's own piece is one that waits.
    bool are_few(std::size_t most_waiting) const {
        return waiting_.size() + (busy_ ? 1 : 0) <= most_waiting;
    }
    void wait_for(std::unique_lock<std::mutex>& lock, std::size_t most_waiting) {
        if (are_few(most_waiting)) return;
        wanted_ = most_waiting;
        work_.notify_one();
        done_.wait(lock, [&] { return are_few(most_waiting); });
        wanted_.reset();
    }

    // Signals are for the threads that know of them.
    void start() {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        try {
            worker_ = std::thread([this] { work(); });
        } catch (...) {
            pthread_sigmask(SIG_SETMASK, &before, nullptr);
            throw;
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    void work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            work_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
            if (ends_) return;
            std::unique_ptr<Piece> piece = std::move(waiting_.front());
            waiting_.pop_front();
            busy_ = true;
            lock.unlock();
            std::exception_ptr failure;
            try {
                first_(*piece);
            } catch (...) {
                failure = std::current_exception();
            }
            lock.lock();
            busy_ = false;
            if (failure) failure_ = failure;
            ready_.push_back(std::move(piece));
            if (wanted_ && are_few(*wanted_)) done_.notify_one();
        }
    }

    const Stage first_, second_;
    bool has_thread_;
    std::vector<std::unique_ptr<Piece>> free_;
    std::thread worker_;
    std::mutex mutex_;  // of what follows
    std::condition_variable work_, done_;
    std::deque<std::unique_ptr<Piece>> waiting_, ready_;  // for the first stage, for the second
    bool busy_ = false;                                   // the first is being done
    bool ends_ = false;
    std::optional<std::size_t> wanted_;  // as few as somebody waits for
    std::exception_ptr failure_;
};

}  // namespace cache
