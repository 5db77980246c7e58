// Names, bytes and callers of the system-call profiler.
#include "plugins/syscalls/calls.h"

#include <doctest/doctest.h>

namespace syscalls_test {

using namespace syscalls;

// arch/x86/entry/syscalls/syscall_64.tbl
constexpr std::uint64_t kRead = 0, kWrite = 1, kOpen = 2, kMmap = 9, kPread64 = 17, kWritev = 20,
                        kSendfile = 40, kExitGroup = 231, kRecvmmsg = 299, kOpenat2 = 437;

TEST_CASE("syscalls: names are the kernel's") {
    CHECK(name_of_call(kRead) == "read");
    CHECK(name_of_call(kExitGroup) == "exit_group");
    CHECK(name_of_call(kOpenat2) == "openat2");
    CHECK(name_of_call(123456) == "number 123456");
    CHECK(name_of_call(UINT64_MAX).starts_with("number "));
    CHECK(name_of_error(2) == "ENOENT");
    CHECK(name_of_error(4000) == "error 4000");
}

TEST_CASE("syscalls: what results say of bytes") {
    CHECK(moves(kPread64) == Moves::kIn);
    CHECK(moves(kWritev) == Moves::kOut);
    CHECK(moves(kSendfile) == Moves::kBoth);
    CHECK(moves(kMmap) == Moves::kNothing);
    CHECK(moves(kRecvmmsg) == Moves::kNothing);
}

TEST_CASE("syscalls: the C library and the dynamic linker") {
    for (const char* path : {"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2",
                             "/lib/ld-musl-x86_64.so.1", "/usr/lib/libc-2.31.so"})
        CHECK(is_c_library(path));
    for (const char* path : {"/usr/bin/ls", "/lib/libcap.so.2", "/lib/libcrypto.so.3", "libc", ""})
        CHECK_FALSE(is_c_library(path));
}

TEST_CASE("syscalls: the table has the most frequent first, with times the longest") {
    const std::map<std::uint64_t, Tally> by_number{
        {kRead, {10, 1, 4096, 0, 500}}, {kWrite, {2, 0, 0, 77, 9000}}, {kOpen, {}}};
    const std::string by_calls = summarise(by_number, false);
    CHECK(by_calls.find("  read\n") < by_calls.find("  write\n"));
    CHECK(by_calls.find("open") == std::string::npos);
    CHECK(by_calls.find("seconds") == std::string::npos);
    const std::string by_time = summarise(by_number, true);
    CHECK(by_time.find("  write\n") < by_time.find("  read\n"));
    CHECK(by_time.find("0.000009") != std::string::npos);
    CHECK(in_one_line(by_number) == "read 10, write 2");
}

}  // namespace syscalls_test
