// assay sweep: lists and ranges of values, the command line, what is said about time.
#include "framework/support/error.h"
#include "tests/unit/temporary_folder.h"
#include "tools/sweep/local.h"
#include "tools/sweep/options.h"
#include "tools/sweep/plan.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace sweep_test {

using namespace assay;
using namespace assay::sweep;

namespace {

using Texts = std::vector<std::string>;

const ValueForm kShape{"--D1", "SIZE,WAYS,LINE", 1024}, kName{"--predictor", "a|b", 1024},
    kCount{"--interval-size", "N", 1000};

std::string refusal(const ValueForm& form, const std::string& text) {
    try {
        listed_values(form, Texts{text});
        return "";
    } catch (const Error& error) {
        return error.what();
    }
}

Texts listed(const ValueForm& form, const std::string& text) {
    return listed_values(form, Texts{text});
}

Options parsed(std::vector<const char*> words) {
    words.insert(words.begin(), "sweep");
    return *parse_options(static_cast<int>(words.size()), words.data());
}

}  // namespace

TEST_CASE("values of a sweep are separated by what they do not contain") {
    CHECK(listed(kName, "gshare,tage;last") == Texts{"gshare", "tage", "last"});
    CHECK(listed(kName, "a b") == Texts{"a b"});
    CHECK(listed(kName, "map<a\\,b>,c\\d") == Texts{"map<a,b>", "c\\d"});
    CHECK(listed(kShape, "16K,8,64") == Texts{"16K,8,64"});
    CHECK(listed(kShape, " 16K,8,64  32K,8,64 ; 64K,8,64") ==
          Texts{"16K,8,64", "32K,8,64", "64K,8,64"});
    CHECK(listed_values(kShape, Texts{"16K,8,64", "32K,8,64", "16K,8,64"}) ==
          Texts{"16K,8,64", "32K,8,64"});
    CHECK(listed(kName, "../a.yaml,./b..c,d/../e") == Texts{"../a.yaml", "./b..c", "d/../e"});
    CHECK(refusal(kName, "a,,b").starts_with("--predictor=a,,b: a value is empty"));
    CHECK(refusal(kName, "") != "");
    CHECK(refusal(kShape, " ; ") != "");
}

TEST_CASE("numbers of a range double from one value to the next") {
    CHECK(listed(kShape, "16K,8,64..128K,8,64") ==
          Texts{"16K,8,64", "32K,8,64", "64K,8,64", "128K,8,64"});
    CHECK(listed(kShape, "512K,8,64..2M,8,64") == Texts{"512K,8,64", "1M,8,64", "2M,8,64"});
    CHECK(listed(kShape, "16384,8,64..65536,8,64") ==
          Texts{"16384,8,64", "32768,8,64", "65536,8,64"});
    CHECK(listed(kShape, "32K,1,64..32K,8,64") ==
          Texts{"32K,1,64", "32K,2,64", "32K,4,64", "32K,8,64"});
    CHECK(listed(kShape, "16K,4,64..64K,16,64 1M,16,64") ==
          Texts{"16K,4,64", "32K,8,64", "64K,16,64", "1M,16,64"});
    CHECK(listed(kCount, "500k..2M") == Texts{"500k", "1M", "2M"});
    CHECK(listed(kCount, "1..8,5") == Texts{"1", "2", "4", "8", "5"});
}

TEST_CASE("one number of a range can grow by steps") {
    CHECK(listed(kCount, "10..14+2") == Texts{"10", "12", "14"});
    CHECK(listed(kShape, "32K,4,64..96K,4,64+32K") == Texts{"32K,4,64", "64K,4,64", "96K,4,64"});
}

TEST_CASE("a wrong range is refused with the item, what is wrong, and what a range is") {
    for (const auto& [text, why] :
         {std::pair{"16K,8,64..100K,8,64", "16K does not become 100K by doubling"},
          {"32K,8,64..16K,8,64", "32K does not become 16K by doubling"},
          {"0,8,64..16K,8,64", "0 does not become 16K by doubling"},
          {"16K,8,64..64K,16,64", "8 becomes 16 in a different number of steps"},
          {"16K,8,64..128K", "both ends must have as many numbers"},
          {"16K,8,64..16K,8,64", "both ends are the same"},
          {"16K,8,64..128X,8,64", "\"128X\" is not a number"},
          {"16K,8,64..", "\"\" is not a number"},
          {"16K,8,64..64K,8,64+0", "\"0\" is not a number to add"},
          {"16K,8,64..64K,9,64+1", "only one number can vary"},
          {"3,8,64..8,8,64+2", "steps of 2 do not lead from 3 to 8"},
          {"8,8,64..3,8,64+1", "the second end is below the first"},
          {"1,8,64..99999,8,64+1", "more than 10000 values"},
          {"1,8,64..99999999999999999999,8,64", "is not a number"},
          {"16K,8,64..17179869184G,8,64", "is not a number"}}) {
        const std::string said = refusal(kShape, text);
        CHECK_MESSAGE(said.find(why) != std::string::npos, said);
        CHECK(said.starts_with(std::string("--D1: ") + text));
        CHECK(said.find("FROM..TO") != std::string::npos);
    }
}

TEST_CASE("an axis has the sizes that differ") {
    using Sizes = std::vector<std::uint64_t>;
    CHECK(sizes_of(kShape, Texts{"16K,8,64", "1M,8,64"}) == Sizes{16384, 1048576});
    CHECK(sizes_of(kShape, Texts{"16K,4,64", "16K,8,64"}) == Sizes{4, 8});
    CHECK(sizes_of(kCount, Texts{"1k", "2"}) == Sizes{1000, 2});
    CHECK(sizes_of(kName, Texts{"a", "b"}).empty());
    CHECK(sizes_of(kShape, Texts{"16K,8,64", "16K,8"}).empty());
    CHECK(sizes_of(kCount, Texts{"0", "2"}).empty());
}

TEST_CASE("the words before the program are the sweep's own or those of its runs") {
    const Options options = parsed({"-j4", "--plugin", "cache", "--D1=1,2,3", "-o", "out",
                                    "--contexts", "--show=Ir", "--", "ls", "-o", "x"});
    CHECK(options.jobs == 4);
    CHECK(options.folder == "out");
    CHECK(options.show == Texts{"Ir"});
    CHECK(options.words ==
          Texts{"--plugin=cache", "--D1=1,2,3", "--contexts", "--", "ls", "-o", "x"});
    CHECK(options.program == Texts{"ls", "-o", "x"});
    REQUIRE(options.settings.size() == 3);
    CHECK(options.settings[1].name == "D1");
    CHECK(options.settings[1].value == "1,2,3");
    CHECK_THROWS_AS(parsed({"--plugin=cache", "--"}), Error);
    CHECK_THROWS_AS(parsed({"--jobs=0", "ls"}), Error);
    CHECK_THROWS_AS(parsed({"--D1", "ls"}), Error);
}

TEST_CASE("a file that begins as a trace is replayed, unless it stands behind dashes") {
    const TemporaryFolder folder;
    const std::string path = folder.write("run.trace", "assaytrc\1\2\3");
    CHECK(parsed({"--plugin=cache", path.c_str()}).is_trace);
    CHECK(!parsed({"--plugin=cache", "--", path.c_str()}).is_trace);
    CHECK_THROWS_AS(parsed({"--plugin=cache", path.c_str(), "more"}), Error);
}

TEST_CASE("points are all combinations, the last option varying fastest") {
    const TemporaryFolder folder;
    const std::string path = folder.write("run.trace", "assaytrc");
    const std::string plugin = std::string("--plugin=") + std::getenv("ASSAY_CACHE_PLUGIN");
    const Plan plan(parsed({plugin.c_str(), "--D1=16K,8,64..64K,8,64", "--dump-instr=no",
                            "--rep=once", "--LL=1M,16,64", "--LL=2M,16,64", path.c_str()}));
    REQUIRE(plan.size() == 6);
    CHECK(plan.values(0) == Texts{"16K,8,64", "1M,16,64"});
    CHECK(plan.values(1) == Texts{"16K,8,64", "2M,16,64"});
    CHECK(plan.values(5) == Texts{"64K,8,64", "2M,16,64"});
    CHECK(plan.label(5) == "--D1=64K,8,64 --LL=2M,16,64");
    const Texts command = plan.command(3, "50%/out");
    CHECK(Texts(command.begin() + 1, command.end()) ==
          Texts{"replay", plugin, "--dump-instr=no", "--rep=once", "--D1=32K,8,64", "--LL=2M,16,64",
                "--out=50%%/out", path});
    CHECK(std::find(plan.files().begin(), plan.files().end(), path) != plan.files().end());
    CHECK_THROWS_AS(Plan(parsed({plugin.c_str(), "--D1=16K,7,64 16K,8,64", path.c_str()})), Error);
    CHECK_THROWS_AS(Plan(parsed({plugin.c_str(), "--d1=16K,8,64", path.c_str()})), Error);
    CHECK_THROWS_AS(Plan(parsed({"--D1=16K,8,64", path.c_str()})), Error);
    CHECK_THROWS_WITH_AS(Plan(parsed({plugin.c_str(), "--cpu=host", path.c_str()})),
                         doctest::Contains("--cpu belongs to the run, which a replay"), Error);
}

TEST_CASE("commands are written as a shell reads them") {
    CHECK(shell_line(Texts{"a", "--b=c,1", "d e", "it's", ""}) == "a --b=c,1 'd e' 'it'\\''s' ''");
}

TEST_CASE("times are told as people do") {
    using std::chrono::seconds;
    CHECK(time_left(seconds(59)) == "less than a minute");
    CHECK(time_left(seconds(121)) == "about 3 min");
    CHECK(time_left(seconds(3 * 3600)) == "about 3 h");
    CHECK(time_left(seconds(72 * 3600)) == "about 3 days");
}

}  // namespace sweep_test
