// Which code is the user's own.
#include "framework/support/own_code.h"

#include <doctest/doctest.h>

namespace own_code_test {

using namespace assay;

TEST_CASE("own code: outside of the system's headers and libraries") {
    const OwnCode own;
    CHECK(own.has("main", "/home/me/a.cpp", "/home/me/a"));
    CHECK(own.has("main", "a.cpp", ""));
    CHECK(own.has("f", "???", "/home/me/a"));
    CHECK(own.has("f", "???", ""));
    CHECK(own.has("f", "/usr/local/include/mine.h", "/home/me/a"));
    CHECK(own.has("main", "???", "/usr/lib/gcc/x86_64-linux-gnu/12/cc1"));
    CHECK(own.has("f", "[anonymous]", "[anonymous]"));
    CHECK_FALSE(own.has("std::move", "/usr/include/c++/12/bits/move.h", "/home/me/a"));
    CHECK_FALSE(own.has("f", "/opt/gcc/include/c++/13/vector", "/home/me/a"));
    CHECK_FALSE(own.has("f", "/usr/lib/gcc/x86_64-linux-gnu/12/include/xmmintrin.h", "/home/me/a"));
    CHECK_FALSE(own.has("f", "/home/../usr/include/stdio.h", "/home/me/a"));
    CHECK_FALSE(own.has("malloc", "./malloc/malloc.c", "/usr/lib/x86_64-linux-gnu/libc.so.6"));
    CHECK_FALSE(own.has("f", "???", "/lib64/ld-linux-x86-64.so.2"));
    CHECK_FALSE(own.has("f", "???", "[vdso]"));
    CHECK_FALSE(own.has("PyList_New", "???", "/usr/bin/python3.11"));
    CHECK_FALSE(own.has("PyList_New", "???", "/opt/python/lib/libpython3.11.so.1.0"));
    CHECK_FALSE(own.has("py::_handle_fromlist:<frozen importlib._bootstrap>",
                        "<frozen importlib._bootstrap>", "/tmp/jit-7.dump"));
    CHECK_FALSE(own.has("py::parse:/usr/lib/python3.11/ast.py", "/usr/lib/python3.11/ast.py",
                        "/tmp/jit-7.dump"));
    CHECK(own.has("py::main:/home/me/a.py", "/home/me/a.py", "/tmp/jit-7.dump"));
    CHECK(own.has("PyList_New", "Objects/listobject.c", "/home/me/cpython/python"));
}

TEST_CASE("own code: what every program contains") {
    const OwnCode own;
    for (const char* const name :
         {"_start", "malloc@plt", "std::string::_M_create(unsigned long&, unsigned long)",
          "void std::sort<int*>(int*, int*)", "operator new(unsigned long)"})
        CHECK_FALSE(own.has(name, "???", "/home/me/a"));
    CHECK(own.has("std::hash<A>::operator()(A const&) const", "/home/me/a.h", "/home/me/a"));
}

TEST_CASE("own code: paths") {
    const OwnCode own({"/home/me/src/", "/usr/lib/libmine.so.1"});
    CHECK(own.has("f", "/home/me/src/a.cpp", "/home/me/a"));
    CHECK(own.has("f", "???", "/usr/lib/libmine.so.1"));
    CHECK(own.has("f", "mine.c", "/usr/lib/libmine.so.1"));
    CHECK_FALSE(own.has("f", "/home/me/src2/a.cpp", "/home/me/a"));
    CHECK_FALSE(own.has("f", "/usr/include/c++/12/vector", "/usr/lib/libmine.so.1"));
    CHECK_FALSE(own.has("f", "???", "/home/me/a"));
    CHECK(OwnCode({"src"}).has("f", "src/a.c", ""));
    CHECK(OwnCode({"/usr/include/c++"}).has("f", "/usr/include/c++/12/vector", ""));
}

}  // namespace own_code_test
