// The assay command: runs a subcommand. Turns errors into one line and an exit status.
#include "framework/events/file.h"
#include "framework/support/error.h"
#include "framework/support/large_stack.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "tools/cli/commands.h"
#include "tools/cli/run.h"
#include "tools/output/output.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>
#include <cerrno>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace {

// Opens /dev/null in place of closed standard descriptors. Otherwise the next opened file would get
// such a descriptor, and messages would end in that file. The modes make reads from stdin and
// writes to stdout fail, as they would on closed descriptors. The program gets the descriptors
// closed.
void occupy_standard_descriptors() {
    constexpr int kModes[] = {O_WRONLY, O_RDONLY, O_WRONLY};
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
            open("/dev/null", kModes[descriptor] | O_CLOEXEC);
}

int help_of(const char* name, char* program) {
    const assay::Command* command = assay::find_command(name);
    if (!command) {
        const std::string meant = assay::nearest_command(name);
        throw assay::Error(fmt::format(
            "there is no command {}{}", name,
            meant.empty() ? ": see assay --help" : fmt::format("; did you mean {}?", meant)));
    }
    char help[] = "--help";
    char* arguments[] = {program, help, nullptr};
    return command->main(2, arguments);
}

int dispatch(int argc, char** argv) {
    if (argc < 2) throw assay::Error("nothing to do: see assay --help");
    const std::string_view first = argv[1];
    if (const assay::Command* command = assay::find_command(first)) {
        // A run passes signals on to the program instead.
        if (first != "run") assay::events::remove_incomplete_files_on_signals();
        return command->main(argc - 1, argv + 1);
    }
    const bool is_help = first == "help" || first == "--help" || first == "-h";
    if (!is_help) return assay::run_main(std::vector<std::string>(argv + 1, argv + argc));
    if (first == "help" && argc > 2) return help_of(argv[2], argv[0]);
    assay::print_text(assay::first_help());
    return 0;
}

struct Command {
    int argc;
    char** argv;
    int exit_status;
};

int run_command(int argc, char** argv) {
    try {
        return dispatch(argc, argv);
    } catch (const assay::Error& e) {
        assay::log::problem(e.what());
        return e.exit_status();
    } catch (const std::system_error& e) {
        const bool by_limit = e.code() == std::errc::resource_unavailable_try_again;
        assay::log::problem(by_limit
                                ? "cannot start a thread: " + assay::reason_of_no_process(EAGAIN)
                                : fmt::format("unexpected: {}", e.what()));
        return assay::kExitFailure;
    } catch (const std::exception& e) {
        assay::log::problem(fmt::format("unexpected: {}", e.what()));
        return assay::kExitFailure;
    }
}

// The stack size of assay's threads. The default would be the stack limit, which the user sets for
// the profiled program.
constexpr std::size_t kStackBytes = std::size_t{8} << 20;

void give_threads_large_stacks() {
    pthread_attr_t attributes;
    if (!assay::is_stack_smaller(kStackBytes) || pthread_attr_init(&attributes) != 0) return;
    pthread_attr_setstacksize(&attributes, kStackBytes);
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
}

}  // namespace

int main(int argc, char** argv) {
    occupy_standard_descriptors();
    give_threads_large_stacks();
    Command command{argc, argv, 0};
    const auto run = [](void* given) {
        auto& of = *static_cast<Command*>(given);
        of.exit_status = run_command(of.argc, of.argv);
    };
    assay::call_on_large_stack(kStackBytes, run, &command);
    return command.exit_status;
}
