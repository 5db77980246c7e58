#include "tools/output/sink.h"

#include "tools/output/output.h"

#include <cerrno>
#include <cstdio>
#include <utility>

namespace assay {

Sink::Sink(const std::string& path, Compress compress) {
    if (!path.empty()) file_.emplace(path);
    if (compress == Compress::kGzip && !path.ends_with(".gz"))
        gzip_ = events::make_compressor("profile.gz");
}

Sink::Sink(events::Consumer consumer, Compress compress) : consumer_(std::move(consumer)) {
    if (compress == Compress::kGzip) gzip_ = events::make_compressor("profile.gz");
}

void Sink::put(std::string_view bytes) {
    if (consumer_)
        consumer_(bytes);
    else if (file_)
        file_->write(bytes);
    else if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size())
        throw cannot_print(errno);
}

void Sink::flush() {
    if (gzip_)
        gzip_->transform(buffer_, [this](std::string_view bytes) { put(bytes); });
    else
        put(buffer_);
    buffer_.clear();
}

void Sink::finish() {
    flush();
    if (gzip_) gzip_->finish([this](std::string_view bytes) { put(bytes); });
    if (file_)
        file_->finish();
    else if (!consumer_ && std::fflush(stdout) != 0)
        throw cannot_print(errno);
}

}  // namespace assay
