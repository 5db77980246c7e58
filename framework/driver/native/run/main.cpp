// assay-driver-native ARGV...
//
// Runs a program with the arguments ARGV in translation, and writes what the trace specification in
// the segment asks for. Only the collector, or the driver of another process, starts it. An
// environment variable has all other settings (framework/trace/launch.h).
//
// `assay-driver-native --processor [FEATURE,...]`, without that variable, prints the processor that
// it shows to programs if those features are hidden.
#include "framework/driver/native/memory/address_space.h"
#include "framework/driver/native/processor/shown_processor.h"
#include "framework/driver/native/run/execution.h"
#include "framework/support/large_stack.h"
#include "framework/trace/launch.h"

#include <sys/prctl.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace trace = assay::trace;

// Sets the process's name, as execve(2) does.
void take_name(const std::string& file) {
    prctl(PR_SET_NAME, file.c_str() + file.rfind('/') + 1);
}

// If the kernel has put the driver where the program's mappings go, executes the driver again. With
// 32 random bits this happens in one of 50 cases, so a few attempts are enough.
void be_out_of_the_way(trace::Launch launch, char** argv) {
    constexpr unsigned kMostRestarts = 16;
    if (launch.restarts == kMostRestarts || !assay::native::driver_is_in_the_way()) return;
    ++launch.restarts;
    std::string variable = trace::to_variable(launch);
    char* const before = std::exchange(environ[0], variable.data());
    execve("/proc/self/exe", argv, environ);
    environ[0] = before;  // execve failed: there is no /proc
}

void run_thread(assay::native::Thread& thread) {
    assay::native::Execution(thread).run();
}

struct Start {
    const trace::Launch& launch;
    std::vector<std::string> arguments;
    char** environment;
};

void run_program(void* given) {
    const Start& start = *static_cast<const Start*>(given);
    static assay::native::Process process(run_thread);
    if (!process.initialise(start.launch)) std::exit(125);
    process.load(start.launch, start.arguments, start.environment);
    process.run();
}

// For `assay --version --verbose`.
int report_processor(const char* hidden) {
    assay::native::Hiding hiding;
    const std::string_view unknown = hiding.add(hidden);
    if (!unknown.empty()) {
        std::fprintf(stderr, "no such feature: %.*s\n", static_cast<int>(unknown.size()),
                     unknown.data());
        return 125;
    }
    const assay::native::ShownProcessor processor(assay::native::RealProcessor::own(),
                                                  trace::CpuLevel::kHost, hiding);
    std::fputs(assay::native::processor_report(processor).c_str(), stdout);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    trace::ProgramEnvironment environment = trace::program_environment(environ);
    const std::optional<trace::Launch>& launch = environment.launch;
    if (!launch && argc > 1 && std::string_view(argv[1]) == "--processor")
        return report_processor(argc > 2 ? argv[2] : "");
    if (!launch) {
        std::fputs("assay: assay-driver-native cannot run alone; start `assay` instead\n", stderr);
        return 125;
    }
    be_out_of_the_way(*launch, argv);
    take_name(launch->name);
    const std::vector<std::string> arguments(argv, argv + argc);
    Start start{*launch, arguments, environment.pointers.data()};
    constexpr std::size_t kStackBytes = std::size_t{1} << 20;
    assay::call_on_large_stack(kStackBytes, run_program, &start);
}
