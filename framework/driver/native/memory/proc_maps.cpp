#include "framework/driver/native/memory/proc_maps.h"

#include "framework/driver/native/memory/own_memory.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <utility>

namespace assay::native {
namespace {

bool is_kernel_name(std::string_view name) {
    return name == "[heap]" || name == "[stack]";
}

// The kernel's names: include/linux/mm.h, vma_is_initial_heap and vma_is_initial_stack.
std::string name_of(const Mapping& mapping, const ProgramRanges& ranges) {
    if (!mapping.name.empty() && !is_kernel_name(mapping.name)) return mapping.name;
    if (mapping.start < ranges.heap_end && ranges.heap_start < mapping.end) return "[heap]";
    if (mapping.start < ranges.stack_end && ranges.stack_end <= mapping.end) return "[stack]";
    return "";
}

// Sets the name and permissions that the program has given to its mapping.
void show_as_program(Mapping& mapping, const MemoryMap& memory, const ProgramRanges& ranges) {
    mapping.name = name_of(mapping, ranges);
    // The driver removes the permission to write to code or to execute it (code_watch.h).
    const Region* region = memory.find(mapping.start);
    if (region == nullptr) return;
    if (region->writable) mapping.permissions[1] = 'w';
    if (region->executable) mapping.permissions[2] = 'x';
}

bool continues(const Mapping& before, const Mapping& next) {
    const std::uint64_t offset = next.inode == 0 ? next.offset : next.offset - next.start;
    const std::uint64_t offset_before =
        before.inode == 0 ? before.offset : before.offset - before.start;
    return before.end == next.start && before.permissions == next.permissions &&
           before.device == next.device && before.inode == next.inode && before.name == next.name &&
           offset == offset_before;
}

// True if the driver may have divided a mapping that the program sees as one.
bool is_one_region(const Mapping& before, const Mapping& next, const MemoryMap& memory) {
    const Region* region = memory.find(before.start);
    return region != nullptr && region->writable && region->end > next.start;
}

}  // namespace

std::vector<Mapping> own_mappings() {
    std::vector<Mapping> mappings;
    const std::string maps = read_file("/proc/self/maps");
    for (std::string_view text = maps; !text.empty();) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (std::optional<Mapping> mapping = parse_mapping(line))
            mappings.push_back(std::move(*mapping));
    }
    return mappings;
}

std::vector<Mapping> parts_of_program(const Mapping& mapping, const MemoryMap& memory,
                                      const ProgramRanges& ranges) {
    std::vector<Mapping> parts;
    for (const Range& own : without_own_memory({mapping.start, mapping.end})) {
        // The kernel joins protected code pages with neighbouring read-only pages.
        const std::size_t first = parts.size();
        for (std::uint64_t start = own.start; start < own.end;) {
            Mapping part = mapping;
            part.start = start;
            part.end = start = std::min(own.end, memory.end_of_part(start));
            if (mapping.inode != 0) part.offset += part.start - mapping.start;
            show_as_program(part, memory, ranges);
            if (parts.size() > first && continues(parts.back(), part))
                parts.back().end = part.end;
            else
                parts.push_back(part);
        }
    }
    return parts;
}

std::optional<Mapping> parse_mapping(std::string_view line) {
    const std::string text(line);
    Mapping mapping;
    std::array<char, 8> permissions{};
    std::array<char, 16> device{};
    int name = 0;
    if (std::sscanf(text.c_str(), "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %15s %" SCNu64 " %n",
                    &mapping.start, &mapping.end, permissions.data(), &mapping.offset,
                    device.data(), &mapping.inode, &name) != 6)
        return {};
    mapping.permissions = permissions.data();
    mapping.device = device.data();
    mapping.name = text.substr(static_cast<std::size_t>(name));
    return mapping;
}

// Same format as fs/proc/task_mmu.c, show_vma_header_prefix.
std::string to_line(const Mapping& mapping) {
    constexpr std::size_t kNameColumn = 73;
    std::array<char, 128> prefix{};
    std::snprintf(prefix.data(), prefix.size(),
                  "%08" PRIx64 "-%08" PRIx64 " %s %08" PRIx64 " %s %" PRIu64 " ", mapping.start,
                  mapping.end, mapping.permissions.c_str(), mapping.offset, mapping.device.c_str(),
                  mapping.inode);
    std::string line = prefix.data();
    if (!mapping.name.empty() && line.size() < kNameColumn) line.resize(kNameColumn, ' ');
    return line + mapping.name + "\n";
}

std::string maps_of_program(std::string_view text, const MemoryMap& memory,
                            const ProgramRanges& ranges) {
    std::string out, details;
    std::optional<Mapping> mapping;
    std::vector<Mapping> parts;  // not written yet
    const auto write = [&] {
        for (const Mapping& part : parts) out += to_line(part) + details;
        parts.clear();
        details.clear();
    };
    const auto finish = [&] {
        if (!mapping) return;
        for (const Mapping& part : parts_of_program(*mapping, memory, ranges)) {
            // The details of smaps cannot be joined.
            const bool joins = details.empty() && !parts.empty() && continues(parts.back(), part) &&
                               is_one_region(parts.back(), part, memory);
            if (joins)
                parts.back().end = part.end;
            else
                parts.push_back(part);
        }
        if (!details.empty()) write();
    };
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (std::optional<Mapping> next = parse_mapping(line)) {
            finish();
            mapping = std::move(next);
        } else {
            details.append(line).push_back('\n');
        }
    }
    finish();
    write();
    return out;
}

}  // namespace assay::native
