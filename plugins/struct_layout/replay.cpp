#include "plugins/struct_layout/replay.h"

#include <zstd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace struct_layout {

Trial::Trial(const Layout& layout, std::uint32_t number, const Structs& structs,
             const Instances& instances, std::span<const trace_site_t> sites,
             const cache::Geometries& geometries)
    : layout_(layout),
      number_(number),
      of_(structs.all[number]),
      structs_(structs),
      instances_(instances),
      keeps_places_(layout.keeps_places(of_)),
      sites_(sites.begin(), sites.end()),
      own_sites_(static_cast<std::uint32_t>(sites.size())),
      simulator_(std::make_unique<cache::Simulator>(geometries)),
      hints_(sites.size()) {
    for (std::uint32_t bytes = 0; bytes <= kMostBytes; ++bytes)
        sites_.push_back({0, static_cast<std::uint16_t>(bytes), TRACE_SITE_READ, 0});
    simulator_->learn(sites_.data(), sites_.size());
}

void Trial::take(std::uint32_t thread, std::span<const trace_record_t> records) {
    records_.clear();
    for (const trace_record_t& record : records) {
        if (sites_[record.site].kind == TRACE_SITE_FETCH)
            records_.push_back(record);
        else
            refer(record, structs_.of_site(record.site));
    }
    simulator_->process(thread, records_.data(), records_.size());
}

// An instruction of unknown type that refers to an instance refers to the member at this place. If
// it covers several members, for example to copy the whole struct, it is divided. If the layout
// keeps the places of instances, it stays as it was.
void Trial::refer(const trace_record_t& record, const SiteUse& use) {
    const bool own = use.of == number_;
    const std::uint32_t index = own || use.of == kNone || !keeps_places_
                                    ? instances_.find(record.value, hints_[record.site])
                                    : kNone;
    if (index == kNone) {
        records_.push_back(record);
        references_ += own ? 1 : 0;
        return;
    }
    const InstanceArray& array = instances_.arrays()[index];
    const bool guessed =
        use.of == kNone && array.in_block && (!keeps_places_ || is_of_one(record, array));
    const bool moves = (own || guessed) && move(record, use, array);
    if (!moves) records_.push_back(record);
    if (!own && !array.in_block) return;
    ++references_;
    moved_ += moves || (!own && keeps_places_) ? 1 : 0;
}

bool Trial::is_of_one(const trace_record_t& record, const InstanceArray& array) const {
    return of_.unit_of((record.value - array.start) % of_.bytes, sites_[record.site].bytes) !=
           kNone;
}

bool Trial::move(const trace_record_t& record, const SiteUse& use, const InstanceArray& array) {
    if (!array.regular) return false;
    const std::uint64_t at = record.value - array.start;
    if (use.offset != UINT64_MAX && use.offset != at % of_.bytes) return false;
    // Two structs need a common index, so a single instance outside of arrays is not split.
    if (!keeps_places_ && (!array.in_block || (layout_.parts.size() > 1 && array.count == 1)))
        return false;
    const std::uint64_t bytes = std::max<std::uint16_t>(sites_[record.site].bytes, 1);
    const std::uint64_t end = std::min(at + bytes, array.count * of_.bytes);
    const std::size_t before = records_.size();
    std::uint64_t expected = 0;
    for (std::uint64_t from = at; from < end;) {
        const std::uint64_t within = from % of_.bytes;
        const std::uint32_t unit = of_.unit_at[within];
        if (unit == kNone) {
            ++from;
            continue;
        }
        const Unit& of = of_.units[unit];
        const std::uint64_t size = std::min(end - from, of.offset + of.bytes - within);
        const std::uint32_t part = layout_.part_of[unit];
        const std::uint64_t address = part_start(array, part) +
                                      from / of_.bytes * layout_.parts[part].bytes +
                                      layout_.offsets[unit] + (within - of.offset);
        // Members that are still neighbours stay one reference.
        if (records_.size() != before && address == expected &&
            records_.back().site - own_sites_ + size <= kMostBytes)
            records_.back().site += static_cast<std::uint32_t>(size);
        else
            records_.push_back({address, size == bytes ? record.site : site_of_bytes(size), 0});
        expected = address + size;
        from += size;
    }
    return records_.size() != before;
}

std::uint32_t Trial::site_of_bytes(std::uint64_t bytes) const {
    return own_sites_ + static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, kMostBytes));
}

// The second array starts in the line after the first.
std::uint64_t Trial::part_start(const InstanceArray& array, std::uint32_t part) const {
    constexpr std::uint64_t kBetween = 64;
    const Layout::Part& first = layout_.parts[0];
    std::uint64_t start = array.start;
    if (first.aligned) start = (start + first.alignment - 1) / first.alignment * first.alignment;
    if (part == 0) return start;
    const std::uint64_t end = start + array.count * first.bytes;
    return (end + kBetween - 1) / kBetween * kBetween;
}

Misses Trial::sum(bool own) const {
    Misses sum;
    for (std::uint32_t site = 0; site < sites_.size(); ++site) {
        if (sites_[site].kind == TRACE_SITE_FETCH) continue;
        if (own && site < own_sites_ && structs_.of_site(site).of != number_) continue;
        const cache::SiteCounts counts = simulator_->counts(site);
        sum.l1 += counts.l1_misses;
        sum.ll += counts.ll_misses;
    }
    return sum;
}

namespace {

constexpr std::uint32_t kChunk = 1 << 16;
constexpr int kZstdLevel = 1;  // any level finds the repeated differences of walks

[[noreturn]] void fail(const char* what) {
    throw std::runtime_error(std::string("the recorded references cannot be ") + what + ": " +
                             std::strerror(errno));
}

// Writes seven bits in each byte, the lowest first. The sign goes into the lowest bit, so that
// small differences of both signs are short.
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
