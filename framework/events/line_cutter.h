// Cuts text that arrives in blocks into lines.
#pragma once

#include "framework/events/header.h"

#include <string>
#include <string_view>
#include <utility>

namespace assay::events {

class LineCutter {
  public:
    // Calls consume(line) for each line that is complete now. Returns false, and keeps nothing, at
    // a line of more than kMaxLineBytes; begin() is then its beginning.
    template <typename Consume>
    bool feed(std::string_view block, const Consume& consume) {
        while (!block.empty()) {
            const std::size_t end = block.find('\n');
            const std::string_view piece = block.substr(0, end);
            if (partial_.size() + piece.size() > kMaxLineBytes) {
                partial_ += piece.substr(0, kMaxLineBytes - partial_.size());
                return false;
            }
            if (end == std::string_view::npos) {
                partial_ += piece;
                return true;
            }
            if (partial_.empty()) {
                consume(piece);
            } else {
                partial_ += piece;
                consume(partial_);
                partial_.clear();
            }
            block.remove_prefix(end + 1);
        }
        return true;
    }

    // What has arrived of the line that is not complete.
    std::string_view begin() const { return partial_; }
    // The last line, if it lacked its newline; else empty.
    std::string take_rest() { return std::exchange(partial_, {}); }

  private:
    std::string partial_;
};

}  // namespace assay::events
