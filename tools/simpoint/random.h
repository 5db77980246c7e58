// Random numbers that are the same on every machine.
#pragma once

#include <cstdint>

namespace assay::simpoint {

// Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014; as published by
// Vigna.
inline std::uint64_t splitmix64(std::uint64_t& state) {
    std::uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

// From 0 up to but not 1.
inline double uniform(std::uint64_t& state) {
    return static_cast<double>(splitmix64(state) >> 11) * 0x1p-53;
}

}  // namespace assay::simpoint
