// Translation buffers, and the order in which they are asked for a page.
#pragma once

#include "plugins/machine/machine.h"
#include "plugins/machine/page_sizes.h"

#include <cstdint>
#include <map>
#include <vector>

namespace machine {

class Translation {
  public:
    explicit Translation(const Machine& machine);

    struct Step {
        std::uint32_t tlb;  // index in Machine::tlbs
        // Added to the page number in this buffer. It keeps pages of different sizes apart, and
        // each in the set of its number.
        std::uint64_t key;
    };
    struct Way {
        unsigned shift = 0;      // of the page size in the buffers
        std::vector<Step> tlbs;  // empty if no buffer holds such pages
        // The first buffer gets only fetches, or only data, and only as the first buffer. It can be
        // asked for many references in advance.
        bool first_is_apart = false;
    };
    // The way of fetches or data with a page size, an index in PageSizes. 0 if all pages have one
    // size.
    const Way& way(bool data, std::uint32_t size) const { return ways_[data][size]; }
    bool translates(bool data) const;

  private:
    bool is_apart(bool data, std::uint32_t tlb) const;

    std::vector<Way> ways_[2];
};

// The translation buffers of one core.
class CoreTranslation {
  public:
    // `translation` must live longer. Throws std::bad_alloc.
    CoreTranslation(const Machine& machine, const Translation& translation)
        : translation_(translation), buffers_(machine.tlbs.begin(), machine.tlbs.end()) {}

    // Asks the first buffer for the page, if that can be done in advance. If it returns true, call
    // translate_further() in the order of references.
    bool misses_first(bool data, std::uint64_t address) {
        const Translation::Way& way = translation_.way(data, size_at(address));
        if (!way.first_is_apart) return !way.tlbs.empty();
        const Translation::Step& step = way.tlbs[0];
        return !refer(step, address >> way.shift);
    }
    // Calls `missed(tlb)`, with an index in Machine::tlbs, for each buffer that lacks the page,
    // which then gets it. Calls `walk()` if no buffer had it.
    template <typename Missed, typename Walk>
    void translate_further(bool data, std::uint64_t address, const Missed& missed,
                           const Walk& walk) {
        const Translation::Way& way = translation_.way(data, size_at(address));
        for (const Translation::Step& step : way.tlbs) {
            const bool is_done = way.first_is_apart && &step == way.tlbs.data();
            if (!is_done && refer(step, address >> way.shift)) return;
            missed(step.tlb);
        }
        walk();
    }
    // Sets the sizes of pages from now on.
    void translate_by(PageSizes& sizes) { page_sizes_ = &sizes; }

  private:
    bool refer(const Translation::Step& step, std::uint64_t page) {
        PageBuffer& buffer = buffers_[step.tlb];
        if (buffer.touch(page + step.key)) return true;
        buffer.insert(page + step.key);
        return false;
    }
    std::uint32_t size_at(std::uint64_t address) {
        return page_sizes_ != nullptr ? page_sizes_->at(address) : 0;
    }

    const Translation& translation_;
    std::vector<PageBuffer> buffers_;  // by index in Machine::tlbs
    PageSizes* page_sizes_ = nullptr;
};

// The translation buffers of all cores: docs/reference/machine-file.md has the rules. Not
// thread-safe.
class TranslationBuffers {
  public:
    // The machine must live longer.
    explicit TranslationBuffers(const Machine& machine)
        : machine_(machine), translation_(machine) {}
    TranslationBuffers(const TranslationBuffers&) = delete;
    TranslationBuffers& operator=(const TranslationBuffers&) = delete;

    // True if fetches, or references to data, can come to a buffer.
    bool translates(bool data) const { return translation_.translates(data); }
    // Valid until forget(). Throws std::bad_alloc.
    CoreTranslation& of(std::uint32_t core) {
        return cores_.try_emplace(core, machine_, translation_).first->second;
    }
    // Frees the buffers of a core, if each thread has its own core.
    void forget(std::uint32_t core) { cores_.erase(core); }
    // For Machine::page 0: the pages for the core's references from now on, until the next call or
    // forget(). Before the first call, pages have 4K.
    void translate_by(std::uint32_t core, PageSizes& sizes) {
        if (machine_.page == 0) of(core).translate_by(sizes);
    }

  private:
    const Machine& machine_;
    const Translation translation_;
    std::map<std::uint32_t, CoreTranslation> cores_;
};

}  // namespace machine
