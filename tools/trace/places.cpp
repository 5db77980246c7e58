#include "tools/trace/places.h"

#include "framework/collector/trace/address_map.h"
#include "framework/support/descriptor.h"
#include "framework/support/text.h"
#include "framework/symbols/elf_file.h"
#include "framework/trace/segment_layout.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

namespace assay::tracing {
namespace {

struct Mapped {
    trace::MappedEvent event;
    std::string_view path;
};

std::vector<Mapped> mapped_events(const std::vector<std::byte>& log) {
    std::vector<Mapped> found;
    for (std::size_t at = 0; at + sizeof(trace::EventHeader) <= log.size();) {
        trace::EventHeader header;
        std::memcpy(&header, log.data() + at, sizeof header);
        at += sizeof header;
        if (header.bytes > log.size() - at) break;
        Mapped mapped{};
        if (header.type == trace::EventType::kMapped && header.bytes >= sizeof mapped.event) {
            std::memcpy(&mapped.event, log.data() + at, sizeof mapped.event);
            mapped.path = {reinterpret_cast<const char*>(log.data()) + at + sizeof mapped.event,
                           header.bytes - sizeof mapped.event};
            if (mapped.event.start < mapped.event.end) found.push_back(mapped);
        }
        at += (header.bytes + std::size_t{7}) & ~std::size_t{7};
    }
    return found;
}

}  // namespace

// A block belongs to the mapping that was the latest at its address when the block was translated.
Places::Places(const replay::ImageTrace& image, symbols::Symbolizer& symbolizer)
    : places_(image.instrs().size(), Place{"", "???", "???", 0}) {
    const std::vector<Mapped> mapped = mapped_events(image.events());
    collector::AddressMap map;
    std::map<std::string, std::vector<Wanted>> by_path;
    auto next = mapped.begin();
    for (std::uint32_t b = 0; b < image.blocks().size(); ++b) {
        for (; next != mapped.end() && next->event.first_block <= b; ++next)
            map.map(next->event.start, next->event.end, next->event.offset, next->path);
        const trace_block_t& block = image.blocks()[b];
        for (std::uint32_t i = 0; i < block.instr_count; ++i) {
            const std::uint32_t instr = block.first_instr + i;
            const std::uint64_t pc = image.instrs()[instr].pc;
            const std::uint32_t index = map.find(pc);
            if (index == collector::kNoMapping) continue;
            const collector::Mapping& mapping = map.mappings()[index];
            by_path[*mapping.path].push_back({pc - mapping.start + mapping.offset, 0, instr});
        }
    }
    paths_.reserve(by_path.size());
    for (auto& [path, wanted] : by_path) resolve(image, path, wanted, symbolizer);
}

// Compares the code's bytes to decide whether the file is still the recorded one. The vDSO has no
// file.
void Places::resolve(const replay::ImageTrace& image, const std::string& path,
                     std::vector<Wanted>& wanted, symbols::Symbolizer& symbolizer) {
    const std::string_view object = paths_.emplace_back(path);
    for (const Wanted& each : wanted) places_[each.instr].object = object;
    if (path != symbols::kVdsoPath) {
        const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
        if (file.number() < 0) {
            problems_.push_back(fmt::format("{}: {}; its functions and lines are not shown", path,
                                            system_reason(errno)));
            return;
        }
        const bool same = std::all_of(wanted.begin(), wanted.end(), [&](const Wanted& each) {
            const trace_instr_t& instr = image.instrs()[each.instr];
            std::uint8_t now[sizeof instr.bytes];
            return pread(file.number(), now, instr.length, static_cast<off_t>(each.file_offset)) ==
                       instr.length &&
                   std::memcmp(now, instr.bytes, instr.length) == 0;
        });
        if (!same) {
            problems_.push_back(
                fmt::format("the code of {} has changed since the trace was recorded; its "
                            "functions and lines are not shown",
                            path));
            return;
        }
    }
    for (Wanted& each : wanted) each.address = symbolizer.address_of_offset(path, each.file_offset);
    std::sort(wanted.begin(), wanted.end(),
              [](const Wanted& a, const Wanted& b) { return a.address < b.address; });
    std::vector<std::uint64_t> addresses(wanted.size());
    std::transform(wanted.begin(), wanted.end(), addresses.begin(),
                   [](const Wanted& each) { return each.address; });
    const std::vector<symbols::Location> locations = symbolizer.resolve(path, addresses);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const symbols::Frame& frame = locations[i].frames.front();
        places_[wanted[i].instr] = {object, frame.function, frame.file, frame.line};
    }
}

}  // namespace assay::tracing
