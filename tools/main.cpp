// The assay command: chooses the subcommand, and turns what goes wrong into one line and an exit
// status.
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/version.h"
#include "tools/annotate.h"
#include "tools/plugins.h"
#include "tools/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <cerrno>
#include <exception>
#include <string>
#include <vector>

namespace {

// A standard descriptor that was closed when assay started would be given to the next file that it
// opens, and words for stderr would end in that file. The program gets it closed, as it was.
void occupy_standard_descriptors() {
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) open("/dev/null", O_RDWR | O_CLOEXEC);
}

int dispatch(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.empty()) throw assay::Error("nothing to do: see assay --help");
    const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
    if (arguments[0] == "annotate") return assay::annotate_main(argc - 1, argv + 1);
    if (arguments[0] == "plugins") return assay::plugins_main(rest);
    if (arguments[0] == "run") return assay::run_main(rest);
    if (arguments[0] != "help") return assay::run_main(arguments);
    fmt::print("{}", assay::run_help());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    occupy_standard_descriptors();
    try {
        return dispatch(argc, argv);
    } catch (const assay::Error& e) {
        assay::log::problem(e.what());
        return e.exit_status();
    } catch (const std::exception& e) {
        assay::log::problem(fmt::format("unexpected: {}", e.what()));
        return assay::kExitFailure;
    }
}
