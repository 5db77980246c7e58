#include "plugins/struct_layout/advice.h"

#include "plugins/cache/simulator.h"
#include "plugins/struct_layout/layouts.h"
#include "plugins/struct_layout/replay.h"

#include <assay/text.hpp>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <numeric>

namespace struct_layout {
namespace {

using assay::percent;
using assay::with_commas;

constexpr std::uint64_t kLeastMoved = 90;  // percent of references, for a layout to be tried

// A struct and the results for it.
struct Examined {
    std::uint32_t number;
    Instances instances;
    Visits visits;
    std::vector<Layout> layouts;
    std::deque<Trial> trials;  // by layout
};

// All misses of data, and those of each struct.
Misses count_misses(Structs& structs, std::span<const trace_site_t> sites, Recording& recording,
                    const cache::Geometries& geometries) {
    cache::Simulator simulator(geometries);
    simulator.learn(sites.data(), sites.size());
    recording.replay([&](std::uint32_t thread, std::span<const trace_record_t> records) {
        simulator.process(thread, records.data(), records.size());
        for (const trace_record_t& record : records) {
            const SiteUse use = structs.of_site(record.site);
            if (use.of != kNone) ++structs.all[use.of].references;
        }
    });
    Misses all;
    for (std::uint32_t site = 0; site < sites.size(); ++site) {
        if (sites[site].kind == TRACE_SITE_FETCH) continue;
        const cache::SiteCounts counts = simulator.counts(site);
        all.l1 += counts.l1_misses;
        all.ll += counts.ll_misses;
        const SiteUse use = structs.of_site(site);
        if (use.of == kNone) continue;
        structs.all[use.of].l1_misses += counts.l1_misses;
        structs.all[use.of].ll_misses += counts.ll_misses;
    }
    return all;
}

std::vector<std::uint32_t> choose(const Structs& structs, const Wanted& wanted, const Misses& now) {
    std::vector<std::uint32_t> chosen;
    for (std::uint32_t i = 0; i < structs.all.size(); ++i) {
        const Struct& of = structs.all[i];
        if (wanted.name.empty() ? of.l1_misses * 100 > now.l1 : of.name == wanted.name)
            chosen.push_back(i);
    }
    std::stable_sort(chosen.begin(), chosen.end(), [&](std::uint32_t a, std::uint32_t b) {
        return structs.all[a].l1_misses > structs.all[b].l1_misses;
    });
    if (chosen.size() > wanted.most) chosen.resize(wanted.most);
    return chosen;
}

void find_instances(const assay::Trace& trace, Recording& recording, const Structs& structs,
                    const std::vector<Examined*>& by_struct) {
    recording.replay([&](std::uint32_t, std::span<const trace_record_t> records) {
        for (const trace_record_t& record : records) {
            const SiteUse use = structs.of_site(record.site);
            if (use.of == kNone || by_struct[use.of] == nullptr || use.offset == UINT64_MAX)
                continue;
            by_struct[use.of]->instances.seen(record.value - use.offset);
        }
    });
    for (Examined* const examined : by_struct)
        if (examined != nullptr) examined->instances.find_arrays(trace);
}

// Calls `take(struct, address of the instance, unit)` for each reference to an examined struct.
// Treats instructions of unknown type like Trial.
template <typename Take>
void each_unit(Recording& recording, const Structs& structs, std::span<const trace_site_t> sites,
               std::deque<Examined>& examined, const Take& take) {
    std::vector<std::vector<std::uint32_t>> hints(examined.size(),
                                                  std::vector<std::uint32_t>(sites.size()));
    const auto refer = [&](std::size_t which, const trace_record_t& record, SiteUse use) {
        const Examined& to = examined[which];
        if (use.of != to.number && use.of != kNone) return;
        const std::uint32_t index = to.instances.find(record.value, hints[which][record.site]);
        if (index == kNone) return;
        const InstanceArray& array = to.instances.arrays()[index];
        const Struct& of = structs.all[to.number];
        const std::uint64_t within = (record.value - array.start) % of.bytes;
        const bool known = use.of == to.number;
        if (!known && !array.in_block) return;
        const std::uint32_t unit =
            known ? of.unit_at[within] : of.unit_of(within, sites[record.site].bytes);
        if (unit != kNone) take(to.number, record.value - within, unit);
    };
    recording.replay([&](std::uint32_t, std::span<const trace_record_t> records) {
        for (const trace_record_t& record : records) {
            if (sites[record.site].kind == TRACE_SITE_FETCH) continue;
            const SiteUse use = structs.of_site(record.site);
            for (std::size_t which = 0; which < examined.size(); ++which) refer(which, record, use);
        }
    });
}

// Counts the references to each member, and the members that are used together.
void find_use(Recording& recording, Structs& structs, std::span<const trace_site_t> sites,
              std::deque<Examined>& examined, const std::vector<Examined*>& by_struct) {
    each_unit(recording, structs, sites, examined,
              [&](std::uint32_t number, std::uint64_t, std::uint32_t unit) {
                  ++structs.all[number].units[unit].references;
              });
    for (std::uint32_t number = 0; number < by_struct.size(); ++number) {
        if (by_struct[number] == nullptr) continue;
        Struct& of = structs.all[number];
        std::vector<std::uint32_t> order(of.units.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
            return of.units[a].references > of.units[b].references;
        });
        of.bits.assign(of.units.size(), kNone);
        for (std::uint32_t bit = 0; bit < std::min<std::size_t>(order.size(), 64); ++bit)
            of.bits[order[bit]] = bit;
    }
    each_unit(recording, structs, sites, examined,
              [&](std::uint32_t number, std::uint64_t instance, std::uint32_t unit) {
                  const std::uint32_t bit = structs.all[number].bits[unit];
                  by_struct[number]->visits.refer(instance,
                                                  bit == kNone ? 0 : std::uint64_t{1} << bit);
              });
    for (std::uint32_t number = 0; number < by_struct.size(); ++number) {
        if (by_struct[number] == nullptr) continue;
        Struct& of = structs.all[number];
        by_struct[number]->visits.end();
        of.visits = by_struct[number]->visits.counts();
        for (std::uint32_t unit = 0; unit < of.units.size(); ++unit)
            of.units[unit].visits = of.together(unit, unit);
    }
}

std::string use_of(const Struct& of, bool objects) {
    std::string out, never;
    std::uint64_t visits = 0;
    for (const auto& [used, count] : of.visits) visits += count;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> sets;  // count, set
    for (const auto& [used, count] : of.visits) sets.emplace_back(count, used);
    std::sort(sets.rbegin(), sets.rend());
    constexpr std::size_t kMostSets = 4;
    for (std::size_t i = 0; i < std::min(sets.size(), kMostSets); ++i) {
        std::string names;
        for (std::uint32_t unit = 0; unit < of.units.size(); ++unit)
            if (of.bits[unit] != kNone && (sets[i].second >> of.bits[unit] & 1) != 0)
                names += (names.empty() ? "" : ", ") + of.units[unit].name();
        out += "  used together in " + percent(sets[i].first, visits, 1) + " of " +
               with_commas(visits) + " visits: " + names + "\n";
    }
    // Members that seem hardly ever used: a freed block can be reused for other data, whose
    // references count here.
    constexpr std::uint64_t kOften = 1000;
    std::string rarely;
    for (const Unit& unit : of.units) {
        if (unit.references * kOften >= of.references) continue;
        std::string& list = unit.references == 0 ? never : rarely;
        list += (list.empty() ? "" : ", ") + unit.name();
    }
    const std::string by = objects ? "used: " : "used by instructions whose type is known: ";
    if (!never.empty()) out += "  never " + by + never + "\n";
    if (!rarely.empty()) out += "  hardly ever " + by + rarely + "\n";
    return out;
}

std::string row(const std::string& name, const Misses& all, const Misses& own,
                const std::string& moved) {
    char text[160];
    std::snprintf(text, sizeof text, "  %-36s %14s %14s %14s %8s\n", name.c_str(),
                  with_commas(all.l1).c_str(), with_commas(own.l1).c_str(),
                  with_commas(all.ll).c_str(), moved.c_str());
    return text;
}

bool better(const Misses& a, const Misses& b) {
    return a.l1 < b.l1 && a.ll <= b.ll;
}

std::string tell(const Examined& examined, const Structs& structs, const Misses& now,
                 bool objects) {
    const Struct& of = structs.all[examined.number];
    std::string out = "\nstruct " + of.name + ", " + std::to_string(of.bytes) + " bytes, " +
                      with_commas(of.references) + " references\n" + use_of(of, objects);
    char head[160];
    std::snprintf(head, sizeof head, "  %-36s %14s %14s %14s %8s\n", "layout", "D1 misses",
                  "of the struct", "LL misses", "replayed");
    out += head + row("as it is", now, {of.l1_misses, of.ll_misses}, "100.0%");
    const Layout* best = nullptr;
    Misses fewest = now;
    bool unplaced = false;
    for (std::size_t i = 0; i < examined.trials.size(); ++i) {
        const Trial& trial = examined.trials[i];
        if (trial.moved() * 100 < trial.references() * kLeastMoved || trial.moved() == 0) {
            unplaced = true;
            continue;
        }
        out += row(examined.layouts[i].name, trial.all(), trial.own(),
                   percent(trial.moved(), trial.references(), 1));
        if (!better(trial.all(), fewest)) continue;
        fewest = trial.all();
        best = &examined.layouts[i];
    }
    if (unplaced)
        out += std::string(
                   "  Some layouts are left out: they need arrays whose beginning is "
                   "known") +
               (objects ? ".\n" : ", which --objects finds.\n");
    if (const std::string obstacle = of.obstacle(); !obstacle.empty())
        return out + "  No other layout has been tried: " + obstacle + ".\n";
    if (best == nullptr)
        return out + "  No layout that was tried has fewer D1 misses and no more LL misses.\n";
    out += "  " + best->name + ": " + with_commas(now.l1 - fewest.l1) + " D1 misses fewer, " +
           percent(now.l1 - fewest.l1, now.l1, 1) + " of the program's\n";
    return out + text(*best, of);
}

}  // namespace

std::string advise(const assay::Trace& trace, Recording& recording,
                   const cache::Geometries& geometries, const Wanted& wanted) {
    const auto sites = trace.sites();
    Structs structs(trace);
    std::string out = with_commas(recording.references()) + " references and fetches recorded in " +
                      with_commas(recording.bytes()) + " bytes\n";
    if (structs.all.empty())
        return out + "no struct is known that was referred to: is there debug information (-g)?\n";
    const Misses now = count_misses(structs, sites, recording, geometries);
    std::deque<Examined> examined;
    std::vector<Examined*> by_struct(structs.all.size());
    for (const std::uint32_t number : choose(structs, wanted, now)) {
        examined.push_back({number, Instances(structs.all[number].bytes), {}, {}, {}});
        by_struct[number] = &examined.back();
    }
    if (examined.empty())
        return out + (wanted.name.empty()
                          ? "no struct that is known has more than a hundredth of the misses\n"
                          : "no references to a struct " + wanted.name + " are known\n");
    find_instances(trace, recording, structs, by_struct);
    find_use(recording, structs, sites, examined, by_struct);
    for (Examined& one : examined) {
        const Struct& of = structs.all[one.number];
        if (!of.obstacle().empty()) continue;
        one.layouts = layouts(of, geometries.d1.line);
        for (const Layout& layout : one.layouts)
            one.trials.emplace_back(layout, one.number, structs, one.instances, sites, geometries);
    }
    recording.replay([&](std::uint32_t thread, std::span<const trace_record_t> records) {
        for (Examined& one : examined)
            for (Trial& trial : one.trials) trial.take(thread, records);
    });
    bool objects = false;
    for (const Examined& one : examined)
        for (const InstanceArray& array : one.instances.arrays()) objects |= array.in_block;
    for (const Examined& one : examined) out += tell(one, structs, now, objects);
    return out;
}

}  // namespace struct_layout
