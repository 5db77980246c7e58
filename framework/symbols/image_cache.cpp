#include "framework/symbols/image_cache.h"

#include "framework/support/descriptor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <vector>

namespace assay::symbols {

namespace fs = std::filesystem;

namespace {

// Writing beyond the limit would end the process (SIGXFSZ).
bool may_write(std::size_t bytes) {
    rlimit limit{};
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes <= limit.rlim_cur;
}

bool write_all(int file, std::span<const char> bytes) {
    while (!bytes.empty()) {
        const ssize_t written = write(file, bytes.data(), bytes.size());
        if (written <= 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return true;
}

// Updates the time of last use for make_room(), at most once a day to save writes.
void note_use(int file, const struct stat& status) {
    constexpr std::time_t kDay = 24 * 60 * 60;
    if (std::time(nullptr) - status.st_mtime > kDay) futimens(file, nullptr);
}

}  // namespace

ImageCache::ImageCache(std::string folder, std::size_t most_bytes)
    : folder_(std::move(folder)), most_bytes_(most_bytes) {}

// The home may not exist (/nonexistent for some users of Debian), or belong to another user (with
// sudo).
std::string ImageCache::folder_of_user() {
    const auto own = [](const char* name) {
        const char* value = std::getenv(name);
        struct stat status {};
        const bool usable = value != nullptr && *value == '/' && stat(value, &status) == 0 &&
                            S_ISDIR(status.st_mode) && status.st_uid == geteuid();
        return usable ? std::string(value) : std::string();
    };
    const char* chosen = std::getenv("XDG_CACHE_HOME");
    const bool elsewhere = chosen != nullptr && *chosen != '\0';
    const std::string folder = own(elsewhere ? "XDG_CACHE_HOME" : "HOME");
    return folder.empty() ? folder : folder + (elsewhere ? "/assay" : "/.cache/assay");
}

void ImageCache::Unmap::operator()(char* bytes) const {
    munmap(bytes, size);
}

ImageCache::Image ImageCache::find(const std::string& name, std::size_t size) const {
    if (folder_.empty()) return nullptr;
    const Descriptor file(
        open((folder_ + "/" + name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status {};
    if (file.number() < 0 || fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_uid != geteuid() || static_cast<std::size_t>(status.st_size) != size)
        return nullptr;
    void* bytes = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.number(), 0);
    if (bytes == MAP_FAILED) return nullptr;
    note_use(file.number(), status);
    return Image(static_cast<char*>(bytes), Unmap{size});
}

// Writes to a temporary name first, so that other processes never find an incomplete file. find()
// rejects a file that a system crash has truncated, because of its size.
void ImageCache::keep(const std::string& name, std::span<const char> image) const {
    constexpr std::size_t kMostShare = 4;  // one file may take a quarter of the room
    if (folder_.empty() || image.size() > most_bytes_ / kMostShare || !may_write(image.size()))
        return;
    mkdir(fs::path(folder_).parent_path().c_str(), S_IRWXU);
    mkdir(folder_.c_str(), S_IRWXU);
    const std::string path = folder_ + "/" + name;
    if (access(path.c_str(), F_OK) == 0) return;
    make_room(image.size());
    const std::string temporary = path + "." + std::to_string(getpid()) + ".tmp";
    const Descriptor file(open(temporary.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                               S_IRUSR | S_IWUSR));
    if (file.number() < 0) return;
    if (!write_all(file.number(), image) || rename(temporary.c_str(), path.c_str()) != 0)
        unlink(temporary.c_str());
}

void ImageCache::make_room(std::size_t bytes) const {
    struct Kept {
        fs::path path;
        std::size_t size;
        fs::file_time_type used;
    };
    std::vector<Kept> all;
    std::size_t total = bytes;
    std::error_code error;
    for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
        std::error_code gone;
        const Kept kept{at->path(), at->file_size(gone), at->last_write_time(gone)};
        if (gone) continue;
        total += kept.size;
        all.push_back(kept);
    }
    std::sort(all.begin(), all.end(), [](const Kept& a, const Kept& b) { return a.used < b.used; });
    for (auto oldest = all.begin(); total > most_bytes_ && oldest != all.end(); ++oldest) {
        if (unlink(oldest->path.c_str()) == 0) total -= oldest->size;
    }
}

}  // namespace assay::symbols
