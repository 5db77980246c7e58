// C++ exceptions through many frames, rethrown, and with destructors on the way.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

int alive = 0;
struct Counted {
    Counted() { ++alive; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { --alive; }
};

void descend(int depth) {
    Counted counted;
    if (depth == 0) throw std::runtime_error("bottom");
    descend(depth - 1);
}

int rethrow(int depth) {
    try {
        descend(depth);
    } catch (const std::exception&) {
        try {
            throw;
        } catch (const std::runtime_error& error) {
            return static_cast<int>(std::string(error.what()).size());
        }
    }
    return 0;
}

}  // namespace

int main() {
    int sum = 0;
    for (int i = 0; i < 200; ++i) sum += rethrow(i % 20);
    try {
        std::vector<int>().at(3);
    } catch (const std::out_of_range&) {
        sum += 1000;
    }
    std::printf("%d, %d alive\n", sum, alive);
}
