// The order in which threads take turns.
#include "framework/driver/native/process/schedule.h"

#include <doctest/doctest.h>
#include <array>
#include <vector>

namespace turns_test {

using namespace assay::native;

namespace {

constexpr std::uint32_t kAnyBits = ~0U;
constexpr std::uint64_t kAll = 1000;

// Some threads, of which the first runs and the others are ready.
struct Threads {
    Turns turns;
    std::array<Turn, 4> of;

    Threads() {
        turns.keep_only(of[0]);
        for (std::size_t i = 1; i < of.size(); ++i) turns.make_ready(of[i]);
    }
    // The one that runs, by its number; -1: none.
    int running() const {
        return turns.running() == nullptr ? -1 : static_cast<int>(turns.running() - of.data());
    }
    // Who runs if each gives its turn away as soon as it has it.
    std::vector<int> order(std::size_t count) {
        std::vector<int> found;
        for (; found.size() < count; turns.start_next()) {
            found.push_back(running());
            turns.pass(*turns.running());
        }
        return found;
    }
    // The one that runs waits there.
    void wait(std::uint64_t address, std::uint32_t bits = kAnyBits) {
        turns.wait_at(*turns.running(), address, bits);
        turns.start_next();
    }
};

}  // namespace

TEST_CASE("threads take turns") {
    Threads threads;
    CHECK(threads.order(9) == std::vector{0, 1, 2, 3, 0, 1, 2, 3, 0});
}

TEST_CASE("a single thread runs on") {
    Turns turns;
    Turn turn;
    turns.keep_only(turn);
    CHECK_FALSE(turns.pass(turn));
    CHECK(turns.running() == &turn);
    turns.go_away(turn);
    CHECK(turns.running() == nullptr);
    CHECK(turns.start_next() == nullptr);
    turns.make_ready(turn);
    CHECK(turns.start_next() == &turn);
    CHECK_FALSE(turn.taken);
}

TEST_CASE("nobody starts while another one runs") {
    Threads threads;
    CHECK(threads.turns.start_next() == nullptr);
    CHECK(threads.running() == 0);
    CHECK(threads.turns.next() == &threads.of[1]);
}

TEST_CASE("who was away comes behind those that are ready") {
    Threads threads;
    threads.turns.go_away(threads.of[0]);
    threads.turns.start_next();
    CHECK(threads.running() == 1);
    threads.turns.make_ready(threads.of[0]);
    CHECK(threads.order(5) == std::vector{1, 2, 3, 0, 1});
}

TEST_CASE("who goes away does so from wherever it is") {
    Threads threads;
    threads.turns.go_away(threads.of[2]);
    threads.wait(8);
    threads.turns.go_away(threads.of[0]);
    CHECK(threads.turns.wake(8, kAll, kAnyBits) == 0);
    CHECK(threads.of[0].state == Turn::kAway);
    CHECK(threads.order(3) == std::vector{1, 3, 1});
}

TEST_CASE("those that wait are woken in their order") {
    Threads threads;
    threads.wait(8);
    threads.wait(16);
    threads.wait(8);
    CHECK(threads.running() == 3);
    CHECK(threads.order(2) == std::vector{3, 3});
    CHECK(threads.turns.wake(24, kAll, kAnyBits) == 0);
    CHECK(threads.turns.wake(8, 0, kAnyBits) == 0);
    CHECK(threads.turns.wake(8, 1, kAnyBits) == 1);
    CHECK(threads.of[0].state == Turn::kReady);
    CHECK(threads.of[2].state == Turn::kAtAddress);
    CHECK(threads.turns.wake(8, kAll, kAnyBits) == 1);
    CHECK(threads.turns.wake(16, kAll, kAnyBits) == 1);
    CHECK(threads.order(5) == std::vector{3, 0, 2, 1, 3});
}

TEST_CASE("those are woken that wait for one of the bits") {
    Threads threads;
    threads.wait(8, 1);
    threads.wait(8, 2);
    threads.wait(8, 3);
    CHECK(threads.turns.wake(8, kAll, 4) == 0);
    CHECK(threads.turns.wake(8, kAll, 2) == 2);
    CHECK(threads.of[0].state == Turn::kAtAddress);
    CHECK(threads.order(3) == std::vector{3, 1, 2});
}

TEST_CASE("those that wait can be moved") {
    Threads threads;
    threads.wait(16);
    threads.wait(8);
    threads.wait(8);
    CHECK(threads.turns.move(8, 16, 1) == 1);
    CHECK(threads.turns.wake(8, kAll, kAnyBits) == 1);
    CHECK(threads.of[2].state == Turn::kReady);
    CHECK(threads.turns.move(8, 16, kAll) == 0);
    CHECK(threads.turns.wake(16, kAll, kAnyBits) == 2);
    CHECK(threads.order(4) == std::vector{3, 2, 0, 1});  // behind those that were there before
}

TEST_CASE("all can wait") {
    Threads threads;
    for (int i = 0; i < 4; ++i) threads.wait(8);
    CHECK(threads.running() == -1);
    threads.turns.go_away(threads.of[1]);
    threads.turns.make_ready(threads.of[1]);  // a signal, or the time
    threads.turns.start_next();
    CHECK(threads.running() == 1);
    CHECK(threads.turns.wake(8, kAll, kAnyBits) == 3);
}

TEST_CASE("the child of a fork has one thread") {
    Threads threads;
    threads.wait(8);
    threads.turns.keep_only(threads.of[1]);
    CHECK(threads.turns.wake(8, kAll, kAnyBits) == 0);
    CHECK_FALSE(threads.turns.pass(threads.of[1]));
}

}  // namespace turns_test
