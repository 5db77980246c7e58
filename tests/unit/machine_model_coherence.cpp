#include "machine_model.h"

#include <algorithm>

namespace model {

using machine::Holds;
using machine::Of;
using machine::Protocol;

std::vector<Model::Cache*> Model::own_data_caches(std::uint32_t core) {
    std::vector<Cache*> found;
    for (Cache* const cache : this->core(core).path[1])
        if (cache->is_coherent()) found.push_back(cache);
    return found;
}

std::vector<Model::Cache*> Model::data_caches_of_other_clusters(std::uint32_t core) {
    std::vector<Cache*> found;
    for (const auto& cache : caches_)
        if (cache->what.of == Of::kCluster && cache->what.holds != Holds::kInstructions &&
            cache->owner != cluster_of(core))
            found.push_back(cache.get());
    return found;
}

State Model::state(std::uint32_t core, std::uint64_t line) {
    for (Cache* const cache : own_data_caches(core))
        if (cache->lines.find(line) != nullptr) return states_[core][line];
    return State::kInvalid;
}

bool Model::others_have(std::uint32_t core, std::uint64_t line) {
    for (std::uint32_t other = 0; other < machine_.cores; ++other)
        if (other != core && state(other, line) != State::kInvalid) return true;
    for (Cache* const cache : data_caches_of_other_clusters(core))
        if (cache->lines.find(line) != nullptr) return true;
    return false;
}

bool Model::is_dropped(const Cache& prefetching, std::uint32_t core, std::uint64_t line) {
    for (std::uint32_t other = 0; other < machine_.cores; ++other)
        if ((other != core || prefetching.what.of != Of::kCore) &&
            state(other, line) > State::kShared)
            return true;
    for (Cache* const cache : data_caches_of_other_clusters(core)) {
        const Way* const copy = cache->lines.find(line);
        if (copy != nullptr && copy->dirty) return true;
    }
    return false;
}

void Model::ask_to_read(const Request& request) {
    const std::uint64_t line = request.line;
    if (machine_.protocol == Protocol::kNone || state(request.core, line) != State::kInvalid)
        return;
    count_sharing(request);
    states_[request.core][line] =
        others_have(request.core, line) ? State::kShared : State::kExclusive;
    bool is_transfer = false;
    for (std::uint32_t other = 0; other < machine_.cores; ++other) {
        if (other == request.core) continue;
        const State before = state(other, line);
        if (before == State::kExclusive) states_[other][line] = State::kShared;
        if (before < State::kOwned) continue;
        is_transfer = true;
        states_[other][line] =
            machine_.protocol == Protocol::kMoesi ? State::kOwned : State::kShared;
        if (machine_.protocol == Protocol::kMoesi) continue;
        const auto own = own_data_caches(other);
        bool is_written_back = false;
        for (Cache* const cache : own) {
            Way* const copy = cache->lines.find(line);
            if (copy == nullptr || !copy->dirty) continue;
            copy->dirty = false;
            if (!is_written_back) count(columns(*cache).write_backs);
            is_written_back = true;
        }
        if (is_written_back) hand_down(request, *own.back(), line, true);
    }
    for (Cache* const cache : data_caches_of_other_clusters(request.core)) {
        Way* const copy = cache->lines.find(line);
        if (copy == nullptr || !copy->dirty) continue;
        copy->dirty = false;
        is_transfer = true;
        count(columns(*cache).write_backs);
        hand_down(request, *cache, line, true);
    }
    if (is_transfer) count(columns_.transfers);
}

void Model::ask_to_write(const Request& request) {
    if (machine_.protocol == Protocol::kNone) return;
    const std::uint64_t line = request.line;
    const State before = state(request.core, line);
    states_[request.core][line] = State::kModified;
    if (before == State::kInvalid) count_sharing(request);
    if (before != State::kModified && before != State::kExclusive) {
        bool is_supplied = false;
        std::uint64_t holders = 0;
        for (std::uint32_t other = 0; other < machine_.cores; ++other) {
            if (other == request.core || state(other, line) == State::kInvalid) continue;
            ++holders;
            is_supplied |= state(other, line) >= State::kOwned;
            for (Cache* const cache : own_data_caches(other)) lose(*cache, line);
            lost_[other][line] = {};
            count(columns_.invalidations_received);
        }
        for (std::uint64_t i = 0; i < (machine_.directory ? holders : machine_.cores - 1); ++i)
            count(columns_.invalidations_sent);
        for (Cache* const cache : data_caches_of_other_clusters(request.core)) {
            const Way* const copy = cache->lines.find(line);
            if (copy == nullptr) continue;
            is_supplied |= copy->dirty;
            lose(*cache, line);
            count(columns_.invalidations_received);
        }
        if (before != State::kInvalid)
            count(columns_.upgrades);
        else if (is_supplied)
            count(columns_.transfers);
    }
    for (std::uint32_t other = 0; other < machine_.cores; ++other)
        if (other != request.core && lost_[other].contains(line))
            for (std::uint64_t byte = request.first_byte; byte <= request.last_byte; ++byte)
                lost_[other][line].insert(byte / 8);
}

// Of a miss: whether it touches what others have written since the core has lost the line.
void Model::count_sharing(const Request& request) {
    const auto lost = lost_[request.core].find(request.line);
    if (lost == lost_[request.core].end()) return;
    bool is_true = false;
    for (std::uint64_t byte = request.first_byte; byte <= request.last_byte; ++byte)
        is_true |= lost->second.contains(byte / 8);
    count(is_true ? columns_.true_sharing : columns_.false_sharing);
    lost_[request.core].erase(lost);
}

// To another core's write.
void Model::lose(Cache& cache, std::uint64_t line) {
    const auto copy = cache.lines.remove(line);
    if (!copy) return;
    if (copy->prefetched) count(columns(cache).useless);
}

}  // namespace model
