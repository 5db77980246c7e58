#include "plugins/bbv/thread_vectors.h"

#include <zlib.h>
#include <zstd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <utility>
#include <vector>

namespace bbv {

std::uint32_t BlockNumbers::number(std::uint32_t index, std::span<const trace_block_t> blocks) {
    if (index >= by_index_.size()) by_index_.resize(blocks.size());
    std::uint32_t& known = by_index_[index];
    if (known == 0) {
        const std::uint32_t next = count() + 1;
        known = known_.try_emplace(blocks[index].pc, next).first->second;
        if (known == next) sorted_.push_back({blocks[index].pc, known});
    }
    return known;
}

std::span<const NumberedBlock> BlockNumbers::by_address() {
    const auto before = [](const NumberedBlock& a, const NumberedBlock& b) { return a.pc < b.pc; };
    if (!std::is_sorted(sorted_.begin(), sorted_.end(), before))
        std::sort(sorted_.begin(), sorted_.end(), before);
    return sorted_;
}

namespace {

void append_number(std::string& to, std::uint64_t number) {
    char digits[20];
    to.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

}  // namespace

std::string_view VectorLine::write(std::span<const trace_interval_block_t> interval,
                                   BlockNumbers& numbers, std::span<const trace_block_t> blocks) {
    parts_.clear();
    for (const trace_interval_block_t& part : interval)
        parts_.push_back({blocks[part.block].pc, part.instructions, part.block});
    std::sort(parts_.begin(), parts_.end(),
              [](const Part& a, const Part& b) { return a.pc < b.pc; });
    text_ = "T";
    for (auto part = parts_.cbegin(); part != parts_.cend();) {
        // In order of addresses, so that new numbers do not depend on the order of translation.
        const std::uint32_t number = numbers.number(part->block, blocks);
        const std::uint64_t pc = part->pc;
        std::uint64_t instructions = 0;
        for (; part != parts_.cend() && part->pc == pc; ++part) instructions += part->instructions;
        text_ += ':';
        append_number(text_, number);
        text_ += ':';
        append_number(text_, instructions);
        text_ += "   ";
    }
    text_ += '\n';
    return text_;
}

bool ThreadVectors::open() {
    if (file_ == nullptr) file_ = open_output(path_, created_);
    created_ |= file_ != nullptr;
    return file_ != nullptr;
}

bool ThreadVectors::write(std::string_view line) {
    return open() && file_->write(line);
}

bool ThreadVectors::finish(const std::string& text) {
    return open() && file_->write(text) && suspend();
}

bool ThreadVectors::suspend() {
    const bool closed = file_ == nullptr || file_->close();
    file_.reset();
    return closed;
}

namespace {

class PlainFile : public OutputFile {
  public:
    explicit PlainFile(std::FILE* file) : file_(file) {}
    PlainFile(const PlainFile&) = delete;
    PlainFile& operator=(const PlainFile&) = delete;
    ~PlainFile() override { PlainFile::close(); }
    bool write(std::string_view text) override {
        return std::fwrite(text.data(), 1, text.size(), file_) == text.size();
    }
    bool close() override {
        std::FILE* const file = file_;
        file_ = nullptr;
        return file == nullptr || std::fclose(file) == 0;
    }

  private:
    std::FILE* file_;
};

class GzipFile : public OutputFile {
  public:
    explicit GzipFile(gzFile file) : file_(file) {}
    GzipFile(const GzipFile&) = delete;
    GzipFile& operator=(const GzipFile&) = delete;
    ~GzipFile() override { GzipFile::close(); }
    bool write(std::string_view text) override {
        return text.empty() || gzwrite(file_, text.data(), static_cast<unsigned>(text.size())) > 0;
    }
    bool close() override {
        gzFile const file = file_;
        file_ = nullptr;
        return file == nullptr || gzclose(file) == Z_OK;
    }

  private:
    gzFile file_;
};

class ZstdFile : public OutputFile {
  public:
    explicit ZstdFile(std::FILE* file) : file_(file), stream_(ZSTD_createCStream()) {}
    ZstdFile(const ZstdFile&) = delete;
    ZstdFile& operator=(const ZstdFile&) = delete;
    ~ZstdFile() override {
        ZstdFile::close();
        ZSTD_freeCStream(stream_);
    }
    bool write(std::string_view text) override { return compress(text, ZSTD_e_continue); }
    bool close() override {
        if (std::exchange(closed_, true)) return true;
        const bool ended = compress({}, ZSTD_e_end);
        return file_.close() && ended;
    }

  private:
    bool compress(std::string_view text, ZSTD_EndDirective directive) {
        ZSTD_inBuffer input{text.data(), text.size(), 0};
        for (;;) {
            ZSTD_outBuffer output{buffer_.data(), buffer_.size(), 0};
            const std::size_t left = ZSTD_compressStream2(stream_, &output, &input, directive);
            if (ZSTD_isError(left)) return errno = EIO, false;
            if (output.pos != 0 && !file_.write({buffer_.data(), output.pos})) return false;
            if (directive == ZSTD_e_end ? left == 0 : input.pos == input.size) return true;
        }
    }

    PlainFile file_;
    ZSTD_CStream* stream_;
    bool closed_ = false;
    std::vector<char> buffer_ = std::vector<char>(ZSTD_CStreamOutSize());
};

}  // namespace

std::string with_suffix(const std::string& path, const std::string& suffix) {
    for (const std::string_view ending : {".gz", ".zst"})
        if (path.ends_with(ending))
            return path.substr(0, path.size() - ending.size()) + "." + suffix + std::string(ending);
    return path + "." + suffix;
}

std::unique_ptr<OutputFile> open_output(const std::string& path, bool append) {
    if (path.ends_with(".gz")) {
        gzFile const file = gzopen(path.c_str(), append ? "abe" : "wbe");
        return file == nullptr ? nullptr : std::make_unique<GzipFile>(file);
    }
    std::FILE* const file = std::fopen(path.c_str(), append ? "ae" : "we");
    if (file == nullptr) return nullptr;
    if (path.ends_with(".zst")) return std::make_unique<ZstdFile>(file);
    return std::make_unique<PlainFile>(file);
}

}  // namespace bbv
