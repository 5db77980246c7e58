#include "plugins/bbv/thread_vectors.h"

namespace bbv {

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

}  // namespace bbv
