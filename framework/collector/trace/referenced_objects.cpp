#include "framework/collector/trace/referenced_objects.h"

#include <algorithm>
#include <utility>

namespace assay::collector {

inline bool ReferencedObjects::holds(const Last& last, std::uint64_t address,
                                     const Place& place) const {
    using Holds = Last::Holds;
    std::uint64_t start = last.start;
    if (last.holds == Holds::kInFrame) {
        if (place.frames.empty()) return false;
        start += place.frames.back().address;
    }
    if (address - start >= last.bytes || last.thread != place.thread) return false;
    return last.holds == Holds::kInFrame ||
           (last.holds == Holds::kForVersion && *last.version == last.valid_version) ||
           (last.holds == Holds::kForFrames && last.changes == stacks_.changes());
}

std::span<const std::uint32_t> ReferencedObjects::follow(const Source& source,
                                                         std::span<const trace_record_t> records,
                                                         const CodeTables& code) {
    const std::uint32_t thread = source.thread;
    memory_.available(source.entries);
    result_.resize(records.size());
    if (last_.size() < code.sites.size()) last_.resize(code.sites.size());
    const auto take = [&](std::size_t i, std::uint32_t calls,
                          std::span<const ShadowStacks::Frame> frames) {
        const std::uint32_t context = keeps_contexts_ ? calls : 0;
        result_[i] = context;
        const trace_site_t& site = code.sites[records[i].site];
        switch (site.kind) {
            case TRACE_SITE_READ:
            case TRACE_SITE_WRITE:
            case TRACE_SITE_MODIFY:
                result_[i] = refer(
                    records[i], {thread, context, records_ + i, &code.instrs[site.instr], frames});
                break;
            case TRACE_SITE_COUNT:
                result_[i] = tree_.variant(context, kAsReferences);
                break;
            case TRACE_SITE_ALLOCATION:
                memory_.mark(thread, records[i], calls, records_ + i);
                break;
            default:
                break;
        }
    };
    stacks_.follow(thread, records, code, take);
    records_ += records.size();
    if (source.time != 0) memory_.times().note(records_, source.time);
    return result_;
}

std::uint32_t ReferencedObjects::find(Last& last, std::uint64_t address, const Place& place) {
    last.thread = place.thread;
    const MemoryObjects::Found found = memory_.find(place.thread, address);
    if (memory_.objects()[found.object].kind == DataObject::Kind::kStack)
        return find_on_stack(last, address, place, found.object);
    last.holds = Last::Holds::kForVersion;
    last.block = found.block;
    last.start = found.start;
    last.bytes = found.end - found.start;
    last.version = found.version;
    last.valid_version = found.valid_version;
    return found.object;
}

// Looks in the first frame above the address.
std::uint32_t ReferencedObjects::find_on_stack(Last& last, std::uint64_t address,
                                               const Place& place, std::uint32_t stack) {
    last.holds = Last::Holds::kForFrames;
    last.block = HeapBlocks::kNone;
    last.changes = stacks_.changes();
    last.start = address;
    last.bytes = 1;
    const auto behind = std::partition_point(
        place.frames.begin(), place.frames.end(),
        [&](const ShadowStacks::Frame& frame) { return frame.address > address; });
    if (behind == place.frames.begin()) return stack;
    const std::uint64_t frame = (behind - 1)->address;
    const bool innermost = behind == place.frames.end();
    const MemoryObjects::InFrame found =
        memory_.find_in_frame(stack, innermost ? place.instr->pc : behind->call,
                              static_cast<std::int64_t>(address - frame));
    if (innermost) last.holds = Last::Holds::kInFrame;
    last.start = static_cast<std::uint64_t>(found.start) + (innermost ? 0 : frame);
    last.bytes = static_cast<std::uint64_t>(found.end - found.start);
    return found.object;
}

std::uint32_t ReferencedObjects::refer(const trace_record_t& record, const Place& place) {
    Last& last = last_[record.site];
    if (!holds(last, record.value, place)) {
        const std::uint32_t object = find(last, record.value, place);
        if (last.context == UINT32_MAX || last.object != object) {
            last.object = object;
            last.context = UINT32_MAX;
            const std::uint64_t key = std::uint64_t{record.site} << 32 | object;
            const auto [count, is_new] =
                count_of_.try_emplace(key, static_cast<std::uint32_t>(counts_.size()));
            if (is_new) counts_.push_back({record.site, object, 0});
            if (last.references != 0)
                counts_[last.count].references += std::exchange(last.references, 0);
            last.count = count->second;
        }
    }
    if (last.context != place.context) {
        last.context = place.context;
        last.variant = tree_.variant(place.context, last.object);
    }
    ++last.references;
    if (last.block != HeapBlocks::kNone) memory_.touch(last.block, place.record);
    return last.variant;
}

const trace_data_object_t* ReferencedObjects::of_context(std::uint32_t context) const {
    return tell(tree_.origin(context).object);
}

const trace_data_object_t* ReferencedObjects::last_at(std::uint64_t address,
                                                      std::uint64_t& offset) {
    const MemoryObjects::Last last = memory_.last_at(address);
    offset = address - last.start;
    return last.object == DataObjects::kUnknown ? nullptr : tell(last.object);
}

const trace_data_object_t* ReferencedObjects::tell(std::uint32_t variant) const {
    static_assert(static_cast<int>(DataObject::Kind::kFrameVariable) == TRACE_DATA_FRAME);
    if (variant >= memory_.objects().size()) return nullptr;
    const std::uint32_t number = memory_.final_number(variant);
    const DataObject& object = memory_.objects()[number];
    const char* name = "";
    if (object.symbol != nullptr) name = object.symbol->name.c_str();
    if (object.kind == DataObject::Kind::kFrameVariable) name = object.name.data();
    if (object.kind == DataObject::Kind::kFile) name = memory_.path(object.file).c_str();
    told_ = {.size = sizeof told_,
             .number = number,
             .kind = static_cast<std::uint32_t>(object.kind),
             .context = object.context,
             .thread = object.thread,
             .reserved = 0,
             .bytes = object.size,
             .blocks = object.blocks,
             .name = name};
    return &told_;
}

std::vector<ReferencedObjects::Count> ReferencedObjects::counts() const {
    std::vector<Count> counts = counts_;
    for (const Last& last : last_)
        if (last.references != 0) counts[last.count].references += last.references;
    for (Count& count : counts) count.object = memory_.final_number(count.object);
    const auto key = [](const Count& count) {
        return std::uint64_t{count.site} << 32 | count.object;
    };
    std::sort(counts.begin(), counts.end(),
              [&](const Count& a, const Count& b) { return key(a) < key(b); });
    auto to = counts.begin();
    for (const Count& count : counts) {
        if (to != counts.begin() && key(*(to - 1)) == key(count))
            (to - 1)->references += count.references;
        else
            *to++ = count;
    }
    counts.erase(to, counts.end());
    return counts;
}

}  // namespace assay::collector
