// Short names of functions and types.
#include "tools/profile/display_names.h"
#include "framework/support/plain_names.h"

#include <doctest/doctest.h>
#include <initializer_list>
#include <string>

namespace display_names_test {

using namespace assay;

namespace {

#define STRING "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"

DisplayNames names_of(std::initializer_list<const char*> all) {
    DisplayNames names(NameStyle::kShort);
    for (const char* const each : all) names.add(each);
    names.finish();
    return names;
}

}  // namespace

TEST_CASE("plain names: types of the C++ library") {
    const auto check = [](const std::string& name, const std::string& plain) {
        CHECK(plain_types(name) == plain);
        CHECK(plain_types(plain) == plain);
    };
    check(STRING, "std::string");
    check("std::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t>>",
          "std::wstring");
    check("std::basic_string_view<char8_t, std::char_traits<char8_t> >", "std::u8string_view");
    check("std::basic_ostream<char, std::char_traits<char> >", "std::ostream");
    check("std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >",
          "std::string");
    check("std::vector<int, std::allocator<int> >", "std::vector<int>");
    check("std::vector<" STRING ", std::allocator<" STRING " > >", "std::vector<std::string>");
    check("std::map<" STRING ", int, std::less<" STRING " >, std::allocator<std::pair<" STRING
          " const, int> > >",
          "std::map<std::string, int>");
    check(
        "std::unordered_map<int, A, std::hash<int>, std::equal_to<int>, "
        "std::allocator<std::pair<int const, A> > >",
        "std::unordered_map<int, A>");
    check(
        "std::_Hashtable<int, std::pair<int const, A>, std::allocator<std::pair<int const, A> >, "
        "std::__detail::_Select1st, std::equal_to<int>, std::hash<int>, "
        "std::__detail::_Mod_range_hashing, std::__detail::_Default_ranged_hash, "
        "std::__detail::_Prime_rehash_policy, std::__detail::_Hashtable_traits<false, false, "
        "true> >",
        "std::_Hashtable<int, std::pair<int const, A>>");
    check(
        "std::__detail::_Map_base<int, std::pair<int const, A>, "
        "std::allocator<std::pair<int const, A> >, std::__detail::_Select1st, "
        "std::equal_to<int>, std::hash<int>, std::__detail::_Mod_range_hashing, "
        "std::__detail::_Default_ranged_hash, std::__detail::_Prime_rehash_policy, "
        "std::__detail::_Hashtable_traits<false, false, true>, true>",
        "std::__detail::_Map_base<int, std::pair<int const, A>>");
    check("std::_Sp_counted_ptr_inplace<A, std::allocator<void>, (__gnu_cxx::_Lock_policy)2>",
          "std::_Sp_counted_ptr_inplace<A>");
    check("std::__shared_count<(__gnu_cxx::_Lock_policy)2>", "std::__shared_count");
    check("std::unique_ptr<A [], std::default_delete<A []> >", "std::unique_ptr<A []>");
    check("std::priority_queue<A, std::vector<A, std::allocator<A> >, std::less<A> >",
          "std::priority_queue<A>");
    check("__gnu_cxx::__normal_iterator<A*, std::vector<A, std::allocator<A> > >",
          "std::vector<A>::iterator");
    check("__gnu_cxx::__normal_iterator<char const*, " STRING " >", "std::string::const_iterator");
    check("f[abi:cxx11](int)", "f(int)");
    check("std::_V2::system_category()", "std::system_category()");
}

TEST_CASE("plain names: arguments that somebody chose stay") {
    for (const char* name :
         {"std::vector<int, my::allocator<int>>", "std::set<int, std::greater<int>>",
          "std::map<int, A, std::less<void>>", "std::tuple<int, std::less<int>>",
          "std::pair<int, std::allocator<int>>", "my::vector<int, std::allocator<int>>",
          "std::unordered_map<int, A, my::hash>", "std::deque<int, std::deque<char>>",
          "std::basic_string<char, my::traits, std::allocator<char>>", "int [16777216]"})
        CHECK(plain_types(name) == name);
}

TEST_CASE("plain names: text that is not understood stays") {
    for (const char* name :
         {"", "<", "a<", "a<b", "a>b", "a<(b>", "operator<", "operator<<", "a::operator->",
          "std::enable_if<((1)<(2)), int>::type f<1>", "<A<T> as B>::f", "f<->", "[abi:", "(a>b)"})
        CHECK(plain_types(name) == name);
    const std::string deep = std::string(100'000, '<');
    CHECK(plain_types(deep) == deep);
}

TEST_CASE("plain names: functions") {
    const auto check = [](const std::string& name, const std::string& plain) {
        CHECK(plain_function(name) == plain);
    };
    check("main", "main");
    check("ns::f(int, " STRING " const&) const", "ns::f");
    check("void ns::twice<int>(int)", "ns::twice<int>");
    check("f(int) [clone .isra.0]", "f [clone .isra.0]");
    check("std::vector<int, std::allocator<int> >::operator[](unsigned long)",
          "std::vector<int>::operator[]");
    check("A::operator()(int) const", "A::operator()");
    check("A::operator() const", "A::operator() const");
    check("main::{lambda(int)#1}::operator()(int) const", "main::{lambda#1}::operator()");
    check("void f<int>(int)::{lambda()#2}::operator()() const", "f<int>::{lambda#2}::operator()");
    check("std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)",
          "std::operator<< <std::char_traits<char>>");
    check("(anonymous namespace)::f(int)", "(anonymous namespace)::f");
    check("operator delete(void*, unsigned long)", "operator delete");
    check("alloc::vec::Vec<T,A>::push::h0123456789abcdef", "alloc::vec::Vec<T, A>::push");
    check("main.(*List).Add", "main.(*List).Add");
    check("java.util.HashMap::get", "java.util.HashMap::get");
}

TEST_CASE("display names: two functions never get one name") {
    const DisplayNames names =
        names_of({"f(int)", "f(long)", "g(int)", "h(" STRING ")",
                  "h(std::basic_string<char, std::char_traits<char>, "
                  "std::allocator<char> >)",
                  "k(int)", "k", "std::vector<int, std::allocator<int> >::at",
                  "a::b::h0123456789abcdef", "a::b::h0123456789abcdff"});
    CHECK(names("f(int)") == "f(int)");
    CHECK(names("f(long)") == "f(long)");
    CHECK(names("g(int)") == "g");
    CHECK(names("h(" STRING ")") == "h(" STRING ")");
    CHECK(names("k(int)") == "k(int)");
    CHECK(names("k") == "k");
    CHECK(names("std::vector<int, std::allocator<int> >::at") == "std::vector<int>::at");
    CHECK(names("a::b::h0123456789abcdef") == "a::b::h0123456789abcdef");
    CHECK(names("unknown(" STRING ")") == "unknown(std::string)");
}

TEST_CASE("display names: full names") {
    DisplayNames names(NameStyle::kFull);
    names.add("f(" STRING ")");
    names.finish();
    CHECK(names("f(" STRING ")") == "f(" STRING ")");
    CHECK(names.of_type(STRING) == STRING);
}

TEST_CASE("display names: objects begin with a function") {
    const DisplayNames names = names_of({"make(int)", "f(" STRING ")"});
    Groups::Group group;
    group.kind = "object";
    group.name = "make(int) (a.cpp:12)";
    group.attributes = {{"class", "heap"}};
    CHECK(names.of_group(group) == "make (a.cpp:12)");
    group.name = "f(" STRING "): text";
    group.attributes = {{"class", "stack"}};
    CHECK(names.of_group(group) == "f: text");
    group.kind = "type";
    group.name = "std::vector<int, std::allocator<int> >";
    group.attributes.clear();
    CHECK(names.of_group(group) == "std::vector<int>");
}

TEST_CASE("plain names: spellings that users may give") {
    const auto is_known = [](std::string_view name, std::string_view asked) {
        return any_spelling(name, [&](std::string_view each) { return each == asked; });
    };
    const std::string full = "void ns::f<int>(" STRING ")";
    CHECK(is_known(full, full));
    CHECK(is_known(full, "void ns::f<int>(std::string)"));
    CHECK(is_known(full, "ns::f<int>"));
    CHECK(!is_known(full, "ns::f"));
}

}  // namespace display_names_test
