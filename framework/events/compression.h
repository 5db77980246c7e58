// gzip, zstd and xz as streams: blocks of bytes in, blocks of bytes out.
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
    // Ends the input. A decompressor throws Error if the input is cut short.
    virtual void finish(const Consumer& consumer) = 0;
};

// Chooses by the end of the name: .gz or .zst. Null for any other name.
std::unique_ptr<Codec> make_compressor(const std::string& path);

// Chooses by the first bytes of the content. Null if they belong to none of gzip, zstd and xz.
// `path` appears in messages.
std::unique_ptr<Codec> make_decompressor(std::string_view first_bytes, const std::string& path);

}  // namespace assay::events
