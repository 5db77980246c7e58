// Groups of several events files, added up.
#include "tools/profile/profile.h"

#include "framework/events/writer.h"
#include "tests/unit/temporary_folder.h"

#include <doctest/doctest.h>
#include <string>

namespace group_profile_test {

using namespace assay;

namespace {

events::Header header(const std::string& command) {
    events::Header header;
    header.command = command;
    header.events = {{"Dr", "", "reads", ""}};
    header.objects = {{"/usr/bin/prog", ""}, {"/usr/lib/lib.so", ""}};
    return header;
}

// Two variables of one name in one binary, one in another; two blocks of one place; a type.
void write(const std::string& path, const std::string& command, const std::string& blocks) {
    events::Writer writer(path, header(command));
    const std::uint64_t one[] = {1}, two[] = {2}, hundred[] = {100}, none[] = {0};
    const std::pair<std::string, std::string> first{"binary", "0"}, second{"binary", "1"};
    writer.group({1, 0, "object", "buffer", {{"class", "static"}, first}});
    writer.group({2, 0, "object", "buffer", {{"class", "static"}, first}});
    writer.group({3, 0, "object", "buffer", {{"class", "static"}, second}});
    writer.group({4,
                  0,
                  "object",
                  "make",
                  {{"class", "heap"}, {"blocks", blocks}, {"peak", blocks}, {"stack", "2"}}});
    writer.group({5,
                  0,
                  "object",
                  "make",
                  {{"class", "heap"}, {"blocks", "1"}, {"peak", "1"}, {"stack", "3"}}});
    writer.group({6, 0, "type", "s", {}});
    writer.group({7, 6, "member", "m", {{"offset", "8"}}});
    writer.location("a.c", "f");
    writer.line(3, hundred);
    for (std::uint32_t group = 1; group <= 5; ++group) writer.counts_of(group, one);
    writer.counts_of(7, two);
    writer.stack({1, 0, events::StackKind::kCall, 0, 0x10, 0, "main"}, none);
    writer.stack({2, 1, events::StackKind::kCall, 0, 0x20, 7, "malloc"}, none);
    writer.stack({3, 1, events::StackKind::kCall, 0, 0x30, 7, "malloc"}, none);
    writer.finish();
}

}  // namespace

TEST_CASE("groups: those of several files are one if they are of the same") {
    const TemporaryFolder folder;
    write(folder.file("a"), "a", "3");
    write(folder.file("b"), "b", "5");
    Profile read(parts::kGroups | parts::kContexts);
    read.add_file(folder.file("a"));
    read.add_file(folder.file("b"));
    read.finish();
    CHECK(read.totals()[0] == 200);
    const Groups& profile = read.groups();
    CHECK(profile.kinds() == std::vector<std::string>{"object", "type", "member"});
    REQUIRE(profile.groups().size() == 6);
    for (std::size_t variable = 0; variable < 3; ++variable) {
        CHECK(profile.groups()[variable].name == "buffer");
        CHECK(profile.groups()[variable].counts[0] == 2);
    }
    const Groups::Group& heap = profile.groups()[3];
    CHECK(heap.counts[0] == 4);
    CHECK(heap.number("blocks") == 10);
    CHECK(heap.number("peak") == 5);
    CHECK(heap.callers == std::vector<std::string>{"malloc", "main"});
    const Groups::Group& type = profile.groups()[4];
    CHECK(type.counts[0] == 4);
    CHECK(type.inner == std::vector<std::uint32_t>{5});
    CHECK(profile.lines(4).empty());
    const auto lines = profile.lines(5);
    REQUIRE(lines.size() == 1);
    CHECK(profile.text(lines[0].function) == "f");
    CHECK(lines[0].line == 3);
    CHECK(lines[0].counts[0] == 4);
}

}  // namespace group_profile_test
