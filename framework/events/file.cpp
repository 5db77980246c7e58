#include "framework/events/file.h"

#include "framework/support/descriptor.h"
#include "framework/support/error.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace assay::events {

namespace {

std::string reason(int error) {
    return std::system_category().message(error);
}

// True for names that stand for an open file, such as /dev/fd/1.
bool is_name_of_open_file(const std::string& path) {
    for (const std::string_view open_files : {"/dev/fd/", "/dev/std", "/proc/"})
        if (path.starts_with(open_files)) return true;
    return false;
}

// Devices and pipes are written in place. The same holds for the target of /dev/stdout or
// /proc/self/fd/1, even a regular file: another program has it open and would not see a
// replacement. Files in /dev/shm are replaced like others.
bool is_written_in_place(const std::string& path) {
    if (is_name_of_open_file(path)) return true;
    struct stat status;
    return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

// Such a file is not opened by its name: later prints to standard output must continue after the
// text that is written here.
bool is_standard_output(const std::string& path) {
    return path == "-" || path == "/dev/stdout";
}

int duplicate(int descriptor) {
    return fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
}

// The temporary files of this process, for a signal handler. Null marks a free entry. No command
// writes more files at a time.
std::array<std::atomic<const char*>, 4> incomplete_files;
static_assert(std::atomic<const char*>::is_always_lock_free);

void exchange_incomplete_file(const char* old_name, const char* new_name) {
    for (std::atomic<const char*>& place : incomplete_files)
        if (const char* expected = old_name; place.compare_exchange_strong(expected, new_name))
            return;
}

constexpr std::array kSignals{SIGHUP, SIGINT, SIGTERM};

// Holds signals back until the name of a new file is among the incomplete files: a signal in
// between would leave the file.
class SignalsHeld {
  public:
    SignalsHeld() {
        sigset_t held;
        sigemptyset(&held);
        for (const int signal : kSignals) sigaddset(&held, signal);
        pthread_sigmask(SIG_BLOCK, &held, &before_);
    }
    SignalsHeld(const SignalsHeld&) = delete;
    SignalsHeld& operator=(const SignalsHeld&) = delete;
    ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_{};
};

void remove_incomplete_files(int signal) {
    for (const std::atomic<const char*>& place : incomplete_files)
        if (const char* const name = place) unlink(name);
    raise(signal);  // the default action is restored, and runs when this handler returns
}

// The errno value with which making a file in the folder of `path` would fail; 0 if it would
// succeed.
int obstacle_of_making(const std::string& path) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    return access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
}

int obstacle_in_place(const std::string& path) {
    struct stat status;
    if (stat(path.c_str(), &status) == 0) {
        if (S_ISDIR(status.st_mode)) return EISDIR;
        return access(path.c_str(), W_OK) == 0 ? 0 : errno;
    }
    return errno == ENOENT ? obstacle_of_making(behind_links(path)) : errno;
}

// Both the existing file and its folder must be writable.
int obstacle(const std::string& path) {
    if (is_standard_output(path)) return 0;
    const int in_place = obstacle_in_place(path);
    if (in_place != 0 || is_written_in_place(path)) return in_place;
    return obstacle_of_making(behind_links(path));
}

void check_no_obstacle(int error, const std::string& path) {
    if (error != 0) throw Error("cannot write " + path + ": " + reason(error));
}

// The path, followed by the target of each link on the way.
std::vector<std::filesystem::path> way_behind_links(const std::string& link) {
    constexpr std::size_t kMostLinks = 40;  // as many as open(2) follows
    std::vector<std::filesystem::path> way{link};
    std::error_code error;
    while (way.size() <= kMostLinks && std::filesystem::is_symlink(way.back(), error)) {
        const std::filesystem::path target = std::filesystem::read_symlink(way.back(), error);
        if (error) break;
        // An absolute target replaces the folder.
        way.push_back(way.back().parent_path() / target);
    }
    return way;
}

// In a folder that everybody may write, such as /tmp, another user may have put a link or a pipe
// where somebody else is going to write. The kernel applies the same rule to links that it follows
// itself, if sysctl fs.protected_symlinks is set (may_follow_link() and may_create_in_sticky() in
// fs/namei.c).
bool may_be_a_trap(const std::filesystem::path& path) {
    struct stat status, folder;
    const std::filesystem::path parent = path.parent_path();
    constexpr mode_t kForEverybody = S_ISVTX | S_IWOTH;
    return lstat(path.c_str(), &status) == 0 && status.st_uid != geteuid() &&
           stat(parent.empty() ? "." : parent.c_str(), &folder) == 0 &&
           (folder.st_mode & kForEverybody) == kForEverybody && status.st_uid != folder.st_uid;
}

void check_no_trap(const std::string& path) {
    if (is_standard_output(path) || is_name_of_open_file(path)) return;
    for (const std::filesystem::path& each : way_behind_links(path))
        if (may_be_a_trap(each))
            throw Error("cannot write '" + path +
                        "': " + (each == path ? "it" : "'" + each.string() + "'") +
                        " belongs to another user, in a folder that everybody may write to; name "
                        "another output file");
}

// Gives a new file the permissions of the file that it replaces, and its owner and group if the
// system allows that.
void keep_permissions(int descriptor, const struct stat& replaced) {
    constexpr mode_t kPermissions = S_IRWXU | S_IRWXG | S_IRWXO;
    constexpr unsigned kBitsOfAGroup = 3;
    mode_t mode = replaced.st_mode & kPermissions;
    if (fchown(descriptor, replaced.st_uid, replaced.st_gid) != 0 &&
        fchown(descriptor, static_cast<uid_t>(-1), replaced.st_gid) != 0) {
        // The file belongs to another group now: its members get the rights of others.
        const mode_t others = mode & S_IRWXO;
        mode = (mode & ~static_cast<mode_t>(S_IRWXG)) | others << kBitsOfAGroup;
    }
    fchmod(descriptor, mode);
}

// A consumer throws it to stop reading. It never leaves this file.
struct Enough {};

}  // namespace

std::string behind_links(const std::string& link) {
    return way_behind_links(link).back().string();
}

void check_writable(const std::string& path) {
    check_no_trap(path);
    check_no_obstacle(obstacle(path), path);
}

void check_writable_in_place(const std::string& path) {
    check_no_trap(path);
    check_no_obstacle(obstacle_in_place(path), path);
}

OutputFile::OutputFile(const std::string& path)
    : path_(path), target_(path), compressor_(make_compressor(path)) {
    check_no_trap(path_);
    if (is_standard_output(path_)) {
        descriptor_ = duplicate(STDOUT_FILENO);
    } else if (is_written_in_place(path_)) {
        descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    } else {
        target_ = behind_links(path_);
        std::error_code error;
        if (std::filesystem::is_symlink(target_, error)) fail(ELOOP);
        // Do not replace a file that was made read-only.
        if (access(target_.c_str(), F_OK) == 0 && access(target_.c_str(), W_OK) != 0) fail(errno);
        open_temporary();
    }
    if (descriptor_ < 0) fail(errno);
}

OutputFile::~OutputFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (temporary_.empty()) return;
    unlink(temporary_.c_str());
    exchange_incomplete_file(temporary_.c_str(), nullptr);
}

void OutputFile::open_temporary() {
    const SignalsHeld held;
    struct stat replaced;
    const bool replaces = stat(target_.c_str(), &replaced) == 0;
    // Nobody else may open the file before its permissions are right.
    const mode_t mode = replaces ? S_IRUSR | S_IWUSR : 0666;
    const std::string stem = target_ + "." + std::to_string(getpid()) + ".";
    for (int attempt = 0; descriptor_ < 0; ++attempt) {
        const std::string name = stem + std::to_string(attempt) + ".tmp";
        descriptor_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (descriptor_ < 0 && errno != EEXIST) return;
        if (descriptor_ >= 0) temporary_ = name;
    }
    if (replaces) keep_permissions(descriptor_, replaced);
    exchange_incomplete_file(nullptr, temporary_.c_str());
}

void OutputFile::write(std::string_view text) {
    if (compressor_)
        compressor_->transform(text, [this](std::string_view bytes) { write_bytes(bytes); });
    else
        write_bytes(text);
}

void OutputFile::finish() {
    if (compressor_) compressor_->finish([this](std::string_view bytes) { write_bytes(bytes); });
    close_file();
    if (temporary_.empty()) return;
    if (rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
    exchange_incomplete_file(temporary_.c_str(), nullptr);
    temporary_.clear();
}

void OutputFile::write_bytes(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail(errno);
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

void OutputFile::close_file() {
    const int descriptor = descriptor_;
    descriptor_ = -1;
    // Network file systems and quotas report failed writes at close. After EINTR, Linux has closed
    // the descriptor (close(2)).
    if (close(descriptor) != 0 && errno != EINTR) fail(errno);
}

void OutputFile::fail(int error) const {
    const std::string name = is_standard_output(path_) ? "to standard output" : "'" + path_ + "'";
    throw Error("cannot write " + name + ": " + reason(error) + "; name another output file");
}

void remove_incomplete_files_on_signals() {
    for (const int signal : kSignals) {
        struct sigaction action;
        // nohup(1) relies on ignored signals staying ignored.
        if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
        action = {};
        action.sa_handler = remove_incomplete_files;
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        sigaction(signal, &action, nullptr);
    }
}

InputFile::InputFile(const std::string& path, std::size_t block)
    : path_(path),
      file_(path == "-" ? duplicate(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC)),
      buffer_(block) {
    if (file_.number() < 0) throw Error("cannot open '" + path + "': " + reason(errno));
}

bool InputFile::next(const Consumer& consumer) {
    ssize_t count = 0;
    do count = read(file_.number(), buffer_.data(), buffer_.size());
    while (count < 0 && errno == EINTR);
    if (count < 0) throw Error("cannot read '" + path_ + "': " + reason(errno));
    if (count == 0) {
        if (decompressor_) decompressor_->finish(consumer);
        return false;
    }
    const std::string_view block(buffer_.data(), static_cast<std::size_t>(count));
    if (!std::exchange(has_begun_, true)) decompressor_ = make_decompressor(block, path_);
    if (decompressor_)
        decompressor_->transform(block, consumer);
    else
        consumer(block);
    return true;
}

void read_file(const std::string& path, const Consumer& consumer) {
    InputFile file(path);
    while (file.next(consumer)) {
    }
}

bool can_be_read_again(const std::string& path) {
    std::error_code error;
    const std::filesystem::file_type type = std::filesystem::status(path, error).type();
    return path != "-" && type != std::filesystem::file_type::fifo &&
           type != std::filesystem::file_type::character &&
           type != std::filesystem::file_type::socket;
}

std::string beginning_of_file(const std::string& path, std::size_t size) {
    std::string text;
    try {
        read_file(path, [&](std::string_view block) {
            text += block.substr(0, size - text.size());
            if (text.size() == size) throw Enough();
        });
    } catch (const Enough&) {
    }
    return text;
}

}  // namespace assay::events
