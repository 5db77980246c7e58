#include "framework/support/error.h"
#include "framework/support/large_heap.h"
#include "framework/support/text.h"

#include <doctest/doctest.h>
#include <unistd.h>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace support_test {

using namespace assay;

TEST_CASE("join puts separators between") {
    CHECK(join(std::vector<std::string>{"a", "", "b"}, ", ") == "a, , b");
    CHECK(join({}, ", ") == "");
}

TEST_CASE("split keeps empty parts") {
    CHECK(split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
    CHECK(split("", ',') == std::vector<std::string>{""});
}

TEST_CASE("the nearest candidate is one that was probably meant") {
    const std::vector<std::string> names{"I1", "D1", "LL", "cache-sim"};
    CHECK(nearest("d1", names) == "D1");
    CHECK(nearest("cache-sum", names) == "cache-sim");
    CHECK(nearest("L2", names) == "LL");
    CHECK(nearest("1D", names) == "D1");
    CHECK(nearest("something-else", names) == "");
}

TEST_CASE("numbers get thousands separators") {
    CHECK(with_thousands(0) == "0");
    CHECK(with_thousands(999) == "999");
    CHECK(with_thousands(1000) == "1,000");
    CHECK(with_thousands(18446744073709551615ULL) == "18,446,744,073,709,551,615");
}

TEST_CASE("file names are expanded") {
    setenv("ASSAY_TEST_VARIABLE", "word", 1);
    CHECK(expand_file_name("a.%p.%n.%q{ASSAY_TEST_VARIABLE}.%%", 12, "ls") == "a.12.ls.word.%");
    CHECK(expand_file_name("plain", 12, "ls") == "plain");
    setenv("PMI_RANK", "3", 1);
    CHECK(expand_file_name("a.%r", 12, "ls") == "a.3");
    setenv("PMI_RANK", "three", 1);
    CHECK_THROWS_AS(expand_file_name("a.%r", 12, "ls"), Error);
    unsetenv("PMI_RANK");
    for (const char* wrong : {"a%", "a%x", "a%q", "a%q{", "a%q{NOT_SET_ANYWHERE}"})
        CHECK_THROWS_AS(expand_file_name(wrong, 12, "ls"), Error);
}

// The heap stays large, and must be as small as at the start of a process.
TEST_CASE("begin_large_heap" * doctest::skip()) {
    constexpr std::uintptr_t kLargePage = std::uintptr_t{2} << 20;
    constexpr std::size_t kBytes = std::size_t{1} << 20;
    const auto before = reinterpret_cast<std::uintptr_t>(sbrk(0));
    begin_large_heap(16 << 20);
    void* volatile own = std::malloc(kBytes);
    void* volatile other = nullptr;
    std::thread([&] { other = std::malloc(kBytes); }).join();
    const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0));
    const auto first = reinterpret_cast<std::uintptr_t>(own);
    const auto second = reinterpret_cast<std::uintptr_t>(other);
    CHECK(before < first);
    CHECK(first < second);
    CHECK(second < end);
    CHECK(end - before > 16 << 20);
    CHECK(first % kLargePage < 4096);
    std::free(own);
    std::free(other);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)
constexpr bool kHasOtherHeap = true;  // perhaps a sanitizer's
#else
constexpr bool kHasOtherHeap = false;
#endif

TEST_CASE("threads allocate in the large heap, which begins at a large page" *
          doctest::skip(kHasOtherHeap)) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    const std::string command = self + " --no-skip --test-case=begin_large_heap > /dev/null";
    CHECK(std::system(command.c_str()) == 0);
}

}  // namespace support_test
