#include "plugins/cache/settings.h"

#include "plugins/machine/machine_file.h"

#include <algorithm>
#include <assay/profiler.hpp>
#include <assay/text.hpp>
#include <bit>

namespace cache {
namespace {

constexpr Geometries kDefault{{32768, 8, 64}, {32768, 8, 64}, {8388608, 16, 64}};

std::optional<Geometry>* geometry_option(Settings& settings, std::string_view name) {
    if (name == "I1") return &settings.i1;
    if (name == "D1") return &settings.d1;
    if (name == "LL") return &settings.ll;
    return nullptr;
}

}  // namespace

void apply(Settings& settings, std::string_view name, std::string_view value) {
    if (auto* geometry = geometry_option(settings, name)) {
        std::string why;
        *geometry = parse_geometry(value, why);
        if (!*geometry) throw assay::BadOption(name, value, why);
        settings.with_machine = "--" + std::string(name);
    } else if (name == "cache-sim") {
        settings.simulate = value == "yes";
    } else if (name == "rep") {
        if (value != "once" && value != "iterations")
            throw assay::BadOption(name, value, "use once or iterations");
        settings.count_iterations = value == "iterations";
    } else if (name == "level1") {
        if (value != "program" && value != "profiler")
            throw assay::BadOption(name, value, "use program or profiler");
        settings.level1_in_program = value == "program";
    } else if (name == "machine" && value == "host") {
        settings.of_host = true;
        settings.machine_name.clear();
    } else if (name == "machine") {
        settings.of_host = false;
        settings.machine_name = value;
    } else if (name == "misses-over-time") {
        settings.interval = assay::number(name, value, 1000, 1'000'000'000'000);
        settings.with_machine = "--misses-over-time";
    } else if (name == "set") {
        const std::size_t end = value.find('=');
        settings.changes.push_back(
            {std::string(value.substr(0, end)), std::string(value.substr(end + 1))});
    }  // else branch-sim, for which assay loads the profiler
}

void read_machine(Settings& settings) {
    if (!settings.machine_name.empty())
        settings.machine = machine::read_machine(settings.machine_name, settings.changes);
    else if (!settings.changes.empty())
        throw std::runtime_error("--set=" + settings.changes[0].key + "=" +
                                 settings.changes[0].value +
                                 " changes a machine: name it with --machine");
}

void check_with_machine(const Settings& settings, bool sampled) {
    const auto refuse = [](const std::string& option) {
        throw std::invalid_argument("--machine cannot be combined with " + option +
                                    "; leave one of them out");
    };
    if (!settings.simulate) refuse("--cache-sim=no");
    if (settings.of_host) return;
    if (!settings.with_machine.empty()) refuse(settings.with_machine);
    if (sampled) refuse("--sample");
}

Geometries geometries(const Settings& settings) {
    const Geometries own = settings.of_host ? processor_caches(kDefault) : kDefault;
    return {settings.i1.value_or(with_power_of_two_sets(own.i1)),
            settings.d1.value_or(with_power_of_two_sets(own.d1)),
            settings.ll.value_or(with_power_of_two_sets(own.ll))};
}

std::vector<std::pair<std::string, std::string>> describe(const Settings& settings) {
    const Geometries shapes = geometries(settings);
    std::vector<std::pair<std::string, std::string>> lines{{"I1 cache", describe(shapes.i1)},
                                                           {"D1 cache", describe(shapes.d1)},
                                                           {"LL cache", describe(shapes.ll)}};
    if (settings.i1 && settings.d1 && settings.ll) return lines;
    if (!settings.of_host) {
        lines.emplace_back("Cache shapes", "assay's default; --machine=host takes the processor's");
        return lines;
    }
    lines.emplace_back("Cache shapes", "this processor's, by --machine=host");
    const Geometries own = processor_caches(kDefault);
    const auto tell = [&](const char* name, bool is_own, const Geometry& has) {
        if (is_own && !std::has_single_bit(has.sets()))
            lines.emplace_back(std::string("Processor's ") + name,
                               describe(has) + "; its sets are no power of two");
    };
    tell("I1", !settings.i1, own.i1);
    tell("D1", !settings.d1, own.d1);
    tell("LL", !settings.ll, own.ll);
    return lines;
}

namespace {

using assay::percent;
using assay::right;
using assay::with_commas;

std::string padded(std::uint64_t number, std::size_t width) {
    return right(with_commas(number), width);
}

struct Widths {
    std::size_t all, reads, writes;
};

std::string counts(const char* label, std::uint64_t reads, std::uint64_t writes,
                   const Widths& widths) {
    return std::string(label) + padded(reads + writes, widths.all) + "  (" +
           padded(reads, widths.reads) + " rd   + " + padded(writes, widths.writes) + " wr)\n";
}

std::string rates(const char* label, std::uint64_t reads, std::uint64_t read_whole,
                  std::uint64_t writes, std::uint64_t write_whole, const Widths& widths) {
    return std::string(label) +
           right(percent(reads + writes, read_whole + write_whole, 1), widths.all) + " (" +
           right(percent(reads, read_whole, 1), widths.reads) + "     + " +
           right(percent(writes, write_whole, 1), widths.writes) + "  )\n";
}

}  // namespace

std::string summarise(const std::uint64_t* t, bool simulated, bool with_ll) {
    const Widths widths{std::max(with_commas(t[kIr]).size(), with_commas(t[kDr] + t[kDw]).size()),
                        with_commas(t[kDr]).size(), with_commas(t[kDw]).size()};
    std::string out = "I   refs:      " + padded(t[kIr], widths.all) + "\n";
    if (!simulated) return out;
    out += "I1  misses:    " + padded(t[kI1mr], widths.all) + "\n";
    if (with_ll) out += "LLi misses:    " + padded(t[kILmr], widths.all) + "\n";
    out += "I1  miss rate: " + right(percent(t[kI1mr], t[kIr], 2), widths.all) + "\n";
    if (with_ll) out += "LLi miss rate: " + right(percent(t[kILmr], t[kIr], 2), widths.all) + "\n";
    out += "\n";
    out += counts("D   refs:      ", t[kDr], t[kDw], widths);
    out += counts("D1  misses:    ", t[kD1mr], t[kD1mw], widths);
    if (with_ll) out += counts("LLd misses:    ", t[kDLmr], t[kDLmw], widths);
    out += rates("D1  miss rate: ", t[kD1mr], t[kDr], t[kD1mw], t[kDw], widths);
    if (!with_ll) return out;
    out += rates("LLd miss rate: ", t[kDLmr], t[kDr], t[kDLmw], t[kDw], widths) + "\n";
    out += counts("LL refs:       ", t[kI1mr] + t[kD1mr], t[kD1mw], widths);
    out += counts("LL misses:     ", t[kILmr] + t[kDLmr], t[kDLmw], widths);
    out += rates("LL miss rate:  ", t[kILmr] + t[kDLmr], t[kIr] + t[kDr], t[kDLmw], t[kDw], widths);
    return out;
}

}  // namespace cache
