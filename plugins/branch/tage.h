// TAGE: A. Seznec and P. Michaud, "A case for (partially) tagged geometric history length branch
// prediction", JILP 8, 2006. A bimodal table, and tagged tables that look at longer and longer
// histories: the longest that knows the branch predicts it.
#pragma once

#include "plugins/branch/conditional.h"
#include "plugins/branch/history.h"

namespace branch {

class Tage final : public ConditionalPredictor {
  public:
    static constexpr unsigned kTables = 7;
    static constexpr unsigned kUsualBits = 10;  // of a tagged table; the bimodal one has 3 more
    static constexpr std::array<unsigned, kTables> kLengths = geometric_lengths<kTables>(5, 130);
    static constexpr std::array<unsigned, kTables> kTagBits = {9, 9, 10, 10, 11, 11, 12};

    explicit Tage(unsigned bits);

    bool predict(std::uint64_t pc, bool taken) override;
    std::string describe() const override;

  private:
    static constexpr unsigned kNone = kTables;
    struct Entry {
        std::int8_t counter = 0;  // -4 to 3, predicts taken from 0 on
        std::uint8_t useful = 0;  // 0 to 3
        std::uint16_t tag = 0;

        bool predicts() const { return counter >= 0; }
        bool is_new() const { return counter == 0 || counter == -1; }
    };
    struct Lookup {
        std::array<Entry*, kTables> entries;
        std::array<std::uint16_t, kTables> tags;
        unsigned provider = kNone,
                 alternate = kNone;  // tables that know the branch; kNone: bimodal
        bool by_provider = false, by_alternate = false;
    };

    Lookup look_up(std::uint64_t pc);
    void train(std::uint64_t pc, const Lookup& found, bool taken);
    void allocate(const Lookup& found, bool taken);
    void age();
    void remember(std::uint64_t pc, bool taken);
    static void move(std::int8_t& counter, bool up);

    unsigned bits_;
    CounterTable bimodal_;
    std::array<std::vector<Entry>, kTables> tables_;
    std::array<Folded, kTables> indexes_, tags_, tags2_;
    History history_;
    std::uint32_t path_ = 0;   // the lowest bit of the addresses of recent branches
    int trust_alternate_ = 0;  // -8 to 7: from 0 on, new entries are not believed
    std::uint32_t random_ = 1;
    std::uint32_t branches_ = 0;  // since useful counters have been aged
    bool high_bit_next_ = true;
};

}  // namespace branch
