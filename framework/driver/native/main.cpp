// assay-driver-native ARGV...
//
// Started by the collector or by the driver of another process, never by people: runs a program
// with the arguments ARGV in translation, and writes what the trace specification in the segment
// asks for. Everything else that it has to know is in an environment variable
// (framework/trace/launch.h).
#include "framework/driver/native/process.h"
#include "framework/trace/launch.h"

#include <sys/prctl.h>
#include <unistd.h>
#include <cstdio>

namespace {

namespace trace = assay::trace;

// As execve(2) names a process.
void take_name(const std::string& file) {
    prctl(PR_SET_NAME, file.c_str() + file.rfind('/') + 1);
}

}  // namespace

int main(int argc, char** argv) {
    trace::ProgramEnvironment environment = trace::program_environment(environ);
    const std::optional<trace::Launch>& launch = environment.launch;
    if (!launch) {
        std::fputs("assay: assay-driver-native is started by assay run\n", stderr);
        return 125;
    }
    take_name(launch->name);
    const std::vector<std::string> arguments(argv, argv + argc);
    static assay::native::Process process;
    if (!process.initialise(*launch)) return 125;
    process.load(*launch, arguments, environment.pointers.data());
    process.run();
}
