#include "framework/driver/native/memory/proc_maps.h"

#include "framework/driver/native/memory/own_memory.h"
#include "framework/driver/native/memory/read_file.h"

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

// As the kernel names them: include/linux/mm.h, vma_is_initial_heap and vma_is_initial_stack.
std::string name_of(const Mapping& mapping, const ProgramRanges& ranges) {
    if (!mapping.name.empty() && !is_kernel_name(mapping.name)) return mapping.name;
    if (mapping.start < ranges.heap_end && ranges.heap_start < mapping.end) return "[heap]";
    if (mapping.start < ranges.stack_end && ranges.stack_end <= mapping.end) return "[stack]";
    return "";
}

// `lines`: what smaps says of the mapping.
void append_parts(const Mapping& mapping, std::string_view lines, const MemoryMap& memory,
                  const ProgramRanges& ranges, std::string& out) {
    for (const Range& part : without_own_memory({mapping.start, mapping.end})) {
        Mapping shown = mapping;
        shown.start = part.start;
        shown.end = part.end;
        if (mapping.inode != 0) shown.offset += part.start - mapping.start;
        show_as_program(shown, memory, ranges);
        out += to_line(shown);
        out += lines;
    }
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

void show_as_program(Mapping& mapping, const MemoryMap& memory, const ProgramRanges& ranges) {
    mapping.name = name_of(mapping, ranges);
    // The driver takes away the permission to write to code, or to execute it in place
    // (code_watch.h).
    const Region* region = memory.find(mapping.start);
    if (region == nullptr) return;
    if (region->writable) mapping.permissions[1] = 'w';
    if (region->executable) mapping.permissions[2] = 'x';
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

// fs/proc/task_mmu.c, show_vma_header_prefix.
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
    const auto finish = [&] {
        if (mapping) append_parts(*mapping, details, memory, ranges, out);
        details.clear();
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
    return out;
}

}  // namespace assay::native
