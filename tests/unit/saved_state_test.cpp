// Registers in a saved state, made by hand.
#include "framework/driver/native/machine/saved_state.h"

#include <doctest/doctest.h>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

namespace saved_state_test {

using namespace assay::native;

namespace {

constexpr std::uint64_t kDefaultNan = 0xfff8000000000000;

struct Extended {
    std::uint64_t low;
    std::uint16_t high;
};

// As the processor rounds it, to nearest.
std::uint64_t by_processor(const Extended& number) {
    long double value = 0;
    std::memcpy(&value, &number.low, 8);
    std::memcpy(reinterpret_cast<char*>(&value) + 8, &number.high, 2);
    return std::bit_cast<std::uint64_t>(static_cast<double>(value));
}

void put(Context& context, std::size_t at, const Extended& number) {
    std::memcpy(context.vector_state + at, &number.low, 8);
    std::memcpy(context.vector_state + at + 8, &number.high, 2);
}

}  // namespace

TEST_CASE("saved state: the double nearest to an x87 register is the processor's") {
    const std::uint64_t fractions[] = {0x8000000000000000, 0x8000000000000001, 0x80000000000003ff,
                                       0x8000000000000400, 0x8000000000000401, 0x8000000000000c00,
                                       0xfffffffffffffbff, 0xfffffffffffffc00, 0xffffffffffffffff,
                                       0xaaaaaaaaaaaaaaab};
    const auto check = [](const Extended& number) {
        CAPTURE(number.high);
        CAPTURE(number.low);
        CHECK(nearest_double(number.high, number.low) == by_processor(number));
    };
    // From where everything is 0, through the denormals, to where everything is infinite; both
    // signs; NaNs.
    for (unsigned sign = 0; sign <= 0x8000; sign += 0x8000) {
        for (const std::uint64_t fraction : fractions) {
            for (unsigned exponent = 15300; exponent < 15380; ++exponent)
                check({fraction, static_cast<std::uint16_t>(sign | exponent)});
            for (const unsigned exponent : {1U, 100U, 16383U, 17405U, 17406U, 17407U, 32766U})
                check({fraction, static_cast<std::uint16_t>(sign | exponent)});
            check({fraction, static_cast<std::uint16_t>(sign | 0x7fff)});
        }
        check({0, static_cast<std::uint16_t>(sign)});
        check({5, static_cast<std::uint16_t>(sign)});
    }
    std::mt19937_64 random(1);
    for (int i = 0; i < 100'000; ++i)
        check({random() | std::uint64_t{1} << 63,
               static_cast<std::uint16_t>(15250 + random() % 2300)});
}

TEST_CASE("saved state: what is no number to the x87") {
    CHECK(nearest_double(16383, 0x4000000000000000) == kDefaultNan);  // no integer bit
    CHECK(nearest_double(0x7fff, 0) == kDefaultNan);
    CHECK(nearest_double(0x7fff, 0xa000000000000000) == 0x7ffc000000000000);  // signalling
}

TEST_CASE("saved state: x87 and MMX registers by the top of the stack") {
    const auto context = std::make_unique<Context>();
    constexpr std::size_t kRegisters = 32, kHeader = 512;
    context->vector_state[kHeader] = 1;
    context->vector_state[3] = 6 << 3;  // the top
    context->vector_state[4] = 0xc0;    // 6 and 7 are full
    put(*context, kRegisters, {0x8000000000000000, 16383});
    put(*context, kRegisters + 16, {0xc000000000000000, 16383});
    put(*context, kRegisters + 32, {0xabcd, 0xffff});
    CHECK(read_x87(*context, 0) == std::bit_cast<std::uint64_t>(1.0));
    CHECK(read_x87(*context, 1) == std::bit_cast<std::uint64_t>(1.5));
    CHECK(read_x87(*context, 2) == kDefaultNan);
    CHECK(read_mmx(*context, 6) == 0x8000000000000000);
    CHECK(read_mmx(*context, 0) == 0xabcd);
    context->vector_state[kHeader] = 0;  // initial
    CHECK(read_x87(*context, 0) == kDefaultNan);
    CHECK(read_mmx(*context, 6) == 0);
}

}  // namespace saved_state_test
