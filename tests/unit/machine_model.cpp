#include "machine_model.h"

#include <algorithm>

namespace model {

using machine::Holds;
using machine::Inclusion;
using machine::Kind;
using machine::Of;

namespace {

bool shares(Holds a, Holds b) {
    return a == b || a == Holds::kBoth || b == Holds::kBoth;
}

Holds holds_for(const machine::Reference& reference) {
    return reference.kind == Kind::kFetch ? Holds::kInstructions : Holds::kData;
}

}  // namespace

Model::Cache::Cache(const machine::Machine& machine, std::size_t which, std::uint32_t owner_number)
    : what(machine.caches[which]),
      index(which),
      owner(owner_number),
      lines(what.sets(machine.line), what.ways, what.hash, what.replacement) {
    for (const machine::Prefetch& prefetch : what.prefetch)
        prefetchers.push_back(model::make_prefetcher(prefetch, machine.line));
}

Model::Model(const machine::Machine& machine, const machine::Columns& columns)
    : machine_(machine), columns_(columns) {
    for (std::uint32_t number = 0; number < machine.cores; ++number) core(number);
}

std::uint32_t Model::cluster_of(std::uint32_t core) const {
    return machine_.cores == 0 ? 0 : core / machine_.cores_of_cluster();
}

bool Model::serves(const Cache& cache, std::uint32_t core) const {
    return cache.what.of == Of::kMachine ||
           cache.owner == (cache.what.of == Of::kCore ? core : cluster_of(core));
}

Model::Cache& Model::cache(std::size_t index, std::uint32_t core) {
    for (const auto& known : caches_)
        if (known->index == index && serves(*known, core)) return *known;
    const Of of = machine_.caches[index].of;
    const std::uint32_t owner = of == Of::kCore ? core : of == Of::kCluster ? cluster_of(core) : 0;
    return *caches_.emplace_back(std::make_unique<Cache>(machine_, index, owner));
}

Model::Core& Model::core(std::uint32_t number) {
    const auto known = cores_.find(number);
    if (known != cores_.end()) return known->second;
    Core& made = cores_[number];
    for (std::size_t i = 0; i < machine_.caches.size(); ++i)
        for (const Holds holds : {Holds::kInstructions, Holds::kData})
            if (shares(machine_.caches[i].holds, holds))
                made.path[holds == Holds::kData].push_back(&cache(i, number));
    for (const machine::Tlb& tlb : machine_.tlbs)
        made.tlbs.emplace_back(tlb.sets(), tlb.ways, machine::Hash::kModulus, tlb.replacement);
    return made;
}

void Model::forget(std::uint32_t core) {
    cores_.erase(core);
    std::erase_if(caches_, [&](const auto& cache) {
        return cache->what.of == Of::kCore && cache->owner == core;
    });
}

bool Model::is_above(const Cache& upper, const Cache& lower) const {
    if (upper.what.level >= lower.what.level || !shares(upper.what.holds, lower.what.holds))
        return false;
    switch (upper.what.of) {
        case Of::kCore:
            return serves(lower, upper.owner);
        case Of::kCluster:
            return lower.what.of == Of::kMachine || lower.owner == upper.owner;
        default:
            return true;
    }
}

Model::Caches Model::below(const Cache& cache) {
    Caches found;
    for (const auto& other : caches_)
        if (is_above(cache, *other)) found.push_back(other.get());
    std::sort(found.begin(), found.end(),
              [](const Cache* a, const Cache* b) { return a->what.level < b->what.level; });
    return found;
}

void Model::refer(std::uint32_t number, const machine::Reference& reference,
                  std::uint64_t* counts) {
    counts_ = counts;
    missed_.clear();
    const Caches path = core(number).path[reference.kind != Kind::kFetch];
    const std::uint64_t bytes = std::min(reference.bytes, machine_.line);
    const std::uint64_t last_byte = reference.address + bytes - 1;
    for (std::uint64_t at = reference.address; at <= last_byte;) {
        const std::uint64_t page = page_size(at, holds_for(reference));
        if (page != 0) translate(number, reference, at, page);
        const std::uint64_t end = page != 0 ? page : 4096;  // no buffer has it: the smallest
        at = at / end * end + end;
    }
    for (std::uint64_t line = reference.address / machine_.line; line <= last_byte / machine_.line;
         ++line) {
        Request request{number, reference, line, std::max(reference.address, line * machine_.line),
                        std::min(last_byte, line * machine_.line + machine_.line - 1)};
        request.was_lost = number < machine_.cores && lost_[number].contains(line);
        if (reference.writes)
            write(request, path, 0);
        else
            read(request, path, 0);
        for (const Asked& asked : request.asked)
            for (const auto& prefetcher : asked.cache->prefetchers)
                for (const std::uint64_t wanted : prefetcher->reference(
                         {line, request.first_byte, reference.pc, asked.hit, asked.first}))
                    prefetch(request, *asked.cache, wanted);
    }
}

void Model::operate(std::uint32_t number, const machine::Reference& operation,
                    std::uint64_t* counts) {
    counts_ = counts;
    const std::uint64_t line = operation.address / machine_.line;
    const Caches path = core(number).path[1];
    if (operation.operation != machine::LineOperation::kPrefetch) {
        for (const auto& cache : caches_) {
            Way* const copy = cache->lines.find(line);
            if (copy == nullptr) continue;
            if (copy->dirty) count(columns(*cache).write_backs);
            copy->dirty = false;
            if (operation.operation == machine::LineOperation::kWriteBack) continue;
            if (copy->prefetched) count(columns(*cache).useless);
            cache->lines.remove(line);
        }
        return;
    }
    for (std::size_t at = 0; at < path.size(); ++at) {
        if (path[at]->lines.find(line) != nullptr) return;
        if (path[at]->what.level < operation.level && at + 1 != path.size()) continue;
        if (!begin_prefetch(number, *path[at], line)) return;
        Request request{number, operation, line, 0, 0, path[at], true};
        const bool dirty = read(request, path, at + 1);
        return take_in(request, *path[at], dirty);
    }
}

void Model::set_memory(std::uint64_t start, std::uint64_t bytes, machine::Memory memory) {
    told_.push_back({start, bytes, memory});
}

// What was told last of the address.
std::uint64_t Model::mapped_page(std::uint64_t address) const {
    using machine::Memory;
    using machine::Transparent;
    constexpr std::uint64_t kSmall = 4096, kLarge = 2 << 20, kHuge = 1 << 30;
    Memory memory = Memory::kOther;
    for (const Told& told : told_)
        if (told.start <= address && address - told.start < told.bytes) memory = told.memory;
    switch (memory) {
        case Memory::kPrivate:
            return machine_.transparent == Transparent::kAlways ? kLarge : kSmall;
        case Memory::kAdvised:
            return machine_.transparent == Transparent::kNever ? kSmall : kLarge;
        case Memory::k2M:
            return kLarge;
        case Memory::k1G:
            return kHuge;
        default:
            return kSmall;
    }
}

// As the buffers have it; 0 if none has.
std::uint64_t Model::page_size(std::uint64_t address, Holds holds) const {
    std::uint64_t bytes = machine_.page != 0 ? machine_.page : mapped_page(address);
    for (; bytes != 0; bytes /= 2)
        for (const machine::Tlb& tlb : machine_.tlbs)
            if (shares(tlb.holds, holds) && tlb.holds_pages_of(bytes)) return bytes;
    return 0;
}

void Model::translate(std::uint32_t number, const machine::Reference& reference,
                      std::uint64_t address, std::uint64_t bytes) {
    for (std::size_t i = 0; i < machine_.tlbs.size(); ++i) {
        const machine::Tlb& shape = machine_.tlbs[i];
        if (!shares(shape.holds, holds_for(reference)) || !shape.holds_pages_of(bytes)) continue;
        // Pages of other sizes are others, and each is in the set of its number.
        const std::uint64_t page =
            address / bytes + bytes * (shape.sets() * std::uint64_t{1} << 20);
        Lines& tlb = core(number).tlbs[i];
        if (tlb.find(page) != nullptr) return tlb.refer(page);
        count(columns_.tlbs[i]);
        tlb.take_in(page, reference.pc, false);
    }
    count(columns_.walks);
}

// Whether the cache has the line.
bool Model::ask(Request& request, Cache& cache) {
    Way* const found = cache.lines.find(request.line);
    if (found != nullptr) cache.lines.refer(request.line);
    if (request.prefetching != nullptr) return found != nullptr;
    const bool first = found != nullptr && found->prefetched;
    if (first) {
        count(columns(cache).useful);
        if (found->prefetched_by == request.core &&
            request.reference.executed <= found->prefetched_at + cache.what.late)
            count(columns(cache).late);
        found->prefetched = false;
    }
    if (found == nullptr) count_miss(request, cache);
    cache.asked_for.insert(request.line);
    cache.associative.remove(request.line);
    cache.associative.push_front(request.line);
    if (cache.associative.size() > cache.lines.size()) cache.associative.pop_back();
    request.asked.push_back({&cache, found != nullptr, first});
    return found != nullptr;
}

void Model::count_miss(const Request& request, Cache& cache) {
    const auto replaced = cache.replaced.find(request.line % cache.lines.size());
    if (replaced != cache.replaced.end() && replaced->second == request.line) {
        count(columns(cache).evicting);
        cache.replaced.erase(replaced);
    }
    if (missed_.insert(cache.index).second)
        count(columns(cache).misses[static_cast<std::size_t>(request.reference.kind)]);
    const auto& line = cache.associative;
    if (!cache.asked_for.contains(request.line))
        count(columns(cache).cold);
    else if (request.was_lost && cache.is_coherent())
        count(columns(cache).coherence);
    else if (std::find(line.begin(), line.end(), request.line) == line.end())
        count(columns(cache).capacity);
    else
        count(columns(cache).conflict);
}

// Brings the line to what is above path[at]; whether it comes dirty.
bool Model::read(Request& request, const Caches& path, std::size_t at) {
    if (at == path.size()) return false;
    Cache& cache = *path[at];
    if (ask(request, cache)) {
        if (cache.what.inclusion != Inclusion::kExclusive) return false;
        return cache.lines.remove(request.line)->dirty;
    }
    const bool is_first = cache.is_coherent() && (at == 0 || !path[at - 1]->is_coherent());
    if (is_first && request.prefetching == nullptr) ask_to_read(request);
    const bool dirty = read(request, path, at + 1);
    if (cache.what.inclusion == Inclusion::kExclusive) return dirty;
    take_in(request, cache, dirty);
    return false;
}

void Model::write(Request& request, const Caches& path, std::size_t at) {
    if (at == path.size()) return;
    Cache& cache = *path[at];
    const bool hit = ask(request, cache);
    if (cache.is_coherent() && at == 0) ask_to_write(request);
    if (!cache.what.write_back) {
        write(request, path, at + 1);
        if (!hit && cache.what.write_allocate) take_in(request, cache, false);
    } else if (hit) {
        cache.lines.find(request.line)->dirty = true;
    } else if (cache.what.inclusion == Inclusion::kExclusive || !cache.what.write_allocate) {
        write(request, path, at + 1);
    } else {
        read(request, path, at + 1);
        take_in(request, cache, true);
    }
}

void Model::take_in(const Request& request, Cache& cache, bool dirty) {
    const auto gone =
        cache.lines.take_in(request.line, request.reference.pc, request.prefetching != nullptr);
    Way& way = *cache.lines.find(request.line);
    way.dirty = dirty;
    if (request.prefetching == &cache && !request.by_program) {
        way.prefetched = true;
        way.prefetched_at = request.reference.executed;
        way.prefetched_by = request.core;
        count(columns(cache).prefetched);
        if (gone) cache.replaced[gone->line % cache.lines.size()] = gone->line;
    }
    if (cache.is_coherent()) lost_[cache.owner].erase(request.line);
    if (gone) leave(request, cache, *gone);
}

// What becomes of a line that has had to make room.
void Model::leave(const Request& request, Cache& cache, Way gone) {
    if (gone.prefetched) count(columns(cache).useless);
    if (cache.what.inclusion == Inclusion::kInclusive)
        for (const auto& upper : caches_) {
            if (!is_above(*upper, cache)) continue;
            const auto copy = upper->lines.remove(gone.line);
            if (!copy) continue;
            count(columns(cache).back_invalidations);
            if (copy->prefetched) count(columns(*upper).useless);
            gone.dirty |= copy->dirty;
        }
    if (gone.dirty) count(columns(cache).write_backs);
    hand_down(request, cache, gone.line, gone.dirty);
}

// To an exclusive cache in any case, else what is dirty to where it is, or to memory.
void Model::hand_down(const Request& request, Cache& from, std::uint64_t line, bool dirty) {
    for (Cache* const to : below(from)) {
        const bool is_exclusive = to->what.inclusion == Inclusion::kExclusive;
        if (!is_exclusive && !dirty) return;
        Way* const copy = to->lines.find(line);
        if (copy != nullptr && (is_exclusive || to->what.write_back)) {
            copy->dirty |= dirty;
            return;
        }
        if (copy != nullptr || !is_exclusive) continue;
        // What has not been kept coherent comes into what is, as if it were prefetched.
        if (to->is_coherent() && !from.is_coherent() && !begin_prefetch(request.core, *to, line))
            continue;
        const auto gone = to->lines.take_in(line, request.reference.pc, false);
        to->lines.find(line)->dirty = dirty;
        if (to->is_coherent()) lost_[to->owner].erase(line);
        if (gone) leave(request, *to, *gone);
        return;
    }
}

// Whether coherence allows it. The core has the line in that state once it is there.
bool Model::begin_prefetch(std::uint32_t core, const Cache& into, std::uint64_t line) {
    if (machine_.protocol == machine::Protocol::kNone) return true;
    if (is_dropped(into, core, line)) return false;
    if (state(core, line) == State::kInvalid)
        states_[core][line] = others_have(core, line) ? State::kShared : State::kExclusive;
    return true;
}

void Model::prefetch(const Request& behind, Cache& cache, std::uint64_t line) {
    if (cache.lines.find(line) != nullptr || !begin_prefetch(behind.core, cache, line)) return;
    Request request{behind.core, behind.reference, line, 0, 0, &cache};
    const auto replaced = cache.replaced.find(line % cache.lines.size());
    if (replaced != cache.replaced.end() && replaced->second == line)
        cache.replaced.erase(replaced);
    const Caches& path = core(behind.core).path[behind.reference.kind != Kind::kFetch];
    const auto here = std::find(path.begin(), path.end(), &cache);
    const bool dirty = read(request, path, static_cast<std::size_t>(here - path.begin()) + 1);
    take_in(request, cache, dirty);
}

}  // namespace model
