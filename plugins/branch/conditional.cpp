#include "plugins/branch/conditional.h"

#include "plugins/branch/tage.h"

#include <array>

namespace branch {
namespace {

constexpr unsigned kUsualBits = 14;

std::string counters(unsigned bits, unsigned width) {
    return std::to_string(1U << bits) + " counters of " + std::to_string(width) + " bits";
}

// The predictor that trace_capture_predictions runs in the program, for traces from elsewhere.
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

}  // namespace branch
