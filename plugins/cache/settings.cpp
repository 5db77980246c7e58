#include "plugins/cache/settings.h"

#include "plugins/machine/machine_file.h"

#include <assay/profiler.hpp>

namespace cache {
namespace {

// For a processor that describes no caches: Cachegrind's choice as well, an Athlon's.
constexpr Geometries kFallback{{65536, 2, 64}, {65536, 2, 64}, {262144, 8, 64}};

std::optional<Geometry>* geometry_option(Settings& settings, std::string_view name) {
    if (name == "I1") return &settings.i1;
    if (name == "D1") return &settings.d1;
    if (name == "LL") return &settings.ll;
    return nullptr;
}

Geometry choose(const std::optional<Geometry>& wanted, const Geometry& own, const char* name,
                std::string& warning) {
    if (wanted) return *wanted;
    const Geometry simulated = with_power_of_two_sets(own);
    if (!(simulated == own)) {
        if (!warning.empty()) warning += "; ";
        warning += std::string("the number of sets of this processor's ") + name + " cache (" +
                   describe(own) + ") is no power of two; simulating " + describe(simulated);
    }
    return simulated;
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
    } else if (name == "machine") {
        settings.machine = machine::read_machine(std::string(value));
    }  // else branch-sim, for which assay loads the profiler
}

void check_with_machine(const Settings& settings, bool sampled) {
    const auto refuse = [](const std::string& option) {
        throw std::invalid_argument("--machine cannot be combined with " + option +
                                    "; leave one of them out");
    };
    if (!settings.with_machine.empty()) refuse(settings.with_machine);
    if (!settings.simulate) refuse("--cache-sim=no");
    if (sampled) refuse("--sample");
}

Geometries geometries(const Settings& settings, std::string& warning) {
    const Geometries own = processor_caches(kFallback);
    return {choose(settings.i1, own.i1, "I1", warning), choose(settings.d1, own.d1, "D1", warning),
            choose(settings.ll, own.ll, "LL", warning)};
}

}  // namespace cache
