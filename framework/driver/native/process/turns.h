// Who runs, with --schedule=fair: one of the threads that have the program's memory has the turn,
// others are ready and get it one after the other, or wait at an address (futex(2)) until they are
// woken. All that depends only on the order of the calls here; Schedule waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>

namespace assay::native {

// Of one thread.
struct Turn {
    enum State : std::uint8_t { kAway, kReady, kRuns, kAtAddress };
    State state = kAway;
    std::uint64_t address = 0;  // kAtAddress
    std::uint32_t bits = 0;     // likewise: who wakes some of these wakes it
    bool taken = false;         // kRuns: the thread knows
    std::uint64_t call = 0;     // in which it is while it has the turn; 0: none
    // Changes, and is woken as a futex, when the state has become kRuns.
    std::atomic<std::uint32_t> bell{0};
};

class Turns {
  public:
    // The one that runs; nullptr if there is none.
    Turn* running() const { return running_; }
    // Of those that are ready, the one that is next; nullptr if there is none.
    Turn* next() const { return ready_.empty() ? nullptr : ready_.front(); }

    // It was away: behind all that are ready.
    void make_ready(Turn& turn) {
        turn.state = Turn::kReady;
        ready_.push_back(&turn);
    }
    // The one that runs, behind all others. False if there are none, and it runs on.
    bool pass(Turn& turn) {
        if (ready_.empty()) return false;
        running_ = nullptr;
        make_ready(turn);
        return true;
    }
    // The one that runs waits at an address.
    void wait_at(Turn& turn, std::uint64_t address, std::uint32_t bits) {
        running_ = nullptr;
        turn.state = Turn::kAtAddress;
        turn.address = address;
        turn.bits = bits;
        waiting_.push_back(&turn);
    }
    // Whatever it does.
    void go_away(Turn& turn) {
        if (running_ == &turn) running_ = nullptr;
        std::erase(ready_, &turn);
        waiting_.remove(&turn);
        turn.state = Turn::kAway;
        turn.call = 0;
    }
    // If nobody runs, the next one does: that one, or nullptr.
    Turn* start_next() {
        if (running_ != nullptr || ready_.empty()) return nullptr;
        running_ = ready_.front();
        ready_.pop_front();
        running_->state = Turn::kRuns;
        running_->taken = false;
        return running_;
    }

    // At most `most` of those that wait at the address with some of the bits become ready, in the
    // order in which they began to wait. Returns how many.
    std::uint64_t wake(std::uint64_t address, std::uint64_t most, std::uint32_t bits) {
        return take(address, most, [this, bits](Turn& turn) {
            if (!(turn.bits & bits)) return kStays;
            make_ready(turn);
            return kLeaves;
        });
    }
    // So many of them wait at another address from now on.
    std::uint64_t move(std::uint64_t from, std::uint64_t to, std::uint64_t most) {
        std::list<Turn*> moved;
        const std::uint64_t count = take(from, most, [&](Turn& turn) {
            turn.address = to;
            moved.push_back(&turn);
            return kLeaves;
        });
        waiting_.splice(waiting_.end(), moved);
        return count;
    }
    // In the child of a fork, whose only thread runs.
    void keep_only(Turn& turn) {
        ready_.clear();
        waiting_.clear();
        running_ = &turn;
        turn.state = Turn::kRuns;
        turn.taken = true;
        turn.call = 0;
    }

  private:
    enum Fate : std::uint8_t { kStays, kLeaves };

    template <typename Decide>
    std::uint64_t take(std::uint64_t address, std::uint64_t most, const Decide& decide) {
        std::uint64_t count = 0;
        for (auto at = waiting_.begin(); at != waiting_.end() && count < most;) {
            const bool leaves = (*at)->address == address && decide(**at) == kLeaves;
            count += leaves ? 1 : 0;
            at = leaves ? waiting_.erase(at) : std::next(at);
        }
        return count;
    }

    Turn* running_ = nullptr;
    std::deque<Turn*> ready_;
    std::list<Turn*> waiting_;
};

}  // namespace assay::native
