#include "plugins/machine/miss_kinds.h"

namespace machine {

void MissKinds::unlink(std::uint32_t node) {
    const Node& it = nodes_[node];
    (it.newer == kNone ? newest_ : nodes_[it.newer].older) = it.older;
    (it.older == kNone ? oldest_ : nodes_[it.older].newer) = it.newer;
}

void MissKinds::make_newest(std::uint32_t node) {
    nodes_[node].newer = kNone;
    nodes_[node].older = newest_;
    (newest_ == kNone ? oldest_ : nodes_[newest_].newer) = node;
    newest_ = node;
}

MissKind MissKinds::refer(std::uint64_t line) {
    const std::uint32_t* const found = node_of_.find(line);
    if (found && *found != kGone) {
        const std::uint32_t node = *found;
        if (node != newest_) {
            unlink(node);
            make_newest(node);
        }
        return MissKind::kConflict;
    }
    const bool seen = found != nullptr;
    std::uint32_t node = used_;
    if (used_ < nodes_.size()) {
        ++used_;
    } else {
        node = oldest_;
        unlink(node);
        node_of_[nodes_[node].line] = kGone;
    }
    nodes_[node].line = line;
    make_newest(node);
    node_of_[line] = node;
    return seen ? MissKind::kCapacity : MissKind::kCold;
}

}  // namespace machine
