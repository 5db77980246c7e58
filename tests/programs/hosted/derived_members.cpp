// Members of a class and of its base: how often each is read is known.
#include <cstdio>

namespace shapes {

class Shape {
  public:
    virtual ~Shape() = default;
    long area = 2;
    long unused = 0;
};

class Square : public Shape {
  public:
    long side = 3;
};

}  // namespace shapes

// 1,000 reads of the base's member, and as many of the class's own.
__attribute__((noinline)) long total(const shapes::Square* squares) {
    long sum = 0;
    for (int i = 0; i < 1000; ++i) {
        sum += squares[i].area;
        asm volatile("" : "+r"(sum));
        sum += squares[i].side;
    }
    return sum;
}

int main() {
    static shapes::Square squares[1000];
    std::printf("%ld\n", total(squares));
    return 0;
}
