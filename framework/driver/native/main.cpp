// assay-driver-native ARGV...
//
// Started by the collector or by the driver of another process, never by people: runs a program
// with the arguments ARGV in translation, and writes what the trace specification in the segment
// asks for. Everything else that it has to know is in an environment variable
// (framework/trace/launch.h).
#include "framework/driver/native/process.h"
#include "framework/trace/launch.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <cstdio>
#include <cstring>

namespace {

namespace trace = assay::trace;

// The environment as the program shall see it.
std::vector<char*> take_out_variable(char** environment, const char*& value) {
    const std::string_view name = trace::kLaunchVariable;
    std::vector<char*> others;
    for (char** entry = environment; *entry; ++entry) {
        if (std::strncmp(*entry, name.data(), name.size()) == 0 && (*entry)[name.size()] == '=')
            value = *entry + name.size() + 1;
        else
            others.push_back(*entry);
    }
    others.push_back(nullptr);
    return others;
}

// As execve(2) names a process.
void take_name(const std::string& file) {
    prctl(PR_SET_NAME, file.c_str() + file.rfind('/') + 1);
}

}  // namespace

int main(int argc, char** argv) {
    const char* variable = nullptr;
    std::vector<char*> environment = take_out_variable(environ, variable);
    const std::optional<trace::Launch> launch = trace::launch_from(variable);
    if (!launch) {
        std::fputs("assay: assay-driver-native is started by assay run\n", stderr);
        return 125;
    }
    for (const int hidden : {launch->lifeline_fd, launch->channel_fd})
        if (hidden >= 0) fcntl(hidden, F_SETFD, FD_CLOEXEC);
    take_name(launch->name);
    const std::vector<std::string> arguments(argv, argv + argc);
    static assay::native::Process process;
    if (!process.initialise(*launch)) return 125;
    process.load(*launch, arguments, environment.data());
    process.run();
}
