#include "framework/driver/native/load/elf_functions.h"

#include "framework/driver/native/machine/own_descriptors.h"
#include "framework/driver/native/memory/address_space.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace assay::native {

OpenFile::OpenFile(const std::string& path)
    : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ >= 0) descriptor_ = own_descriptor(descriptor_);
}

OpenFile::~OpenFile() {
    if (descriptor_ >= 0) close_own_descriptor(descriptor_);
}

void for_each_function(const std::string& path,
                       const std::function<void(const char* symbol, std::uint64_t offset)>& visit) {
    driver::for_each_function(OpenFile(path).descriptor(), visit);
}

namespace {

// Moves all of `parts` by `distance`, or none of them. The kernel moves only whole parts
// (arch/x86/entry/vdso/vma.c, vdso_mremap()), and refuses if they are sealed (mseal(2)).
bool move_all(const std::vector<Range>& parts, std::uint64_t distance) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Range& part = parts[i];
        const std::uint64_t bytes = part.end - part.start;
        if (mremap(reinterpret_cast<void*>(part.start), bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                   reinterpret_cast<void*>(part.start + distance)) != MAP_FAILED)
            continue;
        std::vector<Range> moved(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i));
        for (Range& back : moved) back = {back.start + distance, back.end + distance};
        move_all(moved, -distance);
        return false;
    }
    return true;
}

}  // namespace

std::uint64_t move_vdso(const std::vector<Mapping>& mappings) {
    const std::uint64_t code = getauxval(AT_SYSINFO_EHDR);
    if (code == 0 || !chooses_addresses()) return code;
    // The code finds the data at a fixed distance, so both move together.
    std::vector<Range> parts;
    for (const Mapping& mapping : mappings)
        if (mapping.name == "[vdso]" || mapping.name.starts_with("[vvar"))
            parts.push_back({mapping.start, mapping.end});
    if (parts.empty()) return code;
    const std::uint64_t distance = kVdsoAddress - code;
    const std::uint64_t bytes = parts.back().end - parts.front().start;
    void* const wanted = reinterpret_cast<void*>(parts.front().start + distance);
    void* const room =
        mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (room == MAP_FAILED) return code;
    if (move_all(parts, distance)) return kVdsoAddress;
    munmap(room, bytes);
    return code;
}

}  // namespace assay::native
