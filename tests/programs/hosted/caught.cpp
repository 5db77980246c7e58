// An exception through three frames, caught where leaf() is called next: for tests that know the
// calling contexts.
#include <stdexcept>

namespace {

volatile int sum;

void leaf() {
    sum = sum + 1;
}

void thrower(int depth) {
    if (depth == 0) throw std::runtime_error("caught");
    thrower(depth - 1);
    leaf();
}

void catcher() {
    try {
        thrower(2);
    } catch (const std::runtime_error&) {
        leaf();
    }
    leaf();
}

}  // namespace

int main() {
    volatile int times = 8;
    const int wanted = times;
    for (int i = 0; i < wanted; ++i) catcher();
}
