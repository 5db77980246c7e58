#include "tools/sweep/command_output.h"

#include "framework/support/descriptor.h"
#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

namespace assay::sweep {
namespace {

// What a descriptor has now; false at its end.
bool read_some(int descriptor, std::string& text) {
    std::array<char, 65536> buffer;
    const ssize_t count = read(descriptor, buffer.data(), buffer.size());
    if (count < 0) return errno == EINTR;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    return count > 0;
}

void read_both(int out, int errors, CommandOutput& output) {
    std::array<pollfd, 2> ends{pollfd{out, POLLIN, 0}, pollfd{errors, POLLIN, 0}};
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        if (poll(ends.data(), ends.size(), -1) < 0 && errno != EINTR) return;
        if (ends[0].revents != 0 && !read_some(out, output.text)) ends[0].fd = -1;
        if (ends[1].revents != 0 && !read_some(errors, output.problem)) ends[1].fd = -1;
    }
}

}  // namespace

CommandOutput output_of(const std::vector<std::string>& words) {
    std::vector<std::string> copies = words;
    std::vector<char*> argv;
    argv.reserve(copies.size() + 1);
    for (std::string& word : copies) argv.push_back(word.data());
    argv.push_back(nullptr);
    int out[2], errors[2];
    if (pipe2(out, O_CLOEXEC) != 0) throw Error("cannot make a pipe: " + system_reason(errno));
    const Descriptor out_end(out[0]);
    if (pipe2(errors, O_CLOEXEC) != 0) {
        close(out[1]);
        throw Error("cannot make a pipe: " + system_reason(errno));
    }
    const Descriptor errors_end(errors[0]);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, errors[1], STDERR_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    close(out[1]);
    close(errors[1]);
    if (error != 0)
        throw Error(fmt::format("cannot run {}: {}", words.front(), system_reason(error)));
    CommandOutput output;
    read_both(out[0], errors[0], output);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    output.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    while (output.problem.ends_with('\n')) output.problem.pop_back();
    std::replace(output.problem.begin(), output.problem.end(), '\n', ' ');
    return output;
}

}  // namespace assay::sweep
