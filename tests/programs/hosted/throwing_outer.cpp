#include <exception>
#include <thread>

#include "throwing.h"

void call_through(int depth, Callback callback) {
    try {
        call_from_within(depth, callback);
    } catch (const Refusal&) {
        throw;
    } catch (const std::exception&) {
        std::throw_with_nested(Refusal(depth));
    }
}

void call_in_thread(int depth, Callback callback) {
    std::exception_ptr thrown;
    std::thread([&] {
        try {
            call_through(depth, callback);
        } catch (...) {
            thrown = std::current_exception();
        }
    }).join();
    if (thrown) std::rethrow_exception(thrown);
}
