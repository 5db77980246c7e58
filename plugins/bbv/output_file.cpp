#include "plugins/bbv/output_file.h"

#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

namespace bbv {
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
