#include "framework/driver/qemu/guest_image.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>
#include <algorithm>

namespace assay::qemu {
namespace {

template <typename Type>
bool read_row(int descriptor, std::uint64_t offset, Type& into) {
    return pread(descriptor, &into, sizeof into, static_cast<off_t>(offset)) == sizeof into;
}

}  // namespace

GuestImage::GuestImage(const std::string& path)
    : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) return;
    architecture_ = isa::architecture_of(isa::kind_of_file(descriptor_));
    if (architecture_ == nullptr) return;
    if (architecture_->elf.word_class == ELFCLASS64)
        read<Elf64_Ehdr, Elf64_Phdr>();
    else
        read<Elf32_Ehdr, Elf32_Phdr>();
}

GuestImage::~GuestImage() {
    if (descriptor_ >= 0) close(descriptor_);
}

template <typename Header, typename Segment>
void GuestImage::read() {
    Header header{};
    if (!read_row(descriptor_, 0, header)) return;
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        Segment segment;
        if (!read_row(descriptor_, header.e_phoff + i * sizeof segment, segment)) return;
        if (segment.p_type == PT_LOAD && segment.p_filesz != 0)
            parts_.push_back({segment.p_vaddr, std::uint64_t{segment.p_vaddr} + segment.p_filesz,
                              segment.p_offset});
    }
    if (architecture_->elf.microcontroller) read_vectors();
}

bool GuestImage::is_kernel() const {
    return std::any_of(parts_.begin(), parts_.end(),
                       [](const Part& part) { return part.start >> 63 != 0; });
}

bool GuestImage::has(std::uint64_t pc, std::span<const std::uint8_t> code) const {
    const auto part = std::find_if(parts_.begin(), parts_.end(), [&](const Part& each) {
        return pc >= each.start && pc < each.end && code.size() <= each.end - pc;
    });
    if (part == parts_.end()) return false;
    std::vector<std::uint8_t> bytes(code.size());
    return pread(descriptor_, bytes.data(), bytes.size(),
                 static_cast<off_t>(part->offset + (pc - part->start))) ==
               static_cast<ssize_t>(bytes.size()) &&
           std::equal(bytes.begin(), bytes.end(), code.begin());
}

bool GuestImage::contains(std::uint64_t address) const {
    return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
        return address >= part.start && address < part.end;
    });
}

// A part of the file begins with the table: the stack pointer, the address of the first
// instruction, then those of the handlers (Arm v7-M Architecture Reference Manual, B1.5.3). The
// lowest bit of each address is set.
void GuestImage::read_vectors() {
    constexpr std::uint32_t kMostVectors = 512;
    for (const Part& part : parts_) {
        std::uint32_t words[2];
        if (!read_row(descriptor_, part.offset, words) || words[0] % sizeof words[0] != 0 ||
            !(words[1] & 1) || !contains(words[1]))
            continue;
        for (std::uint32_t i = 2; i < kMostVectors && part.start + i * 4 < part.end; ++i) {
            std::uint32_t vector = 0;
            if (!read_row(descriptor_, part.offset + i * 4, vector)) return;
            if (vector == 0) continue;
            if (!(vector & 1) || !contains(vector)) return;
            handlers_.push_back(vector & ~1U);
        }
        return;
    }
}

void GuestImage::announce(GuestCode& code) const {
    for (const Part& part : parts_) code.mapped(part.start, part.end, part.offset, path_);
    for (const std::uint64_t handler : handlers_) code.note_handler(handler);
    code.set_machine(is_kernel());
}

}  // namespace assay::qemu
