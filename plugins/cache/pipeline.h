// A pipeline of two stages. A separate thread runs the first stage, the calling thread the second.
// Each stage handles the pieces in the order in which they were put.
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

    // `threaded`: the first stage is worth a thread if a processor is free for it.
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

    // True if the process may use more than one processor.
    static bool can_have_thread() {
        cpu_set_t set;
        return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
    }

    // Returns a piece to fill: a used one if there is one, else a new one.
    std::unique_ptr<Piece> empty() {
        if (free_.empty()) return std::make_unique<Piece>();
        std::unique_ptr<Piece> piece = std::move(free_.back());
        free_.pop_back();
        return piece;
    }
    // True if another thread handles pieces: then the data that they refer to must stay.
    bool has_thread() const { return has_thread_; }
    // Finishes all pieces and runs both stages in the calling thread from now on.
    void do_without_thread() {
        finish();
        has_thread_ = false;
    }

    // Adds a piece. Both stages may run now or later. Exceptions of the first stage leave this
    // function or finish().
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
        // Waking the thread takes as long as some pieces, so it is not done for each piece.
        if (left >= kWakeAt) work_.notify_one();
        take_ready(left >= kMost ? kMost / 2 : kMost);
    }
    // Waits until the first stage has handled all pieces. Then the data that the first stage reads
    // can be changed.
    void settle() {
        std::unique_lock lock(mutex_);
        wait_for(lock, 0);
    }
    // Waits until both stages have handled all pieces.
    void finish() { take_ready(0); }

  private:
    static constexpr std::size_t kMost = 32, kWakeAt = 4;
    // If fewer than kFew pieces wait for the first stage, the second stage postpones up to
    // kMostReady pieces. The caller can then put new pieces, and the first stage does not run dry.
    static constexpr std::size_t kFew = 8, kMostReady = 64;

    // Runs the second stage on pieces that have passed the first, and waits until at most
    // `most_waiting` pieces have not passed it.
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

    // The piece that the thread is handling counts as waiting.
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

    // Blocks all signals in the new thread: other threads handle them.
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
    std::mutex mutex_;  // protects the members below
    std::condition_variable work_, done_;
    std::deque<std::unique_ptr<Piece>> waiting_, ready_;  // for the first stage; for the second
    bool busy_ = false;                                   // the thread is running the first stage
    bool ends_ = false;
    std::optional<std::size_t> wanted_;  // the number of pieces somebody waits for
    std::exception_ptr failure_;
};

}  // namespace cache
