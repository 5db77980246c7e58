#include "framework/events/compression.h"

#include "framework/support/error.h"

#include <array>
#include <cstdint>
#include <new>

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

namespace assay::events {

namespace {

using Buffer = std::array<char, 128 * 1024>;

// Added to zlib's window bits: write and expect a gzip header (zlib.h, deflateInit2).
constexpr int kGzipWindow = MAX_WBITS + 16;

class GzipCompressor final : public Codec {
  public:
    GzipCompressor() {
        if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8,
                         Z_DEFAULT_STRATEGY) != Z_OK)
            throw std::bad_alloc();
    }
    ~GzipCompressor() override { deflateEnd(&stream_); }

    void transform(std::string_view input, const Consumer& consumer) override {
        run(input, Z_NO_FLUSH, consumer);
    }
    void finish(const Consumer& consumer) override { run({}, Z_FINISH, consumer); }

  private:
    void run(std::string_view input, int flush, const Consumer& consumer) {
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
        stream_.avail_in = static_cast<uInt>(input.size());
        do {
            stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
            stream_.avail_out = static_cast<uInt>(buffer_.size());
            deflate(&stream_, flush);
            consumer({buffer_.data(), buffer_.size() - stream_.avail_out});
        } while (stream_.avail_out == 0);
    }

    z_stream stream_{};
    Buffer buffer_;
};

class GzipDecompressor final : public Codec {
  public:
    explicit GzipDecompressor(const std::string& path) : path_(path) {
        if (inflateInit2(&stream_, kGzipWindow) != Z_OK) throw std::bad_alloc();
    }
    ~GzipDecompressor() override { inflateEnd(&stream_); }

    void transform(std::string_view input, const Consumer& consumer) override {
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
        stream_.avail_in = static_cast<uInt>(input.size());
        do {
            // A gzip file may be several concatenated ones (RFC 1952, section 2.2).
            if (ended_ && stream_.avail_in > 0) {
                inflateReset(&stream_);
                ended_ = false;
            }
            stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
            stream_.avail_out = static_cast<uInt>(buffer_.size());
            const int result = inflate(&stream_, Z_NO_FLUSH);
            if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
                throw Error(path_ + ": damaged gzip data (" +
                            (stream_.msg ? stream_.msg : "unknown reason") + ")");
            if (result == Z_STREAM_END) ended_ = true;
            consumer({buffer_.data(), buffer_.size() - stream_.avail_out});
        } while (stream_.avail_in > 0 || stream_.avail_out == 0);
    }

    void finish(const Consumer&) override {
        if (!ended_) throw Error(path_ + ": the gzip data ends early: the file was cut short");
    }

  private:
    std::string path_;
    z_stream stream_{};
    bool ended_ = false;
    Buffer buffer_;
};

class ZstdCompressor final : public Codec {
  public:
    ZstdCompressor() : context_(ZSTD_createCCtx(), ZSTD_freeCCtx) {
        if (!context_) throw std::bad_alloc();
        ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
    }

    void transform(std::string_view input, const Consumer& consumer) override {
        run(input, ZSTD_e_continue, consumer);
    }
    void finish(const Consumer& consumer) override { run({}, ZSTD_e_end, consumer); }

  private:
    void run(std::string_view input, ZSTD_EndDirective directive, const Consumer& consumer) {
        ZSTD_inBuffer in{input.data(), input.size(), 0};
        for (;;) {
            ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
            const std::size_t left = ZSTD_compressStream2(context_.get(), &out, &in, directive);
            if (ZSTD_isError(left)) throw Error(std::string("zstd: ") + ZSTD_getErrorName(left));
            consumer({buffer_.data(), out.pos});
            if (directive == ZSTD_e_end ? left == 0 : in.pos == in.size) return;
        }
    }

    std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context_;
    Buffer buffer_;
};

class ZstdDecompressor final : public Codec {
  public:
    explicit ZstdDecompressor(const std::string& path)
        : path_(path), context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
        if (!context_) throw std::bad_alloc();
    }

    void transform(std::string_view input, const Consumer& consumer) override {
        ZSTD_inBuffer in{input.data(), input.size(), 0};
        bool full = false;
        while (in.pos < in.size || full) {
            ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
            left_ = ZSTD_decompressStream(context_.get(), &out, &in);
            if (ZSTD_isError(left_))
                throw Error(path_ + ": damaged zstd data (" + ZSTD_getErrorName(left_) + ")");
            consumer({buffer_.data(), out.pos});
            // Zero ends a frame: zstd has written all of it, even if the buffer is full.
            full = left_ != 0 && out.pos == out.size;
        }
    }

    void finish(const Consumer&) override {
        if (left_ != 0) throw Error(path_ + ": the zstd data ends early: the file was cut short");
    }

  private:
    std::string path_;
    std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_;
    std::size_t left_ = 1;  // bytes that zstd still expects; 0 at the end of a frame
    Buffer buffer_;
};

// Files of other programs; assay writes none.
class XzDecompressor final : public Codec {
  public:
    explicit XzDecompressor(const std::string& path) : path_(path) {
        constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 30;  // xz -9 needs 65 MiB
        if (lzma_stream_decoder(&stream_, kMostMemory, LZMA_CONCATENATED) != LZMA_OK)
            throw std::bad_alloc();
    }
    ~XzDecompressor() override { lzma_end(&stream_); }

    void transform(std::string_view input, const Consumer& consumer) override {
        run(input, LZMA_RUN, consumer);
    }
    void finish(const Consumer& consumer) override {
        run({}, LZMA_FINISH, consumer);
        if (!ended_) throw Error(path_ + ": the xz data ends early: the file was cut short");
    }

  private:
    void run(std::string_view input, lzma_action action, const Consumer& consumer) {
        stream_.next_in = reinterpret_cast<const std::uint8_t*>(input.data());
        stream_.avail_in = input.size();
        do {
            stream_.next_out = reinterpret_cast<std::uint8_t*>(buffer_.data());
            stream_.avail_out = buffer_.size();
            const lzma_ret result = lzma_code(&stream_, action);
            if (result == LZMA_MEMLIMIT_ERROR)
                throw Error(
                    path_ +
                    ": the xz data need more than 1 GiB of memory: decompress it first (xz -d)");
            if (result != LZMA_OK && result != LZMA_STREAM_END && result != LZMA_BUF_ERROR)
                throw Error(path_ + ": damaged xz data");
            consumer({buffer_.data(), buffer_.size() - stream_.avail_out});
            ended_ = result == LZMA_STREAM_END;
        } while (!ended_ && (stream_.avail_in > 0 || stream_.avail_out == 0));
    }

    std::string path_;
    lzma_stream stream_ = LZMA_STREAM_INIT;
    bool ended_ = false;
    Buffer buffer_;
};

}  // namespace

std::unique_ptr<Codec> make_compressor(const std::string& path) {
    if (path.ends_with(".gz")) return std::make_unique<GzipCompressor>();
    if (path.ends_with(".zst")) return std::make_unique<ZstdCompressor>();
    return nullptr;
}

std::unique_ptr<Codec> make_decompressor(std::string_view first_bytes, const std::string& path) {
    // RFC 1952, section 2.3.1; RFC 8878, section 3.1.1.
    if (first_bytes.starts_with("\x1f\x8b")) return std::make_unique<GzipDecompressor>(path);
    if (first_bytes.starts_with("\x28\xb5\x2f\xfd"))
        return std::make_unique<ZstdDecompressor>(path);
    if (first_bytes.starts_with("\xfd"
                                "7zXZ"))
        return std::make_unique<XzDecompressor>(path);
    return nullptr;
}

}  // namespace assay::events
