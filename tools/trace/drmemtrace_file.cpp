#include "tools/trace/drmemtrace_file.h"

#include "framework/events/file.h"
#include "framework/support/error.h"

#include <fmt/core.h>
#include <unzip.h>
#include <utility>

namespace assay::tracing::drmemtrace {
namespace {

constexpr std::size_t kBytesAtOnce = std::size_t{16} * 1024;  // many files are open at a time

}  // namespace

class EntryReader::Source {
  public:
    Source() = default;
    virtual ~Source() = default;
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;

    // Appends the next bytes. False after the last ones.
    virtual bool append(std::string& to) = 0;
};

class EntryReader::Plain final : public Source {
  public:
    explicit Plain(const std::string& path) : file_(path, kBytesAtOnce) {}
    bool append(std::string& to) override {
        return file_.next([&](std::string_view bytes) { to += bytes; });
    }

  private:
    events::InputFile file_;
};

class EntryReader::Zip final : public Source {
  public:
    explicit Zip(const std::string& path) : path_(path), file_(unzOpen64(path.c_str())) {
        if (!file_ || unzGoToFirstFile(file_.get()) != UNZ_OK) fail();
    }

    bool append(std::string& to) override {
        if (has_ended_) return false;
        if (!std::exchange(in_member_, true) && unzOpenCurrentFile(file_.get()) != UNZ_OK) fail();
        const std::size_t before = to.size();
        to.resize(before + kBytesAtOnce);
        const int read = unzReadCurrentFile(file_.get(), to.data() + before, kBytesAtOnce);
        if (read < 0) fail();
        to.resize(before + static_cast<std::size_t>(read));
        if (read != 0) return true;
        in_member_ = false;
        unz_file_info64 about{};
        const bool is_whole = unzGetCurrentFileInfo64(file_.get(), &about, nullptr, 0, nullptr, 0,
                                                      nullptr, 0) == UNZ_OK &&
                              unztell64(file_.get()) == about.uncompressed_size;
        if (!is_whole) fail();
        if (unzCloseCurrentFile(file_.get()) != UNZ_OK) fail();  // also compares the checksum
        const int next = unzGoToNextFile(file_.get());
        has_ended_ = next == UNZ_END_OF_LIST_OF_FILE;
        if (next != UNZ_OK && !has_ended_) fail();
        return !has_ended_;
    }

  private:
    struct Close {
        void operator()(void* file) const { unzClose(file); }
    };
    [[noreturn]] void fail() const {
        throw Error(fmt::format("{}: damaged zip archive, or it was cut short", path_));
    }

    const std::string path_;
    const std::unique_ptr<void, Close> file_;
    bool in_member_ = false, has_ended_ = false;
};

EntryReader::EntryReader(const std::string& path)
    : path_(path),
      source_(events::beginning_of_file(path, 4) == "PK\3\4"
                  ? std::unique_ptr<Source>(std::make_unique<Zip>(path))
                  : std::make_unique<Plain>(path)) {
    const Entry* const first = next();
    if (!first) throw Error(fmt::format("{} is empty", path));
    if (first->type != kHeader)
        fail(
            fmt::format("type {} instead of {}, a header: this is no trace of drmemtrace for 64 "
                        "bits; decompress it first if it is compressed in a way other than zip, "
                        "gzip, zstd and xz",
                        first->type, std::uint16_t{kHeader}));
}

EntryReader::~EntryReader() = default;

void EntryReader::fail(const std::string& what) const {
    throw Error(fmt::format("{}: record {}: {}", path_, number_, what));
}

// Reads on until there is a whole record. False after the last one.
bool EntryReader::fill() {
    room_.erase(0, std::exchange(at_, 0));
    while (room_.size() < Entry::kBytes) {
        if (source_->append(room_)) continue;
        if (room_.empty()) return false;
        throw Error(fmt::format("{} is cut short: {} bytes follow record {}, but a record has {}",
                                path_, room_.size(), number_, Entry::kBytes));
    }
    return true;
}

const Entry* EntryReader::next() {
    if (room_.size() - at_ < Entry::kBytes && !fill()) {
        if (number_ != 0 && entry_.type != kFooter)
            throw Error(
                fmt::format("{} is cut short: its last record, {}, is no footer", path_, number_));
        return nullptr;
    }
    entry_ = Entry(room_.data() + at_);
    at_ += Entry::kBytes;
    ++number_;
    return &entry_;
}

}  // namespace assay::tracing::drmemtrace
