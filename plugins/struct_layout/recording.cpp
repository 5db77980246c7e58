#include "plugins/struct_layout/recording.h"

#include <zstd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace struct_layout {
namespace {

constexpr std::uint32_t kChunk = 1 << 16;
constexpr int kZstdLevel = 1;  // differences of walks are the same again and again: any finds that

[[noreturn]] void fail(const char* what) {
    throw std::runtime_error(std::string("the recorded references cannot be ") + what + ": " +
                             std::strerror(errno));
}

// Seven bits in each byte, the lowest first; differences of both signs are small numbers.
void put(std::vector<unsigned char>& to, std::uint64_t difference) {
    std::uint64_t number = difference << 1 ^ (difference >> 63 != 0 ? ~std::uint64_t{0} : 0);
    for (; number >= 0x80; number >>= 7) to.push_back(static_cast<unsigned char>(number | 0x80));
    to.push_back(static_cast<unsigned char>(number));
}

std::uint64_t get(const unsigned char*& from) {
    std::uint64_t number = 0;
    for (unsigned shift = 0;; shift += 7) {
        const std::uint64_t byte = *from++;
        number |= (byte & 0x7F) << shift;
        if (byte < 0x80) break;
    }
    return number >> 1 ^ (~(number & 1) + 1);
}

}  // namespace

std::uint64_t& Recording::Before::value(std::uint32_t of) {
    if (of >= values.size()) values.resize(of + of / 2 + 64);
    return values[of];
}

void Recording::add(std::uint32_t thread, std::span<const trace_record_t> references) {
    if (thread != pending_thread_) write();
    for (const trace_record_t& reference : references) {
        if (bytes_ >= most_bytes_) {
            ++left_out_;
            continue;
        }
        pending_thread_ = thread;
        put(pending_, std::uint64_t{reference.site} - before_.site);
        std::uint64_t& value = before_.value(reference.site);
        put(pending_, reference.value - value);
        before_.site = reference.site;
        value = reference.value;
        ++references_;
        if (++pending_count_ == kChunk) write();
    }
}

void Recording::write() {
    if (pending_count_ == 0) return;
    if (!file_) file_.reset(std::tmpfile());
    if (!file_) fail("written");
    packed_.resize(ZSTD_compressBound(pending_.size()));
    const std::size_t packed =
        ZSTD_compress(packed_.data(), packed_.size(), pending_.data(), pending_.size(), kZstdLevel);
    if (ZSTD_isError(packed)) throw std::runtime_error(ZSTD_getErrorName(packed));
    if (std::fwrite(packed_.data(), 1, packed, file_.get()) != packed) fail("written");
    chunks_.push_back({pending_thread_, pending_count_, pending_.size(), packed});
    bytes_ += packed;
    pending_.clear();
    pending_count_ = 0;
}

void Recording::replay(const Take& take) {
    if (chunks_.empty()) return;
    if (std::fflush(file_.get()) != 0) fail("written");
    std::rewind(file_.get());
    Before before;
    std::vector<unsigned char> bytes;
    std::vector<trace_record_t> records;
    for (const Chunk& chunk : chunks_) {
        packed_.resize(chunk.packed);
        bytes.resize(chunk.bytes);
        if (std::fread(packed_.data(), 1, chunk.packed, file_.get()) != chunk.packed) fail("read");
        if (ZSTD_decompress(bytes.data(), bytes.size(), packed_.data(), chunk.packed) !=
            chunk.bytes)
            throw std::runtime_error("the recorded references are damaged");
        records.resize(chunk.count);
        const unsigned char* from = bytes.data();
        for (trace_record_t& record : records) {
            record.site = before.site += static_cast<std::uint32_t>(get(from));
            record.value = before.value(record.site) += get(from);
            record.aux = 0;
        }
        take(chunk.thread, records);
    }
}

}  // namespace struct_layout
