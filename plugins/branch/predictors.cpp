#include "plugins/branch/predictors.h"

#include "plugins/branch/tage.h"

#include <array>

namespace branch {
namespace {

constexpr unsigned kUsualBits = 14;

std::string counters(unsigned bits, unsigned width) {
    return std::to_string(1U << bits) + " counters of " + std::to_string(width) + " bits";
}

// The same predictor as in trace_capture_predictions, which runs inside of the program. This one
// serves streams from other sources.
class Cachegrind final : public ConditionalPredictor {
  public:
    bool predict(std::uint64_t pc, bool taken) override {
        const std::uint64_t index = (history_ & 0x7f) << 7 | (pc & 0x7f);
        const bool predicted = table_.predicts(index);
        table_.train(index, taken);
        history_ = history_ << 1 | (taken ? 1 : 0);
        return predicted;
    }
    std::string describe() const override {
        return "Cachegrind's: " + counters(14, 2) + ", 7 bits of history, 7 of the address";
    }

  private:
    CounterTable table_{14, 2, 0};
    std::uint64_t history_ = 0;
};

// J. E. Smith, "A study of branch prediction strategies", ISCA 1981, strategy 7.
class Bimodal final : public ConditionalPredictor {
  public:
    explicit Bimodal(unsigned bits) : bits_(bits), table_(bits, 2, 1) {}

    bool predict(std::uint64_t pc, bool taken) override {
        const bool predicted = table_.predicts(pc);
        table_.train(pc, taken);
        return predicted;
    }
    std::string describe() const override { return "bimodal: " + counters(bits_, 2); }

  private:
    unsigned bits_;
    CounterTable table_;
};

// S. McFarling, "Combining branch predictors", WRL TN-36, 1993, section 7.
class Gshare final : public ConditionalPredictor {
  public:
    explicit Gshare(unsigned bits) : bits_(bits), table_(bits, 2, 1) {}

    bool predict(std::uint64_t pc, bool taken) override {
        const std::uint64_t index = pc ^ history_;
        const bool predicted = table_.predicts(index);
        table_.train(index, taken);
        history_ = history_ << 1 | (taken ? 1 : 0);
        return predicted;
    }
    std::string describe() const override {
        return "gshare: " + counters(bits_, 2) + ", " + std::to_string(bits_) + " bits of history";
    }

  private:
    unsigned bits_;
    CounterTable table_;
    std::uint64_t history_ = 0;
};

// R. E. Kessler, "The Alpha 21264 microprocessor", IEEE Micro 19(2), 1999, figure 4. The Alpha
// chooses a local history by the address of an aligned group of four instructions. Here the full
// address chooses it, because x86 has branches at any address.
class Tournament final : public ConditionalPredictor {
  public:
    explicit Tournament(unsigned bits)
        : bits_(bits), global_(bits, 2, 1), choice_(bits, 2, 1), local_(kLocalBits, 3, 3) {}

    bool predict(std::uint64_t pc, bool taken) override {
        std::uint16_t& own = histories_[pc % histories_.size()];
        const bool by_local = local_.predicts(own);
        const bool by_global = global_.predicts(history_);
        const bool predicted = choice_.predicts(history_) ? by_global : by_local;
        if (by_local != by_global) choice_.train(history_, by_global == taken);
        local_.train(own, taken);
        global_.train(history_, taken);
        own = static_cast<std::uint16_t>((own << 1 | (taken ? 1 : 0)) & ((1 << kLocalBits) - 1));
        history_ = history_ << 1 | (taken ? 1 : 0);
        return predicted;
    }
    std::string describe() const override {
        return "tournament: local, 1024 histories of 10 bits and " + counters(kLocalBits, 3) +
               "; global and choice, " + counters(bits_, 2) + " each";
    }

  private:
    static constexpr unsigned kLocalBits = 10;
    unsigned bits_;
    CounterTable global_, choice_, local_;
    std::array<std::uint16_t, 1024> histories_{};
    std::uint64_t history_ = 0;
};

}  // namespace

std::unique_ptr<ConditionalPredictor> conditional_predictor(std::string_view name,
                                                            unsigned table_bits) {
    constexpr unsigned kAlphaBits = 12;
    const auto bits = [table_bits](unsigned usual) { return table_bits ? table_bits : usual; };
    if (name == "cachegrind") return std::make_unique<Cachegrind>();
    if (name == "bimodal") return std::make_unique<Bimodal>(bits(kUsualBits));
    if (name == "gshare") return std::make_unique<Gshare>(bits(kUsualBits));
    if (name == "tournament") return std::make_unique<Tournament>(bits(kAlphaBits));
    if (name == "tage") return std::make_unique<Tage>(bits(Tage::kUsualBits));
    return nullptr;
}

namespace {

constexpr unsigned kUsualIndirectBits = 9;

std::string targets(unsigned bits) {
    return std::to_string(1U << bits) + " targets";
}

// Predicts the last target. This is Cachegrind's predictor, with its usual size.
class Last final : public TargetPredictor {
  public:
    explicit Last(unsigned bits) : bits_(bits), targets_(std::size_t{1} << bits) {}

    std::uint64_t predict(std::uint64_t pc, std::uint64_t target) override {
        std::uint64_t& entry = targets_[pc % targets_.size()];
        const std::uint64_t predicted = entry;
        entry = target;
        return predicted;
    }
    void note_outcome(bool) override {}
    std::string describe() const override { return "last target: " + targets(bits_); }

  private:
    unsigned bits_;
    std::vector<std::uint64_t> targets_;
};

// P.-Y. Chang, E. Hao and Y. N. Patt, "Target prediction for indirect jumps", ISCA 1997: a tagless
// target cache, with a path history of the targets of indirect jumps.
class TargetCache final : public TargetPredictor {
  public:
    explicit TargetCache(unsigned bits) : bits_(bits), targets_(std::size_t{1} << bits) {}

    std::uint64_t predict(std::uint64_t pc, std::uint64_t target) override {
        std::uint64_t& entry = targets_[(pc ^ path_) % targets_.size()];
        const std::uint64_t predicted = entry;
        entry = target;
        // Targets are often aligned, so their higher bits also go into the history.
        path_ = path_ << kBitsOfTarget ^ target ^ target >> 4;
        path_ %= targets_.size();
        return predicted;
    }
    void note_outcome(bool) override {}
    std::string describe() const override {
        return "target cache: " + targets(bits_) + ", path history of " + std::to_string(bits_) +
               " bits";
    }

  private:
    static constexpr unsigned kBitsOfTarget = 3;
    unsigned bits_;
    std::vector<std::uint64_t> targets_;
    std::uint64_t path_ = 0;
};

// A. Seznec, "A 64-Kbytes ITTAGE indirect branch predictor", JWAC-2, 2011: TAGE with targets in
// place of counters. The history contains outcomes of conditional branches and bits of indirect
// targets.
class Ittage final : public TargetPredictor {
  public:
    explicit Ittage(unsigned bits) : bits_(bits), base_(std::size_t{1} << bits) {
        for (unsigned i = 0; i < kTables; ++i) {
            tables_[i].resize(std::size_t{1} << (bits - kFewerBits));
            indexes_[i] = Folded(kLengths[i], bits - kFewerBits);
            tags_[i] = Folded(kLengths[i], kTagBits);
        }
    }

    std::uint64_t predict(std::uint64_t pc, std::uint64_t target) override {
        const Lookup found = look_up(pc);
        std::uint64_t& base = base_[pc % base_.size()];
        const std::uint64_t longest = found.provider ? found.provider->target : base;
        const std::uint64_t alternate = found.alternate ? found.alternate->target : base;
        const bool doubted = found.provider && found.provider->confidence == 0;
        const std::uint64_t predicted = doubted ? alternate : longest;
        if (found.provider) train(*found.provider, longest != alternate, target);
        if (longest != target) allocate(found, target);
        base = target;
        constexpr unsigned kBitsOfTarget = 8;
        for (unsigned bit = 0; bit < kBitsOfTarget; ++bit)
            add((target ^ target >> kBitsOfTarget) >> bit & 1);
        return predicted;
    }
    void note_outcome(bool taken) override { add(taken); }
    std::string describe() const override {
        return "ITTAGE: " + targets(bits_) + ", " + std::to_string(kTables) + " tagged tables of " +
               std::to_string(1U << (bits_ - kFewerBits)) + " targets";
    }

    static constexpr unsigned kFewerBits = 1;  // fewer bits for a tagged table than for the base
                                               // table

  private:
    static constexpr unsigned kTables = 4, kTagBits = 11;
    static constexpr std::array<unsigned, kTables> kLengths = geometric_lengths<kTables>(8, 128);
    struct Entry {
        std::uint64_t target = 0;
        std::uint16_t tag = 0;
        std::uint8_t confidence = 0;  // 0 to 3
        bool useful = false;
    };
    struct Lookup {
        std::array<Entry*, kTables> entries{};
        std::array<std::uint16_t, kTables> tags{};
        unsigned first_longer = 0;  // the first table with a longer history than the provider
        Entry *provider = nullptr, *alternate = nullptr;
    };

    Lookup look_up(std::uint64_t pc) {
        Lookup found;
        for (unsigned i = 0; i < kTables; ++i) {
            const std::uint64_t index = pc ^ pc >> (bits_ - i) ^ indexes_[i].value();
            found.entries[i] = &tables_[i][index % tables_[i].size()];
            found.tags[i] = static_cast<std::uint16_t>((pc ^ pc >> kTagBits ^ tags_[i].value()) &
                                                       ((1U << kTagBits) - 1));
            if (found.entries[i]->tag != found.tags[i]) continue;
            found.alternate = found.provider;
            found.provider = found.entries[i];
            found.first_longer = i + 1;
        }
        return found;
    }
    static void train(Entry& entry, bool differs, std::uint64_t target) {
        if (entry.target == target) {
            if (entry.confidence < 3) ++entry.confidence;
            entry.useful |= differs;
        } else if (entry.confidence > 0) {
            --entry.confidence;
        } else {
            entry.target = target;
            entry.useful = false;
        }
    }
    void allocate(const Lookup& found, std::uint64_t target) {
        for (unsigned i = found.first_longer; i < kTables; ++i) {
            if (found.entries[i]->useful) continue;
            *found.entries[i] = {target, found.tags[i], 0, false};
            return;
        }
        for (unsigned i = found.first_longer; i < kTables; ++i) found.entries[i]->useful = false;
    }
    void add(bool bit) {
        for (unsigned i = 0; i < kTables; ++i) {
            indexes_[i].add(history_, bit);
            tags_[i].add(history_, bit);
        }
        history_.add(bit);
    }

    unsigned bits_;
    std::vector<std::uint64_t> base_;
    std::array<std::vector<Entry>, kTables> tables_;
    std::array<Folded, kTables> indexes_, tags_;
    History history_;
};

}  // namespace

std::unique_ptr<TargetPredictor> target_predictor(std::string_view name, unsigned table_bits) {
    const unsigned bits = table_bits ? table_bits : kUsualIndirectBits;
    if (name == "last") return std::make_unique<Last>(bits);
    if (name == "target-cache") return std::make_unique<TargetCache>(bits);
    if (name == "ittage") return std::make_unique<Ittage>(bits);
    return nullptr;
}

}  // namespace branch
