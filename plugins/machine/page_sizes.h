// How large the page of each address is, where a machine takes pages from the program's mappings.
#pragma once

#include "plugins/machine/machine.h"

#include <cstdint>
#include <map>

namespace machine {

// What the program has of memory, as trace_capture_mappings tells it.
enum class Memory {
    kOther,    // pages of 4K
    kPrivate,  // can have transparent huge pages
    kAdvised,  // the same, and the program asks for them
    k2M,       // hugetlb pages
    k1G,
};

class PageSizes {
  public:
    // Of pages, as indexes.
    static constexpr std::uint64_t kSizes[] = {std::uint64_t{4} << 10, std::uint64_t{2} << 20,
                                               std::uint64_t{1} << 30};

    explicit PageSizes(Transparent transparent) : transparent_(transparent) {}

    // What lies from `start` on is that from now on. No page of what is there is divided.
    void set(std::uint64_t start, std::uint64_t bytes, Memory memory);
    bool is_large(Memory memory) const { return size_of(memory) != 0; }
    // In kSizes.
    std::uint32_t at(std::uint64_t address) {
        if (address - span_.start >= span_.bytes) span_ = span_of(address);
        return span_.size;
    }

  private:
    struct Large {
        std::uint64_t end;
        std::uint32_t size;
    };
    struct Span {
        std::uint64_t start, bytes;
        std::uint32_t size;
    };

    std::uint32_t size_of(Memory memory) const;
    Span span_of(std::uint64_t address) const;

    Transparent transparent_;
    std::map<std::uint64_t, Large> large_;  // by where they start: all other pages have 4K
    Span span_{0, 0, 0};                    // of the last address
};

}  // namespace machine
