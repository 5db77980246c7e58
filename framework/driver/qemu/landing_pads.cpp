#include "framework/driver/qemu/landing_pads.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

namespace assay::qemu {
namespace {

// Encodings of pointers: the format, what the value is relative to, and whether it is the address
// of the pointer.
constexpr unsigned kFormat = 0x0f, kRelation = 0x70, kIndirect = 0x80, kOmitted = 0xff;
constexpr unsigned kToItself = 0x10, kToIndex = 0x30;

// Of no file if it cannot be read.
LandingPads landing_pads_of(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    void* memory = MAP_FAILED;
    if (descriptor >= 0 && fstat(descriptor, &status) == 0 && status.st_size > 0)
        memory = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE,
                      descriptor, 0);
    if (descriptor >= 0) close(descriptor);
    if (memory == MAP_FAILED) return LandingPads({});
    const auto bytes = static_cast<std::size_t>(status.st_size);
    LandingPads found({static_cast<const std::uint8_t*>(memory), bytes});
    munmap(memory, bytes);
    return found;
}

}  // namespace

struct LandingPads::Description {
    bool known = false, has_sizes = false;
    unsigned pointers = 0, tables = kOmitted;  // encodings
};

// Reads values one after the other. All are 0 after one that is not in the file.
class LandingPads::Cursor {
  public:
    Cursor(std::span<const std::uint8_t> bytes, std::uint64_t address, unsigned word_bytes)
        : bytes_(bytes), address_(address), word_bytes_(word_bytes) {}

    std::uint64_t address() const { return address_; }
    bool good() const { return good_; }
    std::uint64_t number(unsigned bytes) {
        std::uint64_t value = 0;
        if (bytes > bytes_.size()) good_ = false;
        if (!good_) return 0;
        std::memcpy(&value, bytes_.data(), bytes);
        skip(bytes);
        return value;
    }
    void skip(std::uint64_t bytes) {
        if (bytes > bytes_.size()) good_ = false;
        if (!good_) return;
        bytes_ = bytes_.subspan(bytes);
        address_ += bytes;
    }
    // LEB128.
    std::uint64_t variable(bool is_signed = false) {
        std::uint64_t value = 0;
        for (unsigned shift = 0; good_; shift += 7) {
            const std::uint64_t byte = number(1);
            if (shift < 64) value |= (byte & 0x7f) << shift;
            if (byte & 0x80) continue;
            if (is_signed && byte & 0x40 && shift + 7 < 64)
                value |= ~std::uint64_t{0} << (shift + 7);
            break;
        }
        return value;
    }
    // 0 stays 0 in each encoding.
    std::uint64_t pointer(unsigned encoding, std::uint64_t index = 0) {
        if (encoding == kOmitted) return 0;
        const std::uint64_t own = address_;
        std::uint64_t value = 0;
        switch (encoding & kFormat) {
            case 0x0:
                value = number(word_bytes_);
                break;
            case 0x1:
                value = variable();
                break;
            case 0x2:
                value = number(2);
                break;
            case 0x3:
                value = number(4);
                break;
            case 0x4:
            case 0xc:
                value = number(8);
                break;
            case 0x9:
                value = variable(true);
                break;
            case 0xa:
                value = static_cast<std::uint64_t>(static_cast<std::int16_t>(number(2)));
                break;
            case 0xb:
                value = static_cast<std::uint64_t>(static_cast<std::int32_t>(number(4)));
                break;
            default:
                good_ = false;
        }
        if (value == 0 || encoding & kIndirect) return 0;
        if ((encoding & kRelation) == kToItself) value += own;
        if ((encoding & kRelation) == kToIndex) value += index;
        return word_bytes_ == 4 ? value & UINT32_MAX : value;
    }
    std::string_view text() {
        const auto end = std::find(bytes_.begin(), bytes_.end(), 0);
        const auto length = static_cast<std::size_t>(end - bytes_.begin());
        const std::string_view found(reinterpret_cast<const char*>(bytes_.data()), length);
        skip(length + 1);
        return good_ ? found : std::string_view();
    }
    // The next bytes; this cursor goes on after them.
    Cursor part(std::uint64_t bytes) {
        Cursor part(bytes_.first(std::min<std::uint64_t>(bytes, bytes_.size())), address_,
                    word_bytes_);
        skip(bytes);
        part.good_ = good_;
        return part;
    }

  private:
    std::span<const std::uint8_t> bytes_;
    std::uint64_t address_;
    unsigned word_bytes_;
    bool good_ = true;
};

LandingPads::LandingPads(std::span<const std::uint8_t> file) : file_(file) {
    if (file.size() < EI_NIDENT || file[EI_DATA] != ELFDATA2LSB) return;
    word_bytes_ = file[EI_CLASS] == ELFCLASS64 ? 8 : 4;
    const std::uint64_t index = word_bytes_ == 8 ? read_segments<Elf64_Ehdr, Elf64_Phdr>()
                                                 : read_segments<Elf32_Ehdr, Elf32_Phdr>();
    if (index == 0) return;
    if (const std::uint64_t frames = frames_of(index)) read_frames(frames);
    file_ = {};
}

std::span<const CodeRange> LandingPads::calls(std::uint64_t address) const {
    const auto found = calls_.find(address);
    if (found == calls_.end()) return {};
    return found->second;
}

std::uint64_t LandingPads::code_at(std::uint64_t offset) const {
    for (const Segment& segment : segments_)
        if (segment.has_code && offset >= segment.offset && offset - segment.offset < segment.bytes)
            return segment.address + (offset - segment.offset);
    return 0;
}

// Returns the address of the index of .eh_frame, or 0.
template <typename Header, typename Row>
std::uint64_t LandingPads::read_segments() {
    Header header;
    if (file_.size() < sizeof header) return 0;
    std::memcpy(&header, file_.data(), sizeof header);
    std::uint64_t index = 0;
    for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
        Row row;
        const std::uint64_t at = header.e_phoff + i * sizeof row;
        if (at > file_.size() || file_.size() - at < sizeof row) return 0;
        std::memcpy(&row, file_.data() + at, sizeof row);
        if (row.p_type == PT_GNU_EH_FRAME) index = row.p_vaddr;
        if (row.p_type != PT_LOAD || row.p_offset > file_.size()) continue;
        // Mappings begin at whole pages.
        constexpr std::uint64_t kPage = 4096;
        const std::uint64_t before = row.p_offset % kPage;
        segments_.push_back(
            {row.p_vaddr - before, row.p_offset - before,
             std::min<std::uint64_t>(row.p_filesz, file_.size() - row.p_offset) + before,
             (row.p_flags & PF_X) != 0});
    }
    return index;
}

// The bytes of the file from an address to the end of its segment.
std::span<const std::uint8_t> LandingPads::from(std::uint64_t address) const {
    // Segments can share a page, whose bytes belong to the one that does not only reach to it.
    for (auto segment = segments_.rbegin(); segment != segments_.rend(); ++segment)
        if (address >= segment->address && address - segment->address < segment->bytes)
            return file_.subspan(segment->offset + (address - segment->address),
                                 segment->bytes - (address - segment->address));
    return {};
}

std::uint64_t LandingPads::frames_of(std::uint64_t index) const {
    Cursor at(from(index), index, word_bytes_);
    if (at.number(1) != 1) return 0;
    const auto encoding = static_cast<unsigned>(at.number(1));
    at.skip(2);
    return at.pointer(encoding, index);
}

// Descriptions that functions share, and functions, which refer to the former.
void LandingPads::read_frames(std::uint64_t frames) {
    constexpr std::uint64_t kLong = 0xffffffff;
    std::unordered_map<std::uint64_t, Description> descriptions;
    Cursor all(from(frames), frames, word_bytes_);
    for (;;) {
        const std::uint64_t bytes = all.number(4);
        if (!all.good() || bytes == 0 || bytes == kLong) return;
        Cursor entry = all.part(bytes);
        const std::uint64_t place = entry.address();
        const std::uint64_t distance = entry.number(4);
        if (distance == 0) continue;
        const auto [known, is_new] = descriptions.try_emplace(place - distance);
        if (is_new) known->second = description_at(place - distance);
        if (known->second.known) read_function(entry, known->second);
    }
}

LandingPads::Description LandingPads::description_at(std::uint64_t address) const {
    Cursor all(from(address), address, word_bytes_);
    Cursor at = all.part(all.number(4));
    Description found;
    if (at.number(4) != 0) return found;
    const std::uint64_t version = at.number(1);
    const std::string_view augmentation = at.text();
    if (version == 4) at.skip(2);
    at.variable();
    at.variable();
    if (version == 1)
        at.skip(1);
    else
        at.variable();
    for (const char letter : augmentation) {
        if (letter == 'z') {
            found.has_sizes = true;
            at.variable();
        } else if (letter == 'L') {
            found.tables = static_cast<unsigned>(at.number(1));
        } else if (letter == 'R') {
            found.pointers = static_cast<unsigned>(at.number(1));
        } else if (letter == 'P') {
            const auto encoding = static_cast<unsigned>(at.number(1));
            at.pointer(encoding);
        } else if (letter != 'S' && letter != 'B' && letter != 'G') {
            return found;
        }
    }
    found.known = at.good();
    return found;
}

void LandingPads::read_function(Cursor& at, const Description& description) {
    const std::uint64_t begin = at.pointer(description.pointers);
    at.pointer(description.pointers & kFormat);
    if (!description.has_sizes || description.tables == kOmitted) return;
    at.variable();
    const std::uint64_t table = at.pointer(description.tables);
    if (at.good() && table != 0) read_pads(table, begin);
}

// The head of the table, and the calls in the order of the code.
void LandingPads::read_pads(std::uint64_t table, std::uint64_t function) {
    Cursor at(from(table), table, word_bytes_);
    const auto encoding_of_begin = static_cast<unsigned>(at.number(1));
    const std::uint64_t begin =
        encoding_of_begin == kOmitted ? function : at.pointer(encoding_of_begin);
    if (at.number(1) != kOmitted) at.variable();
    const auto encoding = static_cast<unsigned>(at.number(1)) & kFormat;
    Cursor calls = at.part(at.variable());
    const std::uint64_t end = at.address();
    while (calls.good() && calls.address() < end) {
        const std::uint64_t first = function + calls.pointer(encoding);
        const std::uint64_t bytes = calls.pointer(encoding);
        const std::uint64_t pad = calls.pointer(encoding);
        calls.variable();
        if (calls.good() && pad != 0) calls_[begin + pad].push_back({first, first + bytes});
    }
}

void MappedLandingPads::map(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                            const std::string& path) {
    mappings_.insert_or_assign(start, Mapping{end, offset, path});
}

std::vector<CodeRange> MappedLandingPads::calls(std::uint64_t address) {
    const auto after = mappings_.upper_bound(address);
    if (after == mappings_.begin()) return {};
    const auto& [start, mapping] = *std::prev(after);
    if (address >= mapping.end) return {};
    auto file = files_.find(mapping.path);
    if (file == files_.end())
        file = files_.emplace(mapping.path, landing_pads_of(mapping.path)).first;
    const std::uint64_t in_file = file->second.code_at(address - start + mapping.offset);
    std::vector<CodeRange> calls;
    for (const CodeRange& range : file->second.calls(in_file))
        calls.push_back({range.begin - in_file + address, range.end - in_file + address});
    return calls;
}

}  // namespace assay::qemu
