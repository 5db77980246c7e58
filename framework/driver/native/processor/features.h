// The features of processors, with their CPUID bits and the state components that they need. Also
// decides which features a program is not shown.
#pragma once

#include "framework/trace/launch.h"

#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace assay::native {

struct CpuidAnswer {
    std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
    bool operator==(const CpuidAnswer&) const = default;
};
using Cpuid = std::function<CpuidAnswer(std::uint32_t leaf, std::uint32_t subleaf)>;

inline constexpr std::uint32_t kExtendedLeaves = 0x80000000;
inline constexpr std::uint32_t kStateLeaf = 0xd;

// Sets of state components, as bits of XCR0 (SDM volume 1, 13.1).
using Components = std::uint64_t;
inline constexpr Components kX87AndSse = 3, kAvxState = 4, kMpxState = 0x18, kAvx512State = 0xe0,
                            kPkruState = 0x200, kTileState = 0x60000, kApxState = 0x80000,
                            kLwpState = Components{1} << 62;
// The driver keeps these components for the program. It hides all others, known or not.
inline constexpr Components kKeptState = kX87AndSse | kAvxState | kAvx512State | kPkruState;

// The instruction that saves the vector state at an exit: the best one that the processor has.
enum Saving : std::uint32_t {
    kSavedIfChanged /* xsaveopt */,
    kSavedPlainly /* xsave */,
    kSavedByFxsave
};
// FXSAVE writes the area of XSAVE without its header.
inline constexpr std::size_t kLegacyBytes = 512;

struct Feature {
    enum Register : std::uint8_t { kEax, kEbx, kEcx, kEdx };

    const char* name;       // the name in Linux or in the psABI
    trace::CpuLevel since;  // the first level that has it
    std::uint32_t leaf, subleaf;
    Register where;
    unsigned bit;
    Components needs = 0;
    const char* parent = nullptr;  // an earlier feature that this one needs
};
inline constexpr trace::CpuLevel kEveryLevel{1}, kNoLevel{UINT32_MAX};
std::span<const Feature> features();
inline constexpr std::size_t kMostFeatures = 128;

std::uint32_t& part(CpuidAnswer& answer, Feature::Register where);
// True for leaves such as 7 and 0xd, whose subleaves give different answers.
bool has_subleaves(std::uint32_t leaf);
// False beyond the processor's last leaf, where it repeats another one.
bool has_leaf(std::uint32_t leaf, const Cpuid& processor);
bool has_feature(const Feature& feature, const Cpuid& processor);

// The kind of hidden features of the real processor.
enum class Hidden : std::uint8_t {
    kNothing,
    kState,         // state, and features whose instructions the decoder knows
    kInstructions,  // also instructions that the decoder does not know
};

class Hiding {
  public:
    // Hides the features that the driver cannot give to a program.
    Hiding();
    // Also hides the named features and components, separated by commas, and all features that need
    // them. Returns the first unknown name, or "".
    std::string_view add(std::string_view names);
    // All names that add() accepts.
    static std::string names();

    Components components() const { return components_; }
    bool hides(std::string_view feature) const;
    // The answer of a leaf without the bits of hidden features. Does not adjust the state leaf.
    CpuidAnswer without_features(std::uint32_t leaf, std::uint32_t subleaf,
                                 const CpuidAnswer& answer) const;
    // The kind of features of this processor that are hidden.
    Hidden found_in(const Cpuid& processor, Components xcr0) const;

  private:
    bool add_one(std::string_view name);
    void add_dependents();

    Components components_ = ~kKeptState;
    std::bitset<kMostFeatures> features_;
};

// The answers of CPUID at each x86-64 level (--cpu=): the features of the level, and constants for
// everything else. So libc chooses the same functions and thresholds on every machine.

// For a level other than kHost. Leaf 0xd only has the features: its sizes depend on where the real
// processor keeps components.
CpuidAnswer level_cpuid(trace::CpuLevel level, std::uint32_t leaf, std::uint32_t subleaf);
// The leaf that answers for `leaf`: beyond the last one, the highest basic one (SDM volume 2,
// CPUID).
std::uint32_t level_leaf(std::uint32_t leaf);
Components level_xcr0(trace::CpuLevel level);

}  // namespace assay::native
