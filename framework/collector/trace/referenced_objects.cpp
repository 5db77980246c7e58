#include "framework/collector/trace/referenced_objects.h"

#include "framework/trace/object_sites.h"

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
           (last.holds == Holds::kForFrames && last.changes == stacks_.changes()) ||
           (last.holds == Holds::kBelowFrame && last.valid_version < place.frames.size() &&
            place.frames[last.valid_version].serial == last.serial);
}

void ReferencedObjects::learn(const CodeTables& code) {
    const std::size_t known = last_.size();
    if (known >= code.sites.size()) return;
    last_.resize(code.sites.size());
    for (std::size_t site = known; site < last_.size(); ++site)
        last_[site].has_own_records = code.sites[site].kind == TRACE_SITE_OBJECT;
}

ReferencedObjects::Followed ReferencedObjects::follow(const Source& source,
                                                      std::span<const trace_record_t> records,
                                                      const CodeTables& code,
                                                      std::vector<trace_marker_t>& markers) {
    const std::uint32_t thread = source.thread;
    memory_.available(source.entries);
    learn(code);
    result_.resize(records.size());
    if (has_own_records_) records_for_profilers_.resize(records.size());
    std::size_t kept = 0;
    auto marker = markers.begin();
    const auto take_object = [&](std::size_t i, std::span<const ShadowStacks::Frame> frames) {
        constexpr std::size_t kAhead = 8;
        if (!has_own_records_) return false;
        if (i + kAhead < records.size()) __builtin_prefetch(&last_[records[i + kAhead].site], 1);
        Last& last = last_[records[i].site];
        if (!last.has_own_records) return false;
        if (records[i].aux & trace::kEndsObjectRun) {
            end_run(last, records[i]);
            return true;
        }
        count(last, records[i], {thread, 0, records_ + i, code, frames});
        return true;
    };
    const auto take = [&](std::size_t i, std::uint32_t calls,
                          std::span<const ShadowStacks::Frame> frames) {
        const std::uint32_t context = keeps_contexts_ ? calls : 0;
        std::uint32_t result = context;
        const trace_site_t& site = code.sites[records[i].site];
        const Place place{thread, context, records_ + i, code, frames};
        switch (site.kind) {
            case TRACE_SITE_READ:
            case TRACE_SITE_WRITE:
            case TRACE_SITE_MODIFY:
                result = refer(records[i], place);
                break;
            case TRACE_SITE_COUNT:
                result = tree_.variant(context, kAsReferences);
                break;
            case TRACE_SITE_ALLOCATION:
                memory_.mark(thread, records[i], calls, records_ + i);
                break;
            case TRACE_SITE_CALL:
            case TRACE_SITE_TARGET:
            case TRACE_SITE_RETURN:
            case TRACE_SITE_STACK:
                if (has_own_records_ && !calls_wanted_) return;
                break;
            default:
                break;
        }
        if (has_own_records_) {
            for (; marker != markers.end() && marker->record <= i; ++marker)
                marker->record = static_cast<std::uint32_t>(kept);
            records_for_profilers_[kept] = records[i];
        }
        result_[kept++] = result;
    };
    stacks_.follow(thread, records, code, take_object, take);
    if (has_own_records_)
        for (; marker != markers.end(); ++marker) marker->record = static_cast<std::uint32_t>(kept);
    records_ += records.size();
    if (source.time != 0) memory_.times().note(records_, source.time);
    const std::span<const trace_record_t> for_profilers =
        has_own_records_ ? std::span<const trace_record_t>(records_for_profilers_) : records;
    return {for_profilers.first(kept), std::span<const std::uint32_t>(result_).first(kept)};
}

std::uint32_t ReferencedObjects::find(Last& last, std::uint64_t address, const Place& place,
                                      std::uint64_t pc) {
    last.thread = place.thread;
    const FoundObject found = memory_.find(place.thread, address);
    if (memory_.objects()[found.object].kind == DataObject::Kind::kStack &&
        memory_.areas().has_frame_variables())
        return find_on_stack(last, address, place, pc, found.object);
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
                                               const Place& place, std::uint64_t pc,
                                               std::uint32_t stack) {
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
    const MemoryAreas::InFrame found = memory_.areas().find_in_frame(
        stack, innermost ? pc : behind->call, static_cast<std::int64_t>(address - frame));
    last.start = static_cast<std::uint64_t>(found.start) + (innermost ? 0 : frame);
    last.bytes = static_cast<std::uint64_t>(found.end - found.start);
    if (innermost) {
        last.holds = Last::Holds::kInFrame;
        return found.object;
    }
    // The next frame's variables count in the part of the range that lies there.
    const std::uint64_t next = behind->address;
    if (last.start < next) {
        last.bytes -= next - last.start;
        last.start = next;
    }
    last.holds = Last::Holds::kBelowFrame;
    last.valid_version = static_cast<std::uint32_t>(behind - place.frames.begin());
    last.serial = behind->serial;
    return found.object;
}

// Finds the object, or the objects of a group, and their count.
void ReferencedObjects::look_up(Last& last, const trace_record_t& record, const Place& place) {
    found_.clear();
    const trace_site_t& site = place.code.sites[record.site];
    const std::uint32_t object =
        last.has_own_records && trace::object_members(site) > 1
            ? find_group(last, record, place)
            : find(last, record.value, place, place.code.instrs[site.instr].pc);
    const bool is_group = !found_.empty();
    const bool is_first = last.count == kNoCount && last.context == UINT32_MAX;
    if (!is_group && !is_first && last.object == object) return;
    last.object = object;
    last.context = UINT32_MAX;
    if (has_own_records_ && !last.has_own_records) return;
    if (!is_group) found_.push_back(object);
    const bool may_be_same = is_group && last.count != kNoCount;
    if (may_be_same && std::ranges::equal(found_, objects_of(combinations_[last.count]))) return;
    const std::uint32_t count = combination(record.site);
    if (last.references != 0)
        combinations_[last.count].references += std::exchange(last.references, 0);
    last.count = count;
}

// The result holds for the addresses of the first reference for which it holds for all references.
std::uint32_t ReferencedObjects::find_group(Last& last, const trace_record_t& record,
                                            const Place& place) {
    const trace_site_t* const sites = &place.code.sites[record.site];
    std::uint64_t below = UINT64_MAX, from_here = UINT64_MAX;
    bool alike = true;
    Last first;
    for (unsigned i = 0; i < trace::object_members(sites[0]); ++i) {
        Last own;
        const std::uint64_t address =
            record.value + static_cast<std::uint64_t>(trace::object_distance(sites[i]));
        // Most groups lie in one block or variable. On the stack, the result depends on the pc.
        const bool is_with_first = i != 0 && first.holds == Last::Holds::kForVersion &&
                                   address - first.start < first.bytes;
        if (is_with_first) own = first;
        found_.push_back(is_with_first
                             ? found_[0]
                             : find(own, address, place, place.code.instrs[sites[i].instr].pc));
        if (i == 0) first = own;
        const bool in_frame = own.holds == Last::Holds::kInFrame;
        const std::uint64_t frame = in_frame ? place.frames.back().address : 0;
        below = std::min(below, address - frame - own.start);
        from_here = std::min(from_here, own.bytes - (address - frame - own.start));
        if (own.block != HeapBlocks::kNone) memory_.touch(own.block, place.record);
        if (i == 0) {
            own.references = last.references;
            own.has_own_records = true;
            own.count = last.count;
            last = own;
            last.start = record.value - frame;
        }
        // Both members of the union have the same size.
        alike = alike && own.holds == last.holds && own.changes == last.changes &&
                own.valid_version == last.valid_version && own.block == last.block;
    }
    last.start -= below;
    last.bytes = below + from_here;
    if (!alike) last.holds = Last::Holds::kNever;
    return found_[0];
}

// Returns the number of the combination of the site with the objects in found_.
std::uint32_t ReferencedObjects::combination(std::uint32_t site) {
    std::size_t slot = slot_of(site, found_);
    if (slots_[slot] != kNoCount) return slots_[slot];
    if ((combinations_.size() + 1) * 4 > slots_.size() * 3) {
        slots_.assign(slots_.size() * 2, kNoCount);
        for (std::uint32_t i = 0; i < combinations_.size(); ++i)
            slots_[slot_of(combinations_[i].site, objects_of(combinations_[i]))] = i;
        slot = slot_of(site, found_);
    }
    slots_[slot] = static_cast<std::uint32_t>(combinations_.size());
    combinations_.push_back({site, static_cast<std::uint32_t>(found_.size()), objects_.size(), 0});
    objects_.insert(objects_.end(), found_.begin(), found_.end());
    return slots_[slot];
}

std::size_t ReferencedObjects::slot_of(std::uint32_t site,
                                       std::span<const std::uint32_t> objects) const {
    // The multipliers of splitmix64's finaliser (Steele, Lea, Flood 2014).
    std::uint64_t hash = site;
    for (const std::uint32_t object : objects) {
        hash = (hash ^ std::uint64_t{object} << 32) * 0xBF58476D1CE4E5B9ULL;
        hash ^= hash >> 31;
    }
    hash *= 0x94D049BB133111EBULL;
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = (hash ^ hash >> 31) & mask;
    const auto is_other = [&](const Combination& there) {
        const std::span<const std::uint32_t> own = objects_of(there);
        return there.site != site || own.front() != objects.front() ||
               !std::equal(own.begin(), own.end(), objects.begin(), objects.end());
    };
    while (slots_[slot] != kNoCount && is_other(combinations_[slots_[slot]]))
        slot = (slot + 1) & mask;
    return slot;
}

inline void ReferencedObjects::count(Last& last, const trace_record_t& record, const Place& place) {
    if (!holds(last, record.value, place)) look_up(last, record, place);
    ++last.references;
    if (last.block != HeapBlocks::kNone) memory_.touch(last.block, place.record);
}

// The references that were left out have the object, or the objects, of the site's last record.
void ReferencedObjects::end_run(Last& last, const trace_record_t& record) {
    if (last.count == kNoCount) return;  // the program has written over the trace
    last.references += record.aux & ~trace::kEndsObjectRun;
    if (last.block != HeapBlocks::kNone) memory_.touch_until(last.block, record.value);
}

std::uint32_t ReferencedObjects::refer(const trace_record_t& record, const Place& place) {
    Last& last = last_[record.site];
    if (!has_own_records_)
        count(last, record, place);
    else if (!holds(last, record.value, place))
        look_up(last, record, place);
    if (last.context != place.context) {
        last.context = place.context;
        last.variant = tree_.variant(place.context, last.object);
    }
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
    std::vector<Count> counts;
    const auto add = [&](const Combination& combination, std::uint64_t references) {
        if (references == 0) return;
        for (std::uint32_t i = 0; i < combination.members; ++i)
            counts.push_back({combination.site + i,
                              memory_.final_number(objects_[combination.first_object + i]),
                              references});
    };
    for (const Combination& combination : combinations_) add(combination, combination.references);
    for (const Last& last : last_)
        if (last.references != 0) add(combinations_[last.count], last.references);
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
