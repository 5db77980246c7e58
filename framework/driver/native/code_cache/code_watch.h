// Notices when the program changes code that has been translated.
//
// Memory that the program can write and execute is write-protected page by page when code in it is
// translated. The write that faults then has the page's translations forgotten, and the page is
// the program's again until it executes code there once more. Pages for which that happens time
// and again, and memory that other mappings may show, are not protected: each of their blocks
// compares itself with the memory whenever it is executed.
#pragma once

#include "framework/driver/native/code_cache/code_cache.h"
#include "framework/driver/native/memory/memory_map.h"

#include <unordered_map>

namespace assay::native {

class CodeWatch {
  public:
    explicit CodeWatch(const MemoryMap& memory) : memory_(memory) {}

    // Before code of the page with `pc` is read, for translation. True if the block has to compare
    // itself.
    bool begin(std::uint64_t pc);
    // A write to `address` has faulted. True if that was because of the protection: the page can
    // be written now, and its translations must be forgotten.
    bool let_write(std::uint64_t address);
    // The same for all pages, for the kernel: system calls that write to them fail with EFAULT.
    // Returns the pages.
    std::vector<std::uint64_t> let_write_everywhere();

    // Gives the program's memory another protection, as mprotect(2) does and with its result, but
    // for the pages with code that have to stay protected.
    long protect(std::uint64_t start, std::uint64_t end, int protection, const CodeCache& cache);
    // The memory is not what it was: it is not protected any more.
    void forget(std::uint64_t start, std::uint64_t end);
    bool empty() const { return pages_.empty(); }
    // A write to `address` will fault because of the protection.
    bool guards(std::uint64_t address) const {
        const auto found = pages_.find(address / kPage);
        return found != pages_.end() && found->second.guarded;
    }

  private:
    struct Page {
        bool guarded = false;
        std::uint32_t writes = 0;        // that faulted since
        std::uint64_t writes_since = 0;  // nanoseconds
    };
    bool guard(std::uint64_t page);

    const MemoryMap& memory_;
    std::unordered_map<std::uint64_t, Page> pages_;  // by number
};

}  // namespace assay::native
