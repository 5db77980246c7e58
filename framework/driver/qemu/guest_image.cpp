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

GuestImage::GuestImage(const std::string& path) : path_(path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return;
    architecture_ = isa::architecture_of(isa::kind_of_file(descriptor));
    if (architecture_ != nullptr) {
        if (architecture_->elf.word_class == ELFCLASS64)
            read<Elf64_Ehdr, Elf64_Phdr>(descriptor);
        else
            read<Elf32_Ehdr, Elf32_Phdr>(descriptor);
    }
    close(descriptor);
}

template <typename Header, typename Segment>
void GuestImage::read(int descriptor) {
    Header header{};
    if (!read_row(descriptor, 0, header)) return;
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        Segment segment;
        if (!read_row(descriptor, header.e_phoff + i * sizeof segment, segment)) return;
        if (segment.p_type == PT_LOAD && segment.p_filesz != 0)
            parts_.push_back({segment.p_vaddr, std::uint64_t{segment.p_vaddr} + segment.p_filesz,
                              segment.p_offset});
    }
    if (architecture_->elf.microcontroller) read_vectors(descriptor);
}

bool GuestImage::contains(std::uint64_t address) const {
    return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
        return address >= part.start && address < part.end;
    });
}

// A part of the file begins with the table: the stack pointer, the address of the first
// instruction, then those of the handlers (Arm v7-M Architecture Reference Manual, B1.5.3). The
// lowest bit of each address is set.
void GuestImage::read_vectors(int descriptor) {
    constexpr std::uint32_t kMostVectors = 512;
    for (const Part& part : parts_) {
        std::uint32_t words[2];
        if (!read_row(descriptor, part.offset, words) || words[0] % sizeof words[0] != 0 ||
            !(words[1] & 1) || !contains(words[1]))
            continue;
        for (std::uint32_t i = 2; i < kMostVectors && part.start + i * 4 < part.end; ++i) {
            std::uint32_t vector = 0;
            if (!read_row(descriptor, part.offset + i * 4, vector)) return;
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
}

}  // namespace assay::qemu
