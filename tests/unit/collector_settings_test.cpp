#include "framework/collector/profilers/columns.h"
#include "framework/collector/profilers/host.h"
#include "framework/collector/profilers/loaded_profiler.h"
#include "framework/collector/run/settings.h"
#include "framework/support/error.h"
#include "tests/unit/temporary_folder.h"

#include <doctest/doctest.h>
#include <cstdlib>

namespace collector_settings_test {

using namespace assay;
using namespace assay::collector;

namespace {

CommandWords parse(const std::vector<std::string>& words) {
    return parse_command_line(words);
}

CoreSettings core(const std::vector<std::string>& words) {
    return take_core_settings(parse(words).settings);
}

// The message of the error that `function` throws.
template <typename Function>
std::string message(const Function& function) {
    try {
        function();
    } catch (const Error& e) {
        return e.what();
    }
    return "no error";
}

std::string test_plugin(const std::string& name) {
    return std::string(std::getenv("ASSAY_TEST_PLUGINS")) + "/" + name + ".so";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("everything before the program is assay's") {
    const CommandWords line = parse({"--plugin=cache", "--D1=1,2,3", "-q", "ls", "-l", "--out=x"});
    CHECK(line.program == std::vector<std::string>{"ls", "-l", "--out=x"});
    REQUIRE(line.settings.size() == 3);
    CHECK(line.settings[1].name == "D1");
    CHECK(line.settings[1].value == "1,2,3");
    CHECK(line.settings[2].name == "quiet");

    CHECK(parse({"--plugin", "cache", "--", "--odd-name"}).program ==
          std::vector<std::string>{"--odd-name"});
    CHECK(parse({"--out="}).settings[0].value.empty());
}

TEST_CASE("the parts of a program that are profiled") {
    const auto functions = [](const std::vector<std::string>& words) {
        return std::string(core(words).regions.functions);
    };
    CHECK(functions({}) == "");
    CHECK(core({}).regions.off_at_start == 0);
    CHECK(core({"--collect-at-start=no"}).regions.off_at_start == 1);
    CHECK(functions({"--toggle=a,b", "--toggle=n::f(int, T<1,2>),c"}) ==
          "a\nb\nn::f(int, T<1,2>)\nc");
    CHECK(core({"--from-instruction=7", "--to-instruction=7"}).regions.to_instruction == 7);
    CHECK(core({"--from-instruction=5k", "--to-instruction=4M"}).regions.from_instruction == 5000);
    CHECK(core({"--to-instruction=4K"}).regions.to_instruction == 4000);
    CHECK(core({"--to-instruction=9G"}).regions.to_instruction == 9'000'000'000);
    for (const std::string wrong : {"0", "", "-1", "1.5", "9223372036854775808", "9300000000G", "k",
                                    "4Mi", "4 M", "4T", "0M"})
        CHECK(contains(message([&] { core({"--to-instruction=" + wrong}); }),
                       "not a whole number from 1 to 2^63-1"));
    CHECK(contains(message([] {
                       core({"--from-instruction=8", "--to-instruction=7"});
                   }),
                   "is after"));
    CHECK(contains(message([] { core({"--toggle=a,"}); }), "not a list of function names"));
    CHECK(contains(message([] { core({"--toggle=" + std::string(2000, 'a')}); }), "wildcards"));
}

TEST_CASE("the time limit of a run") {
    using std::chrono::milliseconds;
    const auto limit = [](const std::string& text) { return core({"--timeout=" + text}).timeout; };
    CHECK(core({}).timeout == milliseconds(0));
    CHECK(limit("90") == milliseconds(90'000));
    CHECK(limit("0.25s") == milliseconds(250));
    CHECK(limit("2m") == milliseconds(120'000));
    CHECK(limit("1.5h") == milliseconds(5'400'000));
    for (const std::string wrong : {"", "s", "0", "-1", "1d", "1 s", "nan", "inf", "1e300"})
        CHECK(contains(message([&] { limit(wrong); }), "is not a time"));
}

TEST_CASE("the time limit of a call of a profiler") {
    using std::chrono::milliseconds;
    const auto limit = [](const std::string& text) {
        return core({"--profiler-timeout=" + text}).profiler_timeout;
    };
    CHECK(core({}).profiler_timeout == milliseconds(60'000));
    CHECK(limit("0.2") == milliseconds(200));
    CHECK(limit("2m") == milliseconds(120'000));
    CHECK(limit("0") == milliseconds(0));  // none
    for (const std::string wrong : {"", "-1", "0x", "never"})
        CHECK(contains(message([&] { limit(wrong); }),
                       "--profiler-timeout: \"" + wrong + "\" is not"));
}

TEST_CASE("how threads are scheduled") {
    const auto slice = [](const std::string& value) {
        return take_core_settings({{"schedule", value, ""}}).slice;
    };
    CHECK(take_core_settings({}).slice == 0);
    CHECK(slice("parallel") == 0);
    CHECK(slice("fair") == 100'000);
    CHECK(slice("fair:100") == 100);
    CHECK(slice("fair:10K") == 10'000);
    CHECK(slice("fair:10k") == 10'000);
    CHECK(slice("fair:1G") == 1'000'000'000);
    for (const char* wrong : {"", "fair:", "fair:99", "fair:1001M", "fair:1x", "fair10k", "fairly"})
        CHECK_THROWS_WITH_AS(slice(wrong), doctest::Contains("is not parallel, fair, or fair:N"),
                             Error);
}

TEST_CASE("options need their values") {
    CHECK(contains(message([] { parse({"--plugin"}); }), "--plugin=NAME,..."));
    CHECK(contains(message([] { parse({"--D1", "ls"}); }), "--D1=VALUE"));
    CHECK(contains(message([] { parse({"--quiet=yes"}); }), "takes no value"));
    CHECK(contains(message([] { parse({"-x"}); }), "unknown option -x"));
    CHECK(contains(message([] { core({"--aslr=maybe"}); }), "\"maybe\" is not yes or no"));
    CHECK(contains(message([] { core({"--cpu=x86-64-v5"}); }),
                   "\"x86-64-v5\" is not host, x86-64-v2, x86-64-v3 or x86-64-v4"));
}

TEST_CASE("a configuration file has the same options, and the command line wins") {
    const TemporaryFolder folder;
    const std::string path = folder.write("c.yaml",
                                          "plugin: [cache, ./mine.so]\n"
                                          "out: file.%p\n"
                                          "aslr: yes\n"
                                          "cpu: x86-64-v3\n"
                                          "D1: [32768, 8, 64]\n"
                                          "cache:\n"
                                          "  LL: 1,2,3\n");
    const CoreSettings settings = core({"--config=" + path, "--out=mine"});
    CHECK(settings.plugins == std::vector<std::string>{"cache", "./mine.so"});
    CHECK(settings.out == "mine");
    CHECK(settings.randomize_addresses);
    CHECK(settings.cpu_level == trace::CpuLevel::kV3);
    REQUIRE(settings.others.size() == 2);
    CHECK(settings.others[0].value == "32768,8,64");
    CHECK(settings.others[0].origin == path + ":5");
    CHECK(settings.others[1].name == "cache.LL");
}

TEST_CASE("what is wrong in a configuration file is named with its line") {
    const TemporaryFolder folder;
    const auto error = [&](const std::string& content) {
        const std::string path = folder.write("c.yaml", content);
        return message([&] { core({"--config=" + path}); });
    };
    CHECK(contains(error("out: x\naslr: perhaps\n"), "c.yaml:2: aslr: \"perhaps\""));
    CHECK(contains(error("out: x\n\nlist: [a, [b]]\n"), "c.yaml:3"));
    CHECK(contains(error("just text\n"), "c.yaml:1"));
    CHECK(contains(error("a: b: c\n"), "c.yaml:1"));
    CHECK(contains(error("config: other.yaml\n"), "c.yaml:1"));
    CHECK(contains(message([&] { core({"--config=" + folder.file("none")}); }), "none"));
}

TEST_CASE("options find their profiler") {
    CrashGuard guard;
    LoadedProfiler counts(test_plugin("counts"), "", guard);
    LoadedProfiler crash(test_plugin("crash"), "", guard);
    ProfilerHandle* const both[] = {&crash, &counts};
    const auto assign = [&](const std::string& name, const std::string& value,
                            const std::string& origin = "") {
        const Setting setting{name, value, origin};
        return assign_to_profilers({&setting, 1}, both);
    };
    CHECK(assign("references", "yes")[1] == Given{{"references", "yes"}});
    CHECK(assign("counts.references", "yes")[1] == Given{{"references", "yes"}});
    CHECK(assign("limit", "18446744073709551615")[1].size() == 1);
    CHECK(message([&] { assign("Reference", "yes"); }) ==
          "unknown option --Reference; did you mean --references (of the profiler counts)?");
    CHECK(contains(message([&] { assign("refrences", "no", "c.yaml:7"); }),
                   "c.yaml:7: unknown option refrences; did you mean references"));
    CHECK(contains(message([&] { assign("crash.references", "yes"); }), "unknown option"));
    CHECK(contains(message([&] { assign("references", "1"); }), "not yes or no"));
    CHECK(contains(message([&] { assign("limit", "-1"); }), "not a whole number"));
    CHECK(contains(message([&] { assign("limit", "18446744073709551616"); }), "2^64"));

    ProfilerHandle* const twice[] = {&counts, &counts};
    const Setting setting{"limit", "1", ""};
    CHECK(contains(message([&] {
                       assign_to_profilers({&setting, 1}, twice);
                   }),
                   "--limit belongs to several profilers: write counts.limit"));
}

TEST_CASE("events of the same name get their profiler's in front") {
    CrashGuard guard;
    std::vector<std::unique_ptr<ProfilerHandle>> profilers;
    for (const char* plugin : {"counts", "crash", "counts"})
        profilers.push_back(std::make_unique<LoadedProfiler>(test_plugin(plugin), "", guard));
    const collector::Columns columns(profilers);
    REQUIRE(columns.size() == 7);
    CHECK(columns.first(1) == 3);
    CHECK(columns.first(2) == 4);
    CHECK(columns.event(0).name == "Ir");
    CHECK(columns.event(3).name == "Crashes");
    CHECK(columns.event(5).name == "counts.Refs");
    CHECK(columns.derived(0)[0].formula == "Refs / Ir");
    CHECK(columns.derived(2)[0].formula == "counts.Refs / counts.Ir");
}

TEST_CASE("parts of a profile are numbered from 1 as they are named, up to 1000") {
    std::vector<std::string> named;
    CHECK(part_number(named, "first") == 1);
    CHECK(part_number(named, "") == 2);
    CHECK(part_number(named, "first") == 1);
    for (std::uint32_t i = 3; i <= 1000; ++i)
        REQUIRE(part_number(named, "part " + std::to_string(i)) == i);
    CHECK(part_number(named, "one more") == 0);
    CHECK(part_number(named, "part 1000") == 1000);
    CHECK(named.size() == 1000);
}

}  // namespace collector_settings_test
