// What is damaged, cut short or hostile, the reader of events files refuses.
#include "tests/unit/events_files.h"
#include "tests/unit/temporary_folder.h"

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <map>
#include <string>

namespace events_refused_test {

using namespace assay::events;
using assay::Error;

TEST_CASE("events: a file cut short at any byte is refused") {
    for (const char* const name : {"version-1.events", "cachegrind.out"}) {
        const std::string text = text_of_data(name);
        REQUIRE(text.back() == '\n');
        CHECK(error_of(text) == "");
        CHECK(error_of(text.substr(0, text.size() - 1)) == "");
        for (std::size_t size = 0; size + 1 < text.size(); ++size) {
            CAPTURE(size);
            const std::string error = error_of(text.substr(0, size));
            CHECK(error.starts_with("FILE:"));
        }
    }
}

TEST_CASE("events: a compressed file cut short or damaged is refused") {
    const TemporaryFolder folder;
    for (const std::string name : {"packed.gz", "packed.zst"}) {
        write_example(folder.file(name));
        const std::string whole = folder.read(name);
        for (std::size_t size = 0; size < whole.size(); ++size) {
            CAPTURE(size);
            folder.write("cut", whole.substr(0, size));
            Recorder recorder;
            CHECK_THROWS_AS(read_events(folder.file("cut"), recorder), Error);
        }
        std::string damaged = whole;
        damaged[damaged.size() / 2] ^= 0x20;
        folder.write("damaged", damaged);
        Recorder recorder;
        CHECK_THROWS_AS(read_events(folder.file("damaged"), recorder), Error);
        folder.write("twice", whole + whole);  // decompresses to two files in a row
        CHECK_THROWS_WITH_AS(read_events(folder.file("twice"), recorder),
                             doctest::Contains("after the summary"), Error);
    }
}

TEST_CASE("events: errors name the line, the reason and the value") {
    const std::map<std::string, std::string> cases = {
        {"", "FILE: the file is empty"},
        {"hello\n", "FILE:1: not an events file: expected a desc: or cmd: line (hello)"},
        {"desc: a\nfl=x\n", "FILE:2: expected a desc: or cmd: line (fl=x)"},
        {"desc: a\n", "FILE:1: the file ends before its events: line"},
        {"cmd: t\nfl=x\n", "FILE:2: expected the events: line (fl=x)"},
        {"cmd: t\nevents: \n", "FILE:2: the events: line names no event"},
        {"cmd: t\nevents: A B A\n", "FILE:2: the event occurs twice (A)"},
        {kStart, "FILE:3: the file ends without a summary: it was cut short"},
        {kStart + "1 2 3\n", "FILE:4: counts without fl= and fn= before them (1 2 3)"},
        {kStart + "fl=a\n1 2 3\n", "FILE:5: counts without fl= and fn= before them (1 2 3)"},
        {kStart + "fn=f\n", "FILE:4: fn= without a fl= before it (fn=f)"},
        {kStart + "fx=f\n", "FILE:4: expected fl=, fn=, counts or summary: (fx=f)"},
        {kStart + kPlace + "1x 2\n", "FILE:6: malformed line number (1)"},
        {kStart + kPlace + "4294967296 2\n", "FILE:6: number beyond 4294967295 (4294967296)"},
        {kStart + kPlace + "1 2 3 4\n", "FILE:6: more counts than events (4)"},
        {kStart + kPlace + "1 2 x\n", "FILE:6: malformed count (x)"},
        {kStart + kPlace + "1 2x\n", "FILE:6: malformed count (2x)"},
        {kStart + kPlace + "1 ..\n", "FILE:6: malformed count (..)"},
        {kStart + kPlace + "1 -2\n",
         "FILE:6: negative count: only a difference of two profiles may have one (-2)"},
        {kStart + kPlace + "1 18446744073709551616\n",
         "FILE:6: the count exceeds 64 bits (18446744073709551616)"},
        {kStart + kPlace + "1 18446744073709551615\n1 1\n",
         "FILE:7: the total of Ir exceeds 64 bits (1)"},
        {kStart + kPlace + "1 2 3\nsummary: 2\n",
         "FILE:7: the summary has 1 counts for 2 events (2)"},
        {kStart + kPlace + "1 2 3\nsummary: 2 4\n",
         "FILE:7: the summary of Dr differs from the sum of its counts, 3: the file is damaged "
         "(4)"},
        {kStart + kPlace + "summary: 0 0\nfl=b\n",
         "FILE:7: unexpected line after the summary (fl=b)"},
    };
    for (const auto& [text, error] : cases) CHECK(error_of(text) == error);
}

TEST_CASE("events: malformed extensions are refused") {
    const std::map<std::string, std::string> cases = {
        {kStart + "fl=#! pid 4\n", "FILE:4: expected '#! version' first (pid)"},
        {kStart + kPlace + "fl=#! version 1\n", "FILE:6: expected '#! version' first (version)"},
        {kStart + "fl=#! version 0\n", "FILE:4: versions begin with 1 (0)"},
        {kStart + "fl=#! version 2\n",
         "FILE:4: the file is of format version 2, but this assay reads only up to version 1; use "
         "a newer assay"},
        {kVersion + "fl=#! pid x\n", "FILE:5: malformed number (x)"},
        {kVersion + "fl=#! event Ix\n", "FILE:5: the events: line does not name this event (Ix)"},
        {kVersion + "fl=#! event Ir \"open\n",
         "FILE:5: malformed description of event Ir (\"open)"},
        {kVersion + "fl=#! derived \"x\" Ir\n", "FILE:5: expected '= formula' (Ir)"},
        {kVersion + "fl=#! derived \"x\" = Ir /\n",
         "FILE:5: formula 'Ir /': expected an event, a number or ( at its end"},
        {kVersion + "fl=#! object 1 /a\n", "FILE:5: objects must be numbered from 0 upwards (1)"},
        {kVersion + "fl=#! at 0:0x1 1 1\n",
         "FILE:5: an instruction without fn= before it (0:0x1 1 1)"},
        {kVersion + kPlace + "fl=#! at 0:0x1 1 1\n", "FILE:7: unknown object (0:0x1)"},
        {kVersion + kPlace + "fl=#! at 0x1 1 1\n", "FILE:7: expected OBJECT:0xADDRESS (0x1)"},
        {kVersion + "fl=#! object 0 a load=12\n",
         "FILE:5: expected an address, 0xADDRESS, of an object (12)"},
        {kVersion + "fl=#! object 0 a\n" + kPlace + "1 1\nfl=#! at 0:0x1 1 1\n1 1\n",
         "FILE:10: counts without fl= and fn= before them (1 1)"},
        {kVersion + kPlace + "1 1\nfl=#! from a later release\n1 1\n",
         "FILE:9: counts without fl= and fn= before them (1 1)"},
        {kVersion + "fl=#! object 0 a\n" + kPlace + "1 1\nfl=#! at 0:0x1 1 2\nsummary: 1 0\n",
         "FILE:10: the counts of Ir by instruction exceed its summary (2)"},
        {kVersion + "fl=#! site 2 a.c f 1\n", "FILE:5: sites must be numbered from 1 upwards (2)"},
        {kVersion + "fl=#! site 1 a.c f 1 2@1 3@3\n",
         "FILE:5: the enclosing site must come first (3@3)"},
        {kVersion + "fl=#! site 1 a.c\n", "FILE:5: expected a file and a function (1)"},
        {kVersion + "fl=#! site 1 a.c f x\n", "FILE:5: malformed number (x)"},
        {kVersion + "fl=#! site 1 a.c f 1@\n", "FILE:5: malformed number ()"},
        {kVersion + kPlace + "1 1\nfl=#! site 1 a.c f 1\n",
         "FILE:8: a site after the first function (1 a.c f 1)"},
        {kSites + kPlace + "1 1\nfl=#! sites 1*2\n",
         "FILE:9: more sites than rows of counts (1*2)"},
        {kSites + kPlace + "1 1\nfl=#! sites 0 1\n", "FILE:9: more sites than rows of counts (1)"},
        {kSites + kPlace + "1 1\nfl=#! at-sites 1\n", "FILE:9: more sites than rows of counts (1)"},
        {kSites + kPlace + "1 1\nfl=#! sites 2\n", "FILE:9: unknown site (2)"},
        {kSites + kPlace + "1 1\nfl=#! sites 1*\n", "FILE:9: malformed number ()"},
        {kContexts + "2 in=0 call=0:0x1 f\n",
         "FILE:9: contexts must be numbered from 1 upwards (2)"},
        {kContexts + "1 in=1 call=0:0x1 f\n", "FILE:9: the enclosing context must come first (1)"},
        {kContexts + "1 in=0 0:0x1 f\n",
         "FILE:9: expected call=, interrupted=, inlined= or jumped= (0:0x1 f)"},
        {kContexts + "1 in=0 inlined=3 f\n",
         "FILE:9: an inlined function outside of all calls (3)"},
        {kContexts + "1 in=0 call=0:0x1 f\nfl=#! stack 2 in=1 inlined=4294967296 g\n",
         "FILE:10: number beyond 4294967295 (4294967296)"},
        {kContexts + "1 in=0 call=0:0x1:2:3 f\n", "FILE:9: malformed number (2:3)"},
        {kContexts + "1 in=0 call=1:0x1 f\n", "FILE:9: unknown object (1:0x1)"},
        {kContexts + "1 in=0 call=0:0x1 \"f\n", "FILE:9: malformed name of a function ()"},
        {kContexts + "1 in=0 call=0:0x1 f 1 2 3\n", "FILE:9: more counts than events (3)"},
        {kContexts + "1 in=0 call=0:0x1 f\nfl=#! calls 0 1\n",
         "FILE:10: calls of an unknown context (1)"},
        {kContexts + "1 in=0 call=0:0x1 f\nfl=#! calls 1 1 2\n",
         "FILE:10: calls of an unknown context (2)"},
        {kContexts + "1 in=0 call=0:0x1 f\nfl=#! recursion 2 in=1 call=0:0x1 3\n",
         "FILE:10: unknown context (2)"},
        {kContexts + "1 in=0 call=0:0x1 f\nfl=#! recursion 1 in=0 call=0:0x1 3\n",
         "FILE:10: unknown context (0)"},
        {kContexts + "1 in=0 call=0:0x1 f\nfl=#! recursion 1 in=1 call=7:0x1 3\n",
         "FILE:10: unknown object (7:0x1)"},
        {kContexts + "1 in=0 call=0:0x1 f\nfl=#! recursion 1 in=1 call=0:0x1\n",
         "FILE:10: malformed number ()"},
        {kContexts + "1 in=0 call=0:0x1 f 2\nsummary: 1 2\n",
         "FILE:10: the counts of Ir by calling context exceed its summary (2)"},
    };
    const std::string groups = kVersion + "fl=#! group 1 object in=0 a\n";
    const std::map<std::string, std::string> cases_of_groups = {
        {kVersion + "fl=#! group 2 object in=0 a\n",
         "FILE:5: groups must be numbered from 1 upwards (2)"},
        {kVersion + "fl=#! group 1\n", "FILE:5: expected the kind of a group (1)"},
        {kVersion + "fl=#! group 1 object a\n", "FILE:5: malformed number ()"},
        {kVersion + "fl=#! group 1 object in=1 a\n",
         "FILE:5: the enclosing group must come first (1)"},
        {kVersion + "fl=#! group 1 object in=0 \"a\n", "FILE:5: malformed name of a group ()"},
        {kVersion + "fl=#! group 1 object in=0 a size\n", "FILE:5: expected KEY=VALUE (size)"},
        {groups + kPlace + "1 1\nfl=#! group 2 object in=0 a\n",
         "FILE:9: a group after the first function (2 object in=0 a)"},
        {groups + "fl=#! of 1 1 1\n", "FILE:6: counts of a group without fn= before them (1 1 1)"},
        {groups + kPlace + "1 1\nfl=#! of 2 1 1\n", "FILE:9: unknown group (2)"},
        {groups + kPlace + "1 1\nfl=#! of 0 1 1\n", "FILE:9: unknown group (0)"},
        {groups + kPlace + "1 1\nfl=#! of 1 x\n", "FILE:9: malformed number (x)"},
        {groups + kPlace + "1 1\nfl=#! of 1 1 2\nsummary: 1 0\n",
         "FILE:10: the counts of Ir by object exceed its summary (2)"},
    };
    const std::map<std::string, std::string> cases_of_linkage = {
        {kVersion + "fl=#! object 0 a\nfl=#! binary 0\n",
         "FILE:6: a binary without fn= before it (0)"},
        {kVersion + kPlace + "1 1\nfl=#! binary 0\n", "FILE:8: unknown object (0)"},
        {kVersion + "fl=#! linkage _Z1fv\n",
         "FILE:5: a linkage name without fn= before it (_Z1fv)"},
        {kVersion + kPlace + "1 1\nfl=#! linkage\n", "FILE:8: expected a linkage name ()"},
        {kVersion + kPlace + "1 1\nfl=#! linkage \"\"\n", "FILE:8: expected a linkage name (\"\")"},
        {kVersion + kPlace + "1 1\nfl=#! linkage \"_Z1fv\n",
         "FILE:8: expected a linkage name (\"_Z1fv)"},
        {kVersion + kPlace + "1 1\nfl=#! linkage _Z1fv\n1 1\n",
         "FILE:9: counts without fl= and fn= before them (1 1)"},
    };
    for (const auto& [text, error] : cases_of_linkage) CHECK(error_of(text) == error);
    for (const auto& [text, error] : cases_of_groups) CHECK(error_of(text) == error);
    std::string deep = kVersion, kinds = kVersion;
    for (int i = 1; i <= 257; ++i) deep += fmt::format("fl=#! group {} member in={} a\n", i, i - 1);
    for (int i = 1; i <= 65; ++i) kinds += fmt::format("fl=#! group {} kind{} in=0 a\n", i, i);
    CHECK(error_of(deep) == "FILE:261: groups are nested too deeply (257)");
    CHECK(error_of(kinds) == "FILE:69: too many kinds of groups (kind65)");
    for (const auto& [text, error] : cases) CHECK(error_of(text) == error);
    CHECK(error_of(kVersion + "fl=#! later anything\n" + kPlace + "1 2\nsummary: 2 0\n") == "");
}

TEST_CASE("events: malformed lists of values are refused") {
    const std::string start = kVersion + "fl=#! object 0 a\n" + kPlace + "1 1\nfl=#! value ";
    const std::string place = "0:0x1 1 ";
    const std::map<std::string, std::string> cases = {
        {"1:0x1 1 p 1", "unknown object (1:0x1)"},
        {"0:0x1 1", "expected the name of a list of values ()"},
        {place + "p", "malformed number ()"},
        {place + "p x", "malformed number (x)"},
        {place + "p -1", "malformed number (-1)"},
        {place + "p 18446744073709551616",
         "number beyond 18446744073709551615 (18446744073709551616)"},
        {place + "p 1 error=", "expected 0xVALUE:COUNT (error=)"},
        {place + "p 1 error=2", "the error exceeds the total (0:0x1 1 p 1 error=2)"},
        {place + "p 1 0x1", "expected 0xVALUE:COUNT (0x1)"},
        {place + "p 1 1:1", "expected 0xVALUE:COUNT (1:1)"},
        {place + "p 1 0x:1", "malformed number ()"},
        {place + "p 1 0x1:", "malformed number ()"},
        {place + "p 1 0x10000000000000000:1",
         "number beyond 18446744073709551615 (10000000000000000)"},
        {place + "p 1 0x1:0", "a value was never seen (0:0x1 1 p 1 0x1:0)"},
        {place + "p 2 0x1:2 0x2:1", "the counts exceed the total (0:0x1 1 p 2 0x1:2 0x2:1)"},
        {place + "p 2 0x1:18446744073709551615 0x2:18446744073709551615",
         "the counts exceed the total (0:0x1 1 p 2 0x1:18446744073709551615 "
         "0x2:1844674407370955161...)"},
        {place + "p 3 0x1:1 0x2:2",
         "the values are not sorted by their counts (0:0x1 1 p 3 0x1:1 0x2:2)"},
        {place + "p 3 0x1:2 0x1:1", "a value occurs twice (0:0x1 1 p 3 0x1:2 0x1:1)"},
    };
    for (const auto& [line, error] : cases)
        CHECK(error_of(start + line + "\n") == "FILE:9: " + error);
    CHECK(error_of(start + place + "p 3 error=3\t0x1:2 \nsummary: 1 0\n") == "");
    CHECK(error_of(kVersion + "fl=#! value 0:0x1 1 p 1\n") ==
          "FILE:5: an instruction without fn= before it (0:0x1 1 p 1)");
}

TEST_CASE("events: lines and lists of hostile length are refused") {
    CHECK(error_of(std::string(kMaxLineBytes + 1, 'x')).starts_with("FILE:1: the line is longer"));
    std::string text = "cmd: t\nevents:";
    for (std::size_t i = 0; i <= kMaxEvents; ++i) text += " e" + std::to_string(i);
    CHECK(error_of(text + "\n") == "FILE:2: more than 256 events (e256)");
    const std::string nested = std::string(100'000, '(') + "Ir";
    CHECK(error_of(kVersion + "fl=#! derived x = " + nested + "\n").find("nested too deeply") !=
          std::string::npos);
    CHECK(error_of(kStart + "\x1b[2J" + std::string(100, 'y') + "\n") ==
          "FILE:4: expected fl=, fn=, counts or summary: (\\x1b[2J" + std::string(56, 'y') +
              "...)");
}

}  // namespace events_refused_test
