#include <atomic>
#include <string>

#include "throwing.h"

namespace {

std::atomic<int> objects = 0;
struct Counted {
    Counted() { ++objects; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { --objects; }
};

}  // namespace

Refusal::Refusal(int depth_reached)
    : std::runtime_error("refused at " + std::to_string(depth_reached)), depth_(depth_reached) {}
Refusal::~Refusal() = default;

void call_from_within(int depth, Callback callback) {
    Counted counted;
    if (depth > 0) {
        call_from_within(depth - 1, callback);
    } else {
        callback(depth);
    }
}

int alive() {
    return objects;
}
