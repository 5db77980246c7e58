// Notices when the program changes code that has been translated.
//
// The driver write-protects a page that the program can write and execute when it translates code
// there. A write then faults: the driver forgets the page's translations and makes the page
// writable until its code is executed again. Two kinds of pages are not protected: those with very
// many such writes, and memory that other mappings may show. There each block compares itself with
// the memory whenever it is executed.
#pragma once

#include "framework/driver/native/code_cache/code_cache.h"
#include "framework/driver/native/memory/memory_map.h"

#include <unordered_map>

namespace assay::native {

class CodeWatch {
  public:
    explicit CodeWatch(const MemoryMap& memory) : memory_(memory) {}

    // To be called before the translator reads code at `pc`. True if the block compares itself.
    bool begin(std::uint64_t pc);
    // A write to `address` has faulted. True if the protection was the reason. The page is then
    // writable, and the caller must forget its translations.
    bool let_write(std::uint64_t address);
    // Makes all pages writable, because system calls fail on protected ones. Returns the pages.
    std::vector<std::uint64_t> let_write_everywhere();

    // Changes the protection of the program's memory, with the result of mprotect(2). Pages with
    // code that must stay protected stay read-only.
    long protect(std::uint64_t start, std::uint64_t end, int protection, const CodeCache& cache);
    // To be called when the memory was replaced: its pages are no longer protected.
    void forget(std::uint64_t start, std::uint64_t end);
    bool empty() const { return pages_.empty(); }
    // True if a write to `address` will fault because of the protection.
    bool guards(std::uint64_t address) const {
        const auto found = pages_.find(address / kPage);
        return found != pages_.end() && found->second.guarded;
    }

  private:
    struct Page {
        bool guarded = false;
        std::uint32_t writes = 0;        // faulting writes since writes_since
        std::uint64_t writes_since = 0;  // time in nanoseconds
    };
    bool guard(std::uint64_t page);

    const MemoryMap& memory_;
    std::unordered_map<std::uint64_t, Page> pages_;  // page number -> page
};

}  // namespace assay::native
