// Functions that their readable names tell apart, or only the linker's: of a class that has a
// virtual base, the constructor of whole objects and that of parts are two functions.
#include <cstdio>

namespace {

template <typename T>
T twice(T value) {
    return value + value;
}

}  // namespace

struct Base {
    int value = 0;
};

struct Derived : virtual Base {
    explicit Derived(int number);
};

Derived::Derived(int number) {
    value += number;
}

struct Further : Derived {
    explicit Further(int number) : Derived(number) {}
};

extern "C" int plain(int value) {
    return value * 3 + 1;
}

int main(int argc, char**) {
    const Derived derived(argc);
    const Further further(argc);
    std::printf("%d %g %d %d\n", twice(argc), twice(argc + 0.5), plain(argc),
                derived.value == further.value);
    return 0;
}
