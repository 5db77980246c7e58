// Messages in the wire format of protocol buffers
// (https://protobuf.dev/programming-guides/encoding/), as far as pprof's profiles need it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace assay::exporting {

class ProtobufMessage {
  public:
    // Fields of value 0 are left out, as that is what their absence means.
    void number(unsigned field, std::uint64_t value) {
        if (value == 0) return;
        append_varint(std::uint64_t{field} << 3 | kVarint);
        append_varint(value);
    }
    void boolean(unsigned field, bool value) { number(field, value ? 1 : 0); }
    // A string, or a message in this one.
    void bytes(unsigned field, std::string_view value) {
        append_varint(std::uint64_t{field} << 3 | kLengthDelimited);
        append_varint(value.size());
        bytes_ += value;
    }
    void packed(unsigned field, std::span<const std::uint64_t> values) {
        ProtobufMessage list;
        for (const std::uint64_t value : values) list.append_varint(value);
        bytes(field, list.bytes_);
    }

    const std::string& encoded() const { return bytes_; }
    void clear() { bytes_.clear(); }

  private:
    enum : std::uint64_t { kVarint = 0, kLengthDelimited = 2 };

    void append_varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
        bytes_ += static_cast<char>(value);
    }

    std::string bytes_;
};

}  // namespace assay::exporting
