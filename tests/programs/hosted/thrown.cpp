// C++ exceptions that cross libraries and threads.
#include <cstdlib>
#include <exception>
#include <future>
#include <string>
#include <vector>

#include "cases.h"
#include "throwing.h"

namespace {

void refuse(int depth) {
    throw Refusal(depth);
}
void throw_standard(int) {
    static_cast<void>(std::string("short").at(7));
}
void throw_number(int) {
    throw 42;
}
void return_normally(int) {}

// What arrives of the callback's exception, as a number.
int caught(void (*call)(int, Callback), int depth, Callback callback) {
    try {
        call(depth, callback);
    } catch (const Refusal& refusal) {
        try {
            std::rethrow_if_nested(refusal);
        } catch (const std::out_of_range&) {
            return 1000 + refusal.depth();
        }
        return 2000 + static_cast<int>(std::string(refusal.what()).size());
    } catch (int number) {
        return number;
    }
    return 0;
}

int through_library() {
    int sum = 0;
    for (int depth = 0; depth < 100; ++depth) {
        for (const Callback callback : {refuse, throw_number, return_normally}) {
            sum += caught(call_from_within, depth, callback);
        }
    }
    std::printf("%d, %d alive\n", sum, alive());
    return 0;
}

int through_two_libraries() {
    int sum = 0;
    for (int depth = 0; depth < 100; ++depth) {
        for (const Callback callback : {refuse, throw_standard, throw_number, return_normally}) {
            sum += caught(call_through, depth, callback);
        }
    }
    std::printf("%d, %d alive\n", sum, alive());
    return 0;
}

int from_thread() {
    int sum = 0;
    for (int depth = 0; depth < 30; ++depth) {
        for (const Callback callback : {refuse, throw_standard, throw_number, return_normally}) {
            sum += caught(call_in_thread, depth, callback);
        }
    }
    std::printf("%d, %d alive\n", sum, alive());
    return 0;
}

int in_threads_at_once() {
    std::vector<std::future<int>> results;
    for (int i = 0; i < 8; ++i) {
        results.push_back(std::async(std::launch::async, [i] {
            int sum = 0;
            for (int depth = 0; depth < 50; ++depth) {
                sum += caught(call_through, depth, depth % 2 == i % 2 ? refuse : throw_standard);
            }
            return sum;
        }));
    }
    int sum = 0;
    for (std::future<int>& result : results) sum += result.get();
    std::printf("%d, %d alive\n", sum, alive());
    return 0;
}

int uncaught() {
    std::set_terminate([] {
        std::puts("terminated");
        std::fflush(stdout);
        std::_Exit(3);
    });
    call_through(5, throw_number);
    return 0;
}

int uncaught_in_thread() {
    std::async(std::launch::deferred, [] { call_through(3, return_normally); }).get();
    std::fflush(stdout);
    const auto thrower = []() noexcept { call_through(3, refuse); };
    std::async(std::launch::async, thrower).get();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    static const test_case cases[] = {
        {"through_library", through_library},
        {"through_two_libraries", through_two_libraries},
        {"from_thread", from_thread},
        {"in_threads_at_once", in_threads_at_once},
        {"uncaught", uncaught},
        {"uncaught_in_thread", uncaught_in_thread},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
