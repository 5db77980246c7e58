// Where a command's result goes: a file, complete or not at all, or standard output.
#pragma once

#include "framework/events/file.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

enum class Compress : std::uint8_t {
    kByName,  // if the name ends in .gz or .zst
    kGzip,    // once, whatever the name
};

class Sink {
  public:
    // An empty path: standard output.
    explicit Sink(const std::string& path, Compress compress = Compress::kByName);
    // Passed on.
    Sink(events::Consumer consumer, Compress compress);

    void write(std::string_view text) {
        buffer_ += text;
        if (buffer_.size() >= kBlockBytes) flush();
    }
    // Throws Error if any of the text could not be written.
    void finish();

  private:
    static constexpr std::size_t kBlockBytes = 64 * 1024;
    void flush();
    void put(std::string_view bytes);

    std::optional<events::OutputFile> file_;
    events::Consumer consumer_;
    std::unique_ptr<events::Codec> gzip_;
    std::string buffer_;
};

}  // namespace assay
