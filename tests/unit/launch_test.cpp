// What drivers and the collector's side tell one another about processes.
#include "framework/trace/launch.h"
#include "framework/collector/run/output_files.h"
#include "framework/collector/run/session.h"
#include "framework/trace/command_event.h"
#include "tests/unit/temporary_folder.h"

#include <doctest/doctest.h>

namespace launch_test {

using namespace assay;

namespace {

std::vector<std::string> texts(const std::vector<char*>& environment) {
    REQUIRE(!environment.empty());
    CHECK(environment.back() == nullptr);
    return {environment.begin(), environment.end() - 1};
}

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> to;
    for (std::string& word : words) to.push_back(word.data());
    return to;
}

}  // namespace

TEST_CASE("a driver is told what was meant for it, and the program sees nothing of it") {
    const trace::Launch launch{.segment_fd = 3,
                               .program_fd = 4,
                               .lifeline_fd = 1017,
                               .channel_fd = -1,
                               .signal_mask = ~std::uint64_t{0},
                               .fixed_addresses = true,
                               .restarts = 7,
                               .name = "./a,b=c d"};
    std::vector<std::string> own{"A=1",
                                 "LD_PRELOAD=x.so",
                                 "MALLOC_ARENA_MAX=1",
                                 "LD",
                                 "A=1",
                                 "GLIBC_TUNABLES=glibc.a=b",
                                 "",
                                 "ASSAY_PLUGIN_PATH=/p",
                                 "ASSAY_DRIVER=x",
                                 "ASSAY_HIDDEN_LD_A=1",
                                 "ASSAY_DRIVER=1,2,3,4,5,0,6,x"};
    trace::DriverEnvironment driver = trace::driver_environment(pointers(own), launch);
    const std::vector<std::string> passed = texts(driver.pointers);
    CHECK(passed.size() == own.size() + 1);
    for (const std::string& variable : passed) CHECK_FALSE(trace::concerns_libc(variable));

    const trace::ProgramEnvironment program = trace::program_environment(driver.pointers.data());
    CHECK(texts(program.pointers) == own);
    REQUIRE(program.launch);
    CHECK(program.launch->segment_fd == 3);
    CHECK(program.launch->program_fd == 4);
    CHECK(program.launch->lifeline_fd == 1017);
    CHECK(program.launch->channel_fd == -1);
    CHECK(program.launch->signal_mask == ~std::uint64_t{0});
    CHECK(program.launch->fixed_addresses);
    CHECK(program.launch->restarts == 7);
    CHECK(program.launch->name == "./a,b=c d");
}

TEST_CASE("a driver that was started by hand is told nothing") {
    for (const char* variable : {"ASSAY_DRIVER=", "ASSAY_DRIVER=1,2,3",
                                 "ASSAY_DRIVER=a,b,c,d,e,f,g", "ASSAY_DRIVE=1,2,3,4,5,0,6,x"}) {
        CAPTURE(variable);
        CHECK_FALSE(trace::launch_from(variable));
    }
}

TEST_CASE("the log's first event says the command") {
    const trace::Command command{"./file", {"file", "", "two words"}};
    const std::string event = trace::command_event(command);
    CHECK(event.size() % 8 == 0);
    const auto read = trace::command_from(event);
    REQUIRE(read);
    CHECK(read->file == command.file);
    CHECK(read->arguments == command.arguments);
    for (std::size_t length = 0; length < sizeof(trace::EventHeader) + 10; ++length)
        CHECK_FALSE(trace::command_from(std::string_view(event).substr(0, length)));
}

TEST_CASE("of a long command the beginning is kept") {
    const trace::Command command{"f", std::vector<std::string>(1000, std::string(1000, 'x'))};
    const auto read = trace::command_from(trace::command_event(command));
    REQUIRE(read);
    CHECK(read->arguments.size() == trace::kCommandBytes / 1001);
}

TEST_CASE("asked addresses survive the messages that carry them") {
    symbols::Request asked{"/lib/libc.so.6", {}};
    for (std::uint64_t i = 0; i < 1000; ++i) asked.addresses.push_back(i * 0x1'0000'0001);
    symbols::Request got{asked.object_path, {}};
    std::size_t messages = 0;
    collector::for_each_message(asked, 1000, [&](std::string_view message) {
        CHECK(message.size() <= 1000);
        const symbols::Request part = collector::request_from(message);
        CHECK(part.object_path == asked.object_path);
        got.addresses.insert(got.addresses.end(), part.addresses.begin(), part.addresses.end());
        ++messages;
    });
    CHECK(got.addresses == asked.addresses);
    CHECK(messages > 1);
    collector::for_each_message(asked, 10, [](std::string_view) { FAIL("no room for the path"); });
    CHECK(collector::request_from("").addresses.empty());
}

TEST_CASE("files of images do not overwrite one another") {
    using namespace collector;
    const Image first{100, 1, 0, true, "p", "p"}, child{200, 3, 2, false, "q", "q"};
    CHECK(file_of_process("o.%p", first) == "o.100");
    CHECK(file_of_process("o.%p", child) == "o.200");
    CHECK(file_of_image("o.%p", child) == "o.200.3");
    CHECK(file_of_process("o", first) == "o");
    CHECK(file_of_image("o", first) == "o.1");
    CHECK(file_of_process("o", child) == "o.200");
    CHECK(file_of_image("o", child) == "o.200.3");
    CHECK(file_of_process("%%p", child) == "%p.200");
    CHECK(file_of_process("%n.zst", child) == "q.200.zst");
    CHECK(file_of_image("o.%p.gz", child) == "o.200.3.gz");
    CHECK(file_of_image("/dev/null", child) == "/dev/null");
    CHECK(own_file_of_image("o.%p", first) == "o.100");
    CHECK(own_file_of_image("o.%p.gz", child) == "o.200.image3.gz");
}

}  // namespace launch_test
