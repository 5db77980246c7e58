// Which translation buffers a page is looked up in, one after the other.
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
        std::uint32_t tlb;  // in Machine::tlbs
        // That is added to the page's number there: pages of different sizes are different ones,
        // and each is in the set of its number.
        std::uint64_t key;
    };
    struct Way {
        unsigned shift = 0;      // of the page, as buffers have it
        std::vector<Step> tlbs;  // none if no buffer holds such pages
        // Nobody comes to the first one but fetches, or data, as the first: it can be asked for
        // many in advance.
        bool first_is_apart = false;
    };
    // Of fetches or of data, for a page whose size has that index in PageSizes; 0 where all pages
    // have one.
    const Way& way(bool data, std::uint32_t size) const { return ways_[data][size]; }
    bool translates(bool data) const;
    // Whether first buffers are asked by fetches only or by data only, and never second: they can
    // be asked for many references in advance.
    bool first_are_apart() const;

  private:
    bool is_apart(bool data, std::uint32_t tlb) const;

    std::vector<Way> ways_[2];
};

// The translation buffers of all cores: docs/reference/machine-file.md says the rules. Not
// thread-safe.

// Those of one core.
class CoreTranslation {
  public:
    // The latter stays its owner's, and there. Throws std::bad_alloc.
    CoreTranslation(const Machine& machine, const Translation& translation)
        : translation_(translation), buffers_(machine.tlbs.begin(), machine.tlbs.end()) {}

    // Translates an address of a fetch or of data in its first buffer, if that can be asked for
    // many in advance. Unless the page is there, translate_further() is to be called, in order.
    bool misses_first(bool data, std::uint64_t address) {
        const Translation::Way& way = translation_.way(data, size_at(address));
        if (!way.first_is_apart) return !way.tlbs.empty();
        const Translation::Step& step = way.tlbs[0];
        return !refer(step, address >> way.shift);
    }
    // Calls `missed(tlb)`, with an index in Machine::tlbs, for each buffer that has not got the
    // page, and gets it, and `walk()` if none had.
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
    // The sizes of pages from now on.
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

class TranslationBuffers {
  public:
    // The machine stays its owner's, and there.
    explicit TranslationBuffers(const Machine& machine)
        : machine_(machine), translation_(machine) {}
    TranslationBuffers(const TranslationBuffers&) = delete;
    TranslationBuffers& operator=(const TranslationBuffers&) = delete;

    // Whether a fetch, or a reference to data, can come to a buffer.
    bool translates(bool data) const { return translation_.translates(data); }
    // Stays there until forget(). Throws std::bad_alloc.
    CoreTranslation& of(std::uint32_t core) {
        return cores_.try_emplace(core, machine_, translation_).first->second;
    }
    // Where each thread has a core of its own, which is not needed any more.
    void forget(std::uint32_t core) { cores_.erase(core); }
    // Where Machine::page is 0: the pages of the core's references from now on, until the next call
    // or forget(); pages of 4K before.
    void translate_by(std::uint32_t core, PageSizes& sizes) {
        if (machine_.page == 0) of(core).translate_by(sizes);
    }

  private:
    const Machine& machine_;
    const Translation translation_;
    std::map<std::uint32_t, CoreTranslation> cores_;
};

}  // namespace machine
