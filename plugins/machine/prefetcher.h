// What a cache's prefetchers ask for.
#pragma once

#include "plugins/machine/machine.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace machine {

class Prefetcher {
  public:
    static constexpr std::uint32_t kMostLines = 64;

    // A reference by the program that has reached the cache.
    struct Reference {
        std::uint64_t line;
        std::uint64_t address;
        std::uint64_t pc;
        bool hit;
        bool first;  // since the line was prefetched
    };

    // What is asked for; more than kMostLines are forgotten.
    class Lines {
      public:
        void add(std::uint64_t line) {
            if (count_ < kMostLines) lines_[count_++] = line;
        }
        void clear() { count_ = 0; }
        std::span<const std::uint64_t> all() const { return {lines_.data(), count_}; }

      private:
        std::array<std::uint64_t, kMostLines> lines_;
        std::uint32_t count_ = 0;
    };

    Prefetcher() = default;
    virtual ~Prefetcher() = default;
    Prefetcher(const Prefetcher&) = delete;
    Prefetcher& operator=(const Prefetcher&) = delete;

    virtual void reference(const Reference& reference, Lines& wanted) = 0;
};

bool is_prefetcher(const std::string& kind);
std::vector<std::string> prefetcher_names();
// Whether it wants to know of hits too, and not only of misses and first references.
bool sees_hits(const Prefetch& prefetch);

// Throws std::runtime_error if the library that `prefetch` names is unusable.
std::unique_ptr<Prefetcher> make_prefetcher(const Prefetch& prefetch, std::uint32_t line_bytes);

}  // namespace machine
