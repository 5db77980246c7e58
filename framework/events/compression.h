// gzip and zstd as streams: blocks of bytes in, blocks of bytes out.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace assay::events {

using Consumer = std::function<void(std::string_view)>;

class Codec {
  public:
    virtual ~Codec() = default;
    virtual void transform(std::string_view input, const Consumer& consumer) = 0;
    // The input has ended. A decompressor throws Error if it ended too early.
    virtual void finish(const Consumer& consumer) = 0;
};

// By the ending of the name: .gz, .zst; null for any other.
std::unique_ptr<Codec> make_compressor(const std::string& path);

// By the first bytes of the content; null if they are neither gzip's nor zstd's. The path is for
// messages.
std::unique_ptr<Codec> make_decompressor(std::string_view first_bytes, const std::string& path);

}  // namespace assay::events
