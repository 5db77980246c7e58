// Whole runs of the collector, with a driver and profilers made for tests.
#include "framework/collector/profilers/crash_guard.h"
#include "framework/collector/profilers/plugin_search.h"
#include "framework/collector/run/run.h"
#include "framework/support/error.h"
#include "tests/unit/temporary_folder.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace collector_test {

using namespace assay;
using namespace assay::collector;

namespace {

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    REQUIRE_MESSAGE(value, name);
    return value;
}

// The driver has it profiled, too: a small file, because each run reads its symbols.
std::string program() {
    return environment("ASSAY_TEST_DRIVER");
}

std::string test_plugin(const std::string& name) {
    if (name == "cache") return environment("ASSAY_CACHE_PLUGIN");
    return environment("ASSAY_TEST_PLUGINS") + "/" + name + ".so";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// Sends stderr to a file for a while.
class CapturedStderr {
  public:
    explicit CapturedStderr(const std::string& path) : before_(dup(STDERR_FILENO)) {
        const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(file, STDERR_FILENO);
        close(file);
    }
    ~CapturedStderr() {
        dup2(before_, STDERR_FILENO);
        close(before_);
    }
    CapturedStderr(const CapturedStderr&) = delete;
    CapturedStderr& operator=(const CapturedStderr&) = delete;

  private:
    int before_;
};

struct Result {
    Ending ending;
    std::string file;   // the events file
    std::string words;  // on stderr
    std::string error;  // the exception's message
};

Result profile(const std::string& scenario, const std::vector<std::string>& plugins,
               const std::vector<Setting>& options = {}, bool quiet = true) {
    const TemporaryFolder folder;
    CoreSettings settings;
    settings.driver = program();
    settings.quiet = quiet;
    settings.out = folder.file("events");
    settings.others = options;
    for (const std::string& plugin : plugins) settings.plugins.push_back(test_plugin(plugin));
    Result result;
    {
        const CapturedStderr captured(folder.file("words"));
        try {
            result.ending = run(settings, {program(), scenario});
        } catch (const Error& e) {
            result.error = e.what();
            result.ending.exit_status = e.exit_status();
        }
    }
    result.file = folder.read("events");
    result.words = folder.read("words");
    return result;
}

const std::vector<Setting> kReferences{{"references", "yes", ""}};

struct CrashIn {
    CrashIn(const char* function, const char* how) {
        setenv("ASSAY_CRASH_IN", function, 1);
        setenv("ASSAY_CRASH_BY", how, 1);
    }
    ~CrashIn() { unsetenv("ASSAY_CRASH_IN"); }
    CrashIn(const CrashIn&) = delete;
    CrashIn& operator=(const CrashIn&) = delete;
};

}  // namespace

TEST_CASE("a run counts what the driver says") {
    const Result result = profile("normal", {"counts"}, kReferences);
    CHECK(result.error == "");
    CHECK(result.words == "");
    CHECK(result.ending.exit_status == 0);
    CHECK(contains(result.file, "events: Ir Refs Lines\n"));
    CHECK(contains(result.file, "\nsummary: 29 80000 0"));
    CHECK_FALSE(contains(result.file, "incomplete"));
}

TEST_CASE("references are all there, however many the rings have to hold") {
    CHECK(contains(profile("long", {"counts"}, kReferences).file, "\nsummary: 29 2000000 0"));
}

TEST_CASE("counts and references of all threads are there") {
    const Result result = profile("threads", {"counts"}, kReferences);
    CHECK(result.ending.exit_status == 0);
    CHECK(contains(result.file, "\nsummary: 32 400000 0"));
}

TEST_CASE("the cache profiler gives each thread a first level of its own") {
    // More lines than a driver simulates: the records are not only misses.
    const std::string shape = "524288,4,64";
    const Result result = profile("same-line", {"cache"},
                                  {{"I1", shape, ""}, {"D1", shape, ""}, {"LL", "65536,4,64", ""}});
    CHECK(result.words == "");
    CHECK(contains(result.file, "events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw\n"));
    CHECK(contains(result.file, "\nsummary: 29 0 0 29 2 1 0 0 0"));
}

TEST_CASE("summaries stand behind the process id") {
    const Result result = profile("normal", {"counts"}, kReferences, false);
    CHECK(contains(result.words, "== instructions: 29\n=="));
    CHECK(contains(result.words, "assay: wrote "));
}

TEST_CASE("blocks that were left early count what was executed") {
    // Two of the first block's instructions less, one of the second's more.
    CHECK(contains(profile("partial", {"counts"}).file, "\nsummary: 28 "));
}

TEST_CASE("a run ends as the program does") {
    CHECK(profile("status", {"counts"}).ending.exit_status == 42);
    const Result interrupted = profile("interrupted", {"counts"});
    CHECK(interrupted.ending.signal == SIGINT);
    CHECK_FALSE(contains(interrupted.file, "incomplete"));
}

TEST_CASE("a signal for the program reaches it") {
    const Result result = profile("waits", {"counts"});
    CHECK(result.ending.signal == SIGTERM);
    CHECK(contains(result.file, "\nsummary: 29 "));
}

TEST_CASE("a killed program leaves all of its records") {
    const Result result = profile("killed", {"counts"}, kReferences);
    CHECK(result.ending.signal == SIGKILL);
    CHECK(contains(result.file, "\nsummary: 29 80000 0"));
    CHECK(contains(result.file, "incomplete"));
    CHECK(contains(result.file, "killed by signal 9"));
}

TEST_CASE("what the driver refuses is said, and what was measured is kept") {
    const Result result = profile("refuse", {"counts"}, kReferences);
    CHECK(result.ending.exit_status == kExitFailure);
    CHECK(result.words == "assay: cannot run clone3 at 0x401004\n");
    CHECK(contains(result.file, "cannot run clone3"));
    CHECK(contains(result.file, "\nsummary: 29 80000 0"));

    const Result at_once = profile("refuse-at-once", {"counts"});
    CHECK(at_once.words == "assay: cannot load this\n");
    CHECK(at_once.file == "");
    CHECK(profile("exit-at-once", {"counts"}).ending.exit_status == kExitFailure);
}

TEST_CASE("a damaged segment ends the profile, not the program") {
    for (const char* scenario : {"bad-site", "bad-block", "bad-length", "bad-log", "bad-cursor",
                                 "bad-producer", "bad-slots", "bad-ring"}) {
        CAPTURE(scenario);
        const Result result = profile(scenario, {"counts"}, kReferences);
        CHECK(result.ending.exit_status == kExitFailure);
        CHECK(contains(result.words, "damaged"));
        // Where the damage was seen before anything else, there is nothing to keep.
        CHECK((result.file.empty() || contains(result.file, "incomplete")));
    }
}

TEST_CASE("counts that are impossible are left out, and the profile says so") {
    const auto check = [](const char* scenario, const std::string& how, const char* summary) {
        const Result result = profile(scenario, {"counts"}, kReferences);
        CHECK(result.error == "");
        CHECK(result.ending.exit_status == kExitFailure);
        CHECK(std::count(result.words.begin(), result.words.end(), '\n') == 1);
        CHECK_MESSAGE(contains(result.words, "assay: the counts are damaged (" + how),
                      result.words);
        CHECK_MESSAGE(contains(result.file, "fl=#! incomplete the counts are damaged (" + how),
                      result.file);
        CHECK_MESSAGE(contains(result.file, summary), result.file);
    };
    check("bad-counter", "the block at 0x401000 executed 4330040640251999356 times within ",
          "\nsummary: 14 80000 0");
    check("bad-partial", "the block at 0x401000 left early 1099511627776 times within ",
          "\nsummary: 29 80000 0");
}

TEST_CASE("a profiler that crashes loses its own columns only") {
    for (const char* function : {"vp_init", "vp_name", "vp_events", "vp_options", "vp_prof_init",
                                 "vp_prof_process", "vp_finish"}) {
        CAPTURE(function);
        const CrashIn crash(function, "fault");
        const Result both = profile("normal", {"crash", "counts"}, kReferences);
        CHECK(both.error == "");
        CHECK(contains(both.words, "crash is lost"));
        CHECK(contains(both.words, "signal 11"));
        CHECK(both.ending.exit_status == 0);
        CHECK(contains(both.file, "events: Ir Refs Lines\n"));
        CHECK(contains(both.file, "\nsummary: 29 80000 0"));

        const Result alone = profile("normal", {"crash"});
        CHECK(alone.ending.exit_status == kExitFailure);
        CHECK(alone.file == "");
    }
}

TEST_CASE("crashes behind the end of the run leave the file alone") {
    for (const char* function : {"vp_summary", "vp_prof_release", "vp_release"}) {
        CAPTURE(function);
        const CrashIn crash(function, "fault");
        const Result result = profile("normal", {"crash"}, {}, false);
        const bool unnoticed = std::string(function) != "vp_summary";
        CHECK(result.ending.exit_status == (unnoticed ? 0 : kExitFailure));
        CHECK(contains(result.words, "the profiler crash is lost: "));
        CHECK(contains(result.file, "\nsummary: 0"));
    }
}

TEST_CASE("every kind of crash is survived") {
    for (const char* how : {"abort", "divide", "stack", "fail"}) {
        CAPTURE(how);
        const CrashIn crash("vp_prof_process", how);
        const Result result = profile("normal", {"crash", "counts"});
        CHECK(contains(result.words, "crash is lost"));
        CHECK(contains(result.file, "\nsummary: 29 "));
    }
}

TEST_CASE("an exception does not leave a profiler") {
    CrashGuard guard;
    CHECK(guard.run([] { throw Error("words"); }) == "threw an exception: words");
    CHECK(guard.run([] { throw 1; }) == "threw an exception");
    CHECK(guard.run([] {}) == "");
}

TEST_CASE("a call has a time limit, of which what assay does for it is no part") {
    CrashGuard guard;
    const auto wait = [](std::chrono::milliseconds time) {
        const auto end = std::chrono::steady_clock::now() + time;
        while (std::chrono::steady_clock::now() < end) {
        }
    };
    guard.set_limit(std::chrono::milliseconds(80));
    CHECK(guard.run([&] { wait(std::chrono::minutes(1)); }) == "did not return within 0.08 s");
    CHECK(guard.run([] {}) == "");
    CHECK(guard.run([&] {
        const CallSuspended in_assay;
        wait(std::chrono::milliseconds(200));
    }) == "");
    guard.set_limit(std::chrono::milliseconds(0));
    CHECK(guard.run([&] { wait(std::chrono::milliseconds(100)); }) == "");
}

// Four threads have one processor, so the call takes four times as long as it runs.
TEST_CASE("the time limit of a call leaves out what it waits for a processor") {
    if (queued_time("/proc/thread-self/schedstat").count() == 0) return;  // an unusual kernel
    cpu_set_t before, one;
    sched_getaffinity(0, sizeof before, &before);
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
    sched_setaffinity(0, sizeof one, &one);
    std::atomic<bool> ends{false};
    std::vector<std::thread> others;
    for (int i = 0; i < 3; ++i)
        others.emplace_back([&ends] {
            while (!ends) continue;
        });
    const auto run = [](std::chrono::milliseconds time) {
        const auto now = [] {
            timespec used{};
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
            return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
        };
        for (const auto end = now() + time; now() < end;) continue;
    };
    {
        CrashGuard guard;
        guard.set_limit(std::chrono::milliseconds(400));
        const auto begin = std::chrono::steady_clock::now();
        CHECK(guard.run([&] { run(std::chrono::milliseconds(250)); }) == "");
        CHECK(std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(400));
        CHECK(guard.run([&] { run(std::chrono::minutes(1)); }) == "did not return within 0.4 s");
    }
    ends = true;
    for (std::thread& other : others) other.join();
    sched_setaffinity(0, sizeof before, &before);
}

// exit(3) destroys what is local to its thread: not that of the test framework.
TEST_CASE("exit is no way out of a call") {
    std::vector<std::string> how;
    std::thread([&] {
        CrashGuard guard;
        for (int i = 0; i < 2; ++i) how.push_back(guard.run([] { std::exit(0); }));
        for (int i = 0; i < 2; ++i) how.push_back(guard.run([] { std::quick_exit(0); }));
    }).join();
    CHECK(how == std::vector<std::string>{"called exit", "called exit", "called quick_exit",
                                          "called quick_exit"});
}

TEST_CASE("unusable profilers are refused with the reason") {
    const auto refused = [](const char* plugin, const char* reason) {
        CAPTURE(plugin);
        const Result result = profile("normal", {plugin});
        CHECK(result.ending.exit_status == kExitFailure);
        CHECK(contains(result.error, plugin));
        CHECK_MESSAGE(contains(result.error, reason), result.error);
        CHECK(result.file == "");
    };
    refused("wrong_abi", "version 1001");
    refused("wrong_size", "size is 16");
    refused("no_table", "does not export assay_vp_dispatch");
    refused("no_prof_init", "has no vp_prof_init");
    refused("not-there", "No such file");
}

TEST_CASE("a profiler rejects its options before the program starts") {
    const Result result = profile("normal", {"counts"}, {{"limit", "1000", ""}});
    CHECK(result.error == "counts: --limit: must be below 100");
    CHECK(result.file == "");
    const CrashIn crash("vp_options", "fail");
    CHECK(profile("normal", {"crash"}).error == "crash: told to fail");
}

TEST_CASE("a profiler without events runs and writes nothing") {
    const Result result = profile("normal", {"null"});
    CHECK(result.ending.exit_status == 0);
    CHECK(result.words == "");
    CHECK(result.file == "");
}

TEST_CASE("profilers describe themselves in the header, with names expanded") {
    const Result result = profile("normal", {"counts"}, {{"log", "%n.log", ""}});
    CHECK(contains(result.file, "desc: log: fake-driver.log\n"));
    CHECK(contains(result.file, "cmd: " + program() + " normal\n"));
}

TEST_CASE("a program that cannot be run has a shell's status") {
    CoreSettings settings;
    settings.plugins = {test_plugin("null")};
    const auto status = [&](const std::string& program) {
        try {
            run(settings, {program});
        } catch (const Error& e) {
            return e.exit_status();
        }
        return 0;
    };
    const TemporaryFolder folder;
    CHECK(status("no-such-program-anywhere") == kExitNotFound);
    CHECK(status("/nonexistent/program") == kExitNotFound);
    CHECK(status("/tmp") == kExitNotExecutable);
    CHECK(status("/etc/passwd") == kExitNotExecutable);
    const std::string script = folder.write("script", "#!/nonexistent/interpreter x\n");
    CHECK(status(script) == kExitNotExecutable);
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    CHECK(status(script) == kExitNotExecutable);
    const std::string text = folder.write("text", "text");
    std::filesystem::permissions(text, std::filesystem::perms::owner_all);
    CHECK(status(text) == kExitNotExecutable);
}

TEST_CASE("an unwritable output is found before the program starts") {
    CoreSettings settings;
    settings.driver = program();
    settings.plugins = {test_plugin("counts")};
    for (const char* out : {"/nonexistent/folder/events", "/tmp", "/etc/passwd/events"}) {
        settings.out = out;
        CHECK_THROWS_AS(run(settings, {program(), "normal"}), Error);
    }
}

}  // namespace collector_test
