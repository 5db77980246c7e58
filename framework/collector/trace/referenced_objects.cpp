#include "framework/collector/trace/referenced_objects.h"

#include <algorithm>

namespace assay::collector {

std::span<const std::uint32_t> ReferencedObjects::follow(std::uint32_t thread,
                                                         std::uint64_t entries,
                                                         std::span<const trace_record_t> records,
                                                         std::span<const std::uint32_t> contexts,
                                                         const CodeTables& code) {
    memory_.available(entries);
    result_.resize(records.size());
    if (last_.size() < code.sites.size()) last_.resize(code.sites.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
        const std::uint32_t context = keeps_contexts_ ? contexts[i] : 0;
        result_[i] = context;
        switch (code.sites[records[i].site].kind) {
            case TRACE_SITE_READ:
            case TRACE_SITE_WRITE:
            case TRACE_SITE_MODIFY:
                result_[i] = refer(thread, records[i], context);
                break;
            case TRACE_SITE_COUNT:
                result_[i] = tree_.variant(context, kAsReferences);
                break;
            case TRACE_SITE_ALLOCATION:
                memory_.mark(thread, records[i], contexts[i]);
                break;
            default:
                break;
        }
    }
    return result_;
}

std::uint32_t ReferencedObjects::refer(std::uint32_t thread, const trace_record_t& record,
                                       std::uint32_t context) {
    Last& last = last_[record.site];
    const bool same = last.version != nullptr && record.value - last.start < last.bytes &&
                      *last.version == last.valid_version && last.thread == thread;
    if (!same) {
        const MemoryObjects::Found found = memory_.find(thread, record.value);
        last.start = found.start;
        last.bytes = found.end - found.start;
        last.version = found.version;
        last.valid_version = found.valid_version;
        last.thread = thread;
        if (last.context == UINT32_MAX || last.object != found.object) {
            last.object = found.object;
            last.context = UINT32_MAX;
            const std::uint64_t key = std::uint64_t{record.site} << 32 | found.object;
            const auto [count, is_new] =
                count_of_.try_emplace(key, static_cast<std::uint32_t>(counts_.size()));
            if (is_new) counts_.push_back({record.site, found.object, 0});
            last.count = count->second;
        }
    }
    if (last.context != context) {
        last.context = context;
        last.variant = tree_.variant(context, last.object);
    }
    ++counts_[last.count].references;
    return last.variant;
}

const trace_data_object_t* ReferencedObjects::of_context(std::uint32_t context) const {
    static_assert(static_cast<int>(DataObject::Kind::kStack) == TRACE_DATA_STACK);
    const std::uint32_t variant = tree_.origin(context).object;
    if (variant >= memory_.objects().size()) return nullptr;
    const std::uint32_t number = memory_.final_number(variant);
    const DataObject& object = memory_.objects()[number];
    const char* name = "";
    if (object.symbol != nullptr) name = object.symbol->name.c_str();
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
