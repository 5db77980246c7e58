// Which functions of two profiles are the same one.
#include "tools/profile/function_matching.h"
#include "framework/support/function_names.h"

#include <doctest/doctest.h>
#include <initializer_list>
#include <string>
#include <utility>

namespace function_matching_test {

using namespace assay;

namespace {

using Names = std::initializer_list<std::pair<const char*, const char*>>;

// Where each function is shown, "FILE:FUNCTION", and behind it what the old profile calls it.
class Matched {
  public:
    Matched(Names before, Names after) {
        for (const auto& [file, name] : before) matching_.add(Side::kOld, file, name);
        for (const auto& [file, name] : after) matching_.add(Side::kNew, file, name);
        matching_.match();
    }
    std::string of(const char* file, const char* name) {
        const std::uint32_t number = matching_.add(Side::kOld, file, name);
        const auto shown = matching_.shown(number), former = matching_.former(number);
        std::string text = std::string(shown.file) + ":" + std::string(shown.function);
        if (!former.function.empty())
            text += " was " + std::string(former.file) + ":" + std::string(former.function);
        return text;
    }

  private:
    FunctionMatching matching_;
};

// Of one file, without it.
class MatchedNames {
  public:
    MatchedNames(std::initializer_list<const char*> before,
                 std::initializer_list<const char*> after) {
        for (const char* name : before) matching_.add(Side::kOld, "", name);
        for (const char* name : after) matching_.add(Side::kNew, "", name);
        matching_.match();
    }
    std::string of(const char* name) {
        return std::string(matching_.shown(matching_.add(Side::kOld, "", name)).function);
    }

  private:
    FunctionMatching matching_;
};

}  // namespace

TEST_CASE("function names: clones") {
    for (const char* name :
         {"f.constprop.0", "f.isra.0.cold", "f.part.12.constprop.0.isra.3", "f.cold",
          "f.lto_priv.0", "f [clone .isra.0]", "f [clone .part.0] [clone .cold]",
          "f [clone .constprop.0.isra.0]", "f (.cold)", "f (.isra.0.cold)", "f.__part.3",
          "f [clone .__part.3]", "f [clone .60]", "f [clone .60.llvm.7]", "f (.60)", "f.__uniq.123",
          "f.eh"})
        CHECK(without_clones(name) == "f");
    for (const char* name : {"f", "f.0", "f.partial.0", "f.part.x", ".cold", "f [clone .other.0]",
                             "f [abi:cxx11]", "f1", "", "f ()", "f (.other)"})
        CHECK(without_clones(name) == name);
    CHECK(without_clones("a::f(int) const [clone .isra.0]") == "a::f(int) const");
}

TEST_CASE("function names: what is numbered in each build") {
    CHECK(without_numbers("main::{lambda(int)#2}::operator()(int) const") ==
          "main::{lambda(int)}::operator()(int) const");
    CHECK(without_numbers("main::$_12::operator()(int) const") ==
          "main::$_::operator()(int) const");
    CHECK(without_numbers("core::fmt::write::h0123456789abcdef") == "core::fmt::write");
    CHECK(without_numbers("a[0123456789abcdef]::b::{closure#1}") == "a::b::{closure}");
    CHECK(without_numbers("{anonymous}::f[abi:cxx11](int)") == "(anonymous namespace)::f(int)");
    CHECK(without_numbers("main.main.func1.2") == "main.main.func");
    CHECK(without_numbers("fmt.60") == "fmt");
    CHECK(without_numbers("f [clone ._omp_fn.1]") == "f [clone ._omp_fn]");
    for (const char* name :
         {"f", "", "h0123456789abcdef", "a::h0123", "a[3]", "f#1", "[abi:", ".5", "f.5x", "f."})
        CHECK(without_numbers(name) == name);
}

TEST_CASE("function names: signatures and arguments") {
    CHECK(without_parameters("a::f(int (*)(long), b) const") == "a::f");
    CHECK(without_parameters("a::f<b>(int) const volatile") == "a::f<b>");
    CHECK(without_parameters("a::operator()(int)") == "a::operator()");
    for (const char* name : {"f", "a::operator()", "(anonymous namespace)::f", "f)", "(f)", "())"})
        CHECK(without_parameters(name) == name);

    CHECK(without_signature("int (anonymous namespace)::each<a, b>(int, c)") ==
          "(anonymous namespace)::each<a, b>");
    CHECK(without_signature("each<main(int, char**)::<lambda(int)> >") == "each<main::{lambda}>");
    CHECK(without_signature("int each<main::{lambda(int)}>(int, main::{lambda(int)})") ==
          "each<main::{lambda}>");
    CHECK(without_signature("main::{unnamed type}::operator()") == "main::{lambda}::operator()");
    CHECK(without_signature("std::ostream& operator<< <char>(char)") == "operator<< <char>");
    CHECK(without_signature("a::operator b<c>()") == "a::operator b<c>");
    CHECK(without_signature("<a as b<c>>::d") == "<a as b<c>>::d");

    CHECK(without_template_arguments("a<b<c>, d>::e<f>") == "a::e");
    CHECK(without_template_arguments("<a<b> as c<d>>::e") == "<a as c>::e");
    CHECK(without_template_arguments("a::<b>::c::<d>") == "a::c");
    CHECK(without_template_arguments("<a::b<c>>::d::<e>") == "a::b::d");
    CHECK(without_template_arguments("a<b>::operator->") == "a::operator->");
    CHECK(without_template_arguments("a<b>::operator<") == "a::operator<");
    CHECK(without_template_arguments("main.Map[go.shape.int]") == "main.Map");
    for (const char* name : {"f", "", "a<b", "a>b", "<", ">", "operator<=>", "operator>>"})
        CHECK(without_template_arguments(name) == name);
}

TEST_CASE("function matching: clones and numbers, unless both profiles have the same") {
    MatchedNames names(
        {"f.isra.0", "g.cold", "g", "h.cold", "l::{lambda()#1}", "k::{lambda()#1}"},
        {"f", "g", "g.cold", "l::{lambda()#1}", "l::{lambda()#2}", "k::{lambda()#1}"});
    CHECK(names.of("f.isra.0") == "f");
    CHECK(names.of("g.cold") == "g.cold");
    CHECK(names.of("h.cold") == "h.cold");
    CHECK(names.of("l::{lambda()#1}") == "l::{lambda()}");
    CHECK(names.of("l::{lambda()#2}") == "l::{lambda()}");
    CHECK(names.of("k::{lambda()#1}") == "k::{lambda()#1}");
    CHECK(names.of("unknown.cold") == "unknown.cold");
    MatchedNames rust({"a::b::h0123456789abcdef", "a::b::{{closure}}", "a::C::d"},
                      {"a::b::hfedcba9876543210", "a::b::<u32>::{closure#0}", "<a::C>::d"});
    CHECK(rust.of("a::b::{{closure}}") == "a::b::<u32>::{closure#0}");
    CHECK(rust.of("a::C::d") == "<a::C>::d");
    CHECK(rust.of("a::b::h0123456789abcdef") == rust.of("a::b::hfedcba9876543210"));
}

TEST_CASE("function matching: inlined copies") {
    MatchedNames names(
        {"p(int)", "o(int)", "o(long)", "int s::t<int>(int)", "q(int)", "q",
         "int each<main::{lambda(int)#1}>(int, main::{lambda(int)#1})"},
        {"p", "o", "s::t<int>", "q(int)", "q", "each<main(int, char**)::<lambda(int)> >"});
    CHECK(names.of("p(int)") == "p");
    // Which of the two it is a copy of is not known.
    CHECK(names.of("o(int)") == "o");
    CHECK(names.of("o(long)") == "o");
    CHECK(names.of("int s::t<int>(int)") == "s::t<int>");
    CHECK(names.of("q(int)") == names.of("q"));
    CHECK(names.of("int each<main::{lambda(int)#1}>(int, main::{lambda(int)#1})") ==
          "each<main(int, char**)::<lambda(int)> >");
}

TEST_CASE("function matching: parameters and arguments of templates that have changed") {
    MatchedNames names({"f(int)", "g(int)", "v<int>::h(int)", "v<long>::h(long)"},
                       {"f(int, long)", "g(int)", "g(char)", "v<int>::h(int)", "v<char>::h(char)"});
    CHECK(names.of("f(int)") == "f(int, long)");
    CHECK(names.of("g(int)") == "g(int)");
    CHECK(names.of("g(char)") == "g(char)");
    CHECK(names.of("v<int>::h(int)") == "v<int>::h(int)");
    CHECK(names.of("v<long>::h(long)") == "v<char>::h(char)");
}

TEST_CASE("function matching: files") {
    Matched files({{"old/a.c", "f"}, {"old/a.c", "g"}, {"b.c", "h"}, {"b.c", "i"}, {"b.c", "j"}},
                  {{"new/a.c", "f"}, {"new/a.c", "g2"}, {"b.c", "i"}, {"c.c", "h"}, {"c.c", "k"}});
    CHECK(files.of("old/a.c", "f") == "new/a.c:f was old/a.c:f");
    CHECK(files.of("old/a.c", "g") == "old/a.c:g");
    CHECK(files.of("b.c", "h") == "c.c:h was b.c:h");
    CHECK(files.of("b.c", "i") == "b.c:i");
    CHECK(files.of("b.c", "j") == "b.c:j");
    // Two checkouts. The second has one more file.
    Matched checkouts({{"/1/b/io.c", "init"}, {"/1/c/io.c", "init"}},
                      {{"/2/a/io.c", "init"}, {"/2/b/io.c", "init"}, {"/2/c/io.c", "init"}});
    CHECK(checkouts.of("/1/b/io.c", "init") == "/2/b/io.c:init was /1/b/io.c:init");
    CHECK(checkouts.of("/1/c/io.c", "init") == "/2/c/io.c:init was /1/c/io.c:init");
    CHECK(checkouts.of("/2/a/io.c", "init") == "/2/a/io.c:init");
    // The path decides even if another file has more functions of the same names.
    Matched more({{"/1/b/io.c", "init"}, {"/1/b/io.c", "stop"}},
                 {{"/2/a/io.c", "init"}, {"/2/a/io.c", "stop"}, {"/2/b/io.c", "init"}});
    CHECK(more.of("/1/b/io.c", "init") == "/2/b/io.c:init was /1/b/io.c:init");
    CHECK(more.of("/2/a/io.c", "init") == "/2/a/io.c:init");
    // Nothing tells which of the new files is the old one.
    Matched open({{"old/io.c", "init"}}, {{"a/io.c", "init"}, {"b/io.c", "init"}});
    for (const char* file : {"old/io.c", "a/io.c", "b/io.c"})
        CHECK(open.of(file, "init") == std::string(file) + ":init");
    // Functions that have moved between files that both profiles have.
    Matched moved({{"/b/io.c", "f"}, {"/c/io.c", "f"}, {"/x/b/io.c", "g"}, {"/x/c/io.c", "g"}},
                  {{"/b/io.c", "g"}, {"/c/io.c", "g"}, {"/x/b/io.c", "f"}, {"/x/c/io.c", "f"}});
    CHECK(moved.of("/b/io.c", "f") == "/x/b/io.c:f was /b/io.c:f");
    CHECK(moved.of("/x/c/io.c", "g") == "/c/io.c:g was /x/c/io.c:g");
    // Debug information has come or gone.
    Matched unknown({{"a.h", "f"}, {"a.c", "f"}, {"a.c", "???"}}, {{"???", "f"}, {"???", "???"}});
    CHECK(unknown.of("a.h", "f") == "a.c:f");
    CHECK(unknown.of("???", "f") == "a.c:f");
    CHECK(unknown.of("a.c", "???") == "a.c:???");
}

}  // namespace function_matching_test
