#include "plugins/cache/settings.h"

#include "plugins/machine/machine_file.h"

#include <assay/profiler.hpp>

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
        settings.machine.reset();
    } else if (name == "machine") {
        settings.of_host = false;
        settings.machine = machine::read_machine(std::string(value));
    }  // else branch-sim, for which assay loads the profiler
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

}  // namespace cache
