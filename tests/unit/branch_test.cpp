// Branch predictors, with patterns whose mispredictions are known on paper.
#include "plugins/branch/predictors.h"
#include "plugins/branch/simulator.h"
#include "plugins/branch/tage.h"

#include "framework/driver/shared/predictor.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace branch_test {

namespace {

using branch::conditional_predictor;
using branch::ConditionalPredictor;
using branch::target_predictor;

constexpr const char* kAll[] = {"cachegrind", "bimodal", "gshare", "tournament", "tage"};
constexpr std::uint64_t kPc = 0x401234;

// Mispredictions among the last `counted` of `count` executions of the branch at kPc.
template <typename Outcome>
int mispredictions(ConditionalPredictor& predictor, int count, int counted, Outcome outcome) {
    int wrong = 0;
    for (int i = 0; i < count; ++i) {
        const bool taken = outcome(i);
        const bool right = predictor.predict(kPc, taken) == taken;
        wrong += !right && i >= count - counted;
    }
    return wrong;
}

}  // namespace

TEST_CASE("branch predictors learn a branch that always goes one way") {
    for (const char* name : kAll)
        for (const bool way : {false, true}) {
            CAPTURE(name);
            CHECK(mispredictions(*conditional_predictor(name, 0), 1000, 900,
                                 [way](int) { return way; }) == 0);
        }
}

TEST_CASE("a bimodal predictor is wrong as its counters say") {
    // From 1, a taken branch is mispredicted once.
    CHECK(mispredictions(*conditional_predictor("bimodal", 0), 10, 10, [](int) { return true; }) ==
          1);
    // A loop of 10: the last iteration is mispredicted, the first is not (the counter is 2 then).
    CHECK(mispredictions(*conditional_predictor("bimodal", 0), 1000, 900,
                         [](int i) { return i % 10 != 9; }) == 90);
    // Taken and not taken in turn, from 1: 1 predicts not taken, 2 taken: always wrong.
    CHECK(mispredictions(*conditional_predictor("bimodal", 0), 100, 100,
                         [](int i) { return i % 2 == 0; }) == 100);
}

TEST_CASE("histories make alternating branches and short loops predictable") {
    for (const char* name : {"cachegrind", "gshare", "tournament", "tage"}) {
        CAPTURE(name);
        CHECK(mispredictions(*conditional_predictor(name, 0), 1000, 500,
                             [](int i) { return i % 2 == 0; }) == 0);
        CHECK(mispredictions(*conditional_predictor(name, 0), 2000, 1000,
                             [](int i) { return i % 5 != 4; }) == 0);
    }
}

TEST_CASE("a loop is predicted if its length fits the history") {
    const auto loop = [](int length) { return [length](int i) { return i % length != 0; }; };
    // 7 bits of history tell apart the iterations of a loop of 8, but not those of one of 9.
    CHECK(mispredictions(*conditional_predictor("cachegrind", 0), 8000, 800, loop(8)) == 0);
    CHECK(mispredictions(*conditional_predictor("cachegrind", 0), 9000, 900, loop(9)) == 100);
    // 14 bits, and 130. Where they do not suffice, one counter is for the last iteration and the
    // one before: from 1 it is always wrong, from 2 once in two times.
    CHECK(mispredictions(*conditional_predictor("gshare", 14), 15000, 1500, loop(15)) == 0);
    CHECK(mispredictions(*conditional_predictor("gshare", 14), 16000, 1600, loop(16)) == 200);
    CHECK(mispredictions(*conditional_predictor("tage", 0), 100000, 6000, loop(60)) <= 5);
    CHECK(mispredictions(*conditional_predictor("gshare", 0), 100000, 6000, loop(60)) == 100);
}

TEST_CASE("global histories see that one branch follows another") {
    std::minstd_rand random(1);
    for (const char* name : kAll) {
        CAPTURE(name);
        const auto predictor = conditional_predictor(name, 0);
        int wrong = 0;
        for (int i = 0; i < 4000; ++i) {
            const bool outcome = random() >> 8 & 1;
            predictor->predict(kPc, outcome);
            const bool same = predictor->predict(kPc + 0x41, outcome) == outcome;
            wrong += !same && i >= 2000;
        }
        // Without a global history it is a coin.
        if (name == std::string("bimodal"))
            CHECK(wrong > 800);
        else
            CHECK(wrong < 40);
    }
}

TEST_CASE("the predictor in the program is Cachegrind's, and the one in the profiler") {
    constexpr assay::trace::PredictorShape kShape{7, 7, 9};
    const auto inside = std::make_unique<assay::driver::Predictor>();
    inside->reset();
    const auto outside = conditional_predictor("cachegrind", 0);
    // As the rules are written down: 2^14 counters from 0, history above the address.
    std::vector<int> counters(1 << 14);
    unsigned history = 0;
    std::minstd_rand random(7);
    for (int i = 0; i < 100'000; ++i) {
        const std::uint64_t pc = 0x400000 + (random() >> 8) % 300;
        const bool taken = (random() >> 8) % 4 != 0;
        int& counter = counters[(history & 127) << 7 | (pc & 127)];
        const bool predicted = counter >= 2;
        counter = taken ? std::min(counter + 1, 3) : std::max(counter - 1, 0);
        history = history << 1 | (taken ? 1 : 0);
        REQUIRE(inside->conditional(kShape, pc, taken) == (predicted != taken));
        REQUIRE(outside->predict(pc, taken) == predicted);
    }
}

TEST_CASE("the predictor in the program knows what a branch taken many times comes to") {
    constexpr assay::trace::PredictorShape kShape{7, 7, 9};
    const auto at_once = std::make_unique<assay::driver::Predictor>();
    const auto one_by_one = std::make_unique<assay::driver::Predictor>();
    at_once->reset();
    one_by_one->reset();
    std::minstd_rand random(7);
    for (int i = 0; i < 20'000; ++i) {
        const std::uint64_t pc = 0x400000 + (random() >> 8) % 5;
        const std::uint64_t times = (random() >> 8) % 2 == 0 ? 1 : (random() >> 8) % 300;
        std::uint32_t wrong = 0;
        for (std::uint64_t n = 0; n < times; ++n)
            wrong += one_by_one->conditional(kShape, pc, true);
        REQUIRE(at_once->taken_in_a_row(kShape, pc, times) == wrong);
        REQUIRE(at_once->conditional(kShape, pc, false) ==
                one_by_one->conditional(kShape, pc, false));
    }
    CHECK((at_once->history & 0xffU) == (one_by_one->history & 0xffU));
    CHECK(std::equal(std::begin(at_once->counters), std::end(at_once->counters),
                     std::begin(one_by_one->counters)));
}

TEST_CASE("the predictor in the program gives each pc and history its counter, in any shape") {
    for (unsigned history_bits = 0; history_bits <= 8; ++history_bits)
        for (unsigned address_bits = 0; address_bits + history_bits <= 14; ++address_bits) {
            const assay::trace::PredictorShape shape{history_bits, address_bits, 0};
            std::vector<bool> used(std::size_t{1} << 14);
            std::size_t last = 0;
            for (std::uint64_t pc = 0; pc < 1U << address_bits; ++pc)
                for (unsigned h = 0; h < 1U << history_bits; ++h) {
                    const std::size_t at = assay::driver::first_counter(shape, pc) +
                                           (std::size_t{h} << (8 - history_bits));
                    last = std::max(last, at);
                    if (at < used.size()) {
                        CHECK_FALSE(used[at]);
                        used[at] = true;
                    }
                }
            CAPTURE(history_bits);
            CAPTURE(address_bits);
            CHECK(last < used.size());
        }
}

TEST_CASE("last targets are right while the target stays") {
    const auto predictor = target_predictor("last", 0);
    int wrong = 0;
    for (int i = 0; i < 100; ++i) {
        const std::uint64_t target = i < 50 ? 0x1000 : 0x2000;
        wrong += predictor->predict(kPc, target) != target;
    }
    CHECK(wrong == 2);
}

TEST_CASE("indirect predictors with a history learn a cycle of targets") {
    for (const char* name : {"last", "target-cache", "ittage"}) {
        CAPTURE(name);
        const auto predictor = target_predictor(name, 0);
        int wrong = 0;
        for (int i = 0; i < 4000; ++i) {
            const std::uint64_t target = 0x1000 + 0x40 * (i % 5);
            const bool right = predictor->predict(kPc, target) == target;
            wrong += !right && i >= 2000;
        }
        CHECK(wrong == (name == std::string("last") ? 2000 : 0));
    }
}

TEST_CASE("ITTAGE sees which way conditional branches went") {
    const auto predictor = target_predictor("ittage", 0);
    std::minstd_rand random(3);
    int wrong = 0;
    for (int i = 0; i < 4000; ++i) {
        const bool taken = random() >> 8 & 1;
        predictor->note_outcome(taken);
        const std::uint64_t target = taken ? 0x1000 : 0x2040;
        const bool right = predictor->predict(kPc, target) == target;
        wrong += !right && i >= 3000;
    }
    CHECK(wrong < 100);
}

TEST_CASE("a return stack forgets the oldest calls when it is full") {
    branch::ReturnStack stack(4);
    for (std::uint64_t i = 1; i <= 6; ++i) stack.call(i);
    for (std::uint64_t i = 6; i >= 3; --i) CHECK(stack.predict_return() == i);
    CHECK(stack.predict_return() == 0);
    stack.call(9);
    CHECK(stack.predict_return() == 9);
}

TEST_CASE("the simulator counts by site, each thread with predictors of its own until it ends") {
    branch::Settings settings;
    settings.predictor = "bimodal";
    settings.return_stack = 8;
    branch::Simulator simulator(settings);
    trace_instr_t instrs[3] = {};
    instrs[0].pc = 0x1000, instrs[0].length = 2, instrs[0].flags = TRACE_INSTR_CONDITIONAL;
    instrs[1].pc = 0x1002, instrs[1].length = 5, instrs[1].flags = TRACE_INSTR_CALL;
    instrs[2].pc = 0x2000, instrs[2].length = 1, instrs[2].flags = TRACE_INSTR_RETURN;
    const trace_site_t sites[] = {{0, 0, TRACE_SITE_BRANCH, 0},
                                  {1, 0, TRACE_SITE_BRANCH, 0},
                                  {2, 0, TRACE_SITE_BRANCH, 0},
                                  {0, 8, TRACE_SITE_READ, 0}};
    simulator.learn(sites, 4, instrs);
    const std::vector<trace_record_t> records{
        {0x5000, 0, 1}, {0x2000, 1, 1}, {0x5000, 3, 0}, {0x1007, 2, 1}, {0x1007, 2, 1}};
    simulator.process(0, records);
    simulator.process(1, records);
    CHECK(simulator.tally(0).branches == 2);
    CHECK(simulator.tally(0).mispredicted == 2);
    CHECK(simulator.tally(2).branches == 4);
    CHECK(simulator.tally(2).mispredicted == 2);  // the second return has no call
    CHECK(simulator.tally(3).branches == 0);

    CHECK(simulator.thread_count() == 2);
    simulator.end(1);
    CHECK(simulator.thread_count() == 1);
    CHECK(simulator.tally(2).branches == 4);
}

TEST_CASE("a branch counts in the context that it was executed in, also a call or a return") {
    branch::Settings settings;
    settings.predictor = "bimodal";
    settings.return_stack = 8;
    branch::Simulator simulator(settings);
    trace_instr_t instrs[3] = {};
    instrs[0].pc = 0x1000, instrs[0].length = 2, instrs[0].flags = TRACE_INSTR_CONDITIONAL;
    instrs[1].pc = 0x1002, instrs[1].length = 5, instrs[1].flags = TRACE_INSTR_CALL;
    instrs[2].pc = 0x2000, instrs[2].length = 1, instrs[2].flags = TRACE_INSTR_RETURN;
    const trace_site_t sites[] = {{0, 0, TRACE_SITE_BRANCH, 0}, {1, 8, TRACE_SITE_WRITE, 0},
                                  {1, 0, TRACE_SITE_CALL, 0},   {1, 0, TRACE_SITE_BRANCH, 0},
                                  {2, 8, TRACE_SITE_READ, 0},   {2, 0, TRACE_SITE_RETURN, 0},
                                  {2, 0, TRACE_SITE_BRANCH, 0}};
    simulator.learn(sites, 7, instrs);
    // Two calls within one another, and two returns with nothing between them; context 0 is
    // outside, 1 the function.
    const std::vector<trace_record_t> records{
        {0x5000, 0, 1}, {0x7000, 1, 0}, {0x7008, 2, 0}, {0x2000, 3, 1}, {0x5000, 0, 1},
        {0x6000, 1, 0}, {0x6008, 2, 0}, {0x2000, 3, 1}, {0x6000, 4, 0}, {0x6008, 5, 0},
        {0x1007, 6, 1}, {0x7000, 4, 0}, {0x7008, 5, 0}, {0x1007, 6, 1}, {0x5000, 0, 1}};
    const std::vector<std::uint32_t> contexts{0, 0, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 0, 0, 0};
    for (std::size_t length : {records.size(), std::size_t{1}})
        for (std::size_t at = 0; at < records.size(); at += length)
            simulator.process(0, std::span(records).subspan(at, length),
                              std::span(contexts).subspan(at, length));
    std::map<std::pair<std::size_t, std::uint64_t>, std::uint64_t> found;
    for (std::size_t site = 0; site < 7; ++site)
        simulator.each_context(site, [&](std::uint64_t context, const branch::Tally& tally) {
            found[{site, context == VP_NO_CONTEXT ? 0 : context}] = tally.branches;
        });
    CHECK(found ==
          std::map<std::pair<std::size_t, std::uint64_t>, std::uint64_t>{
              {{0, 0}, 4}, {{0, 1}, 2}, {{3, 0}, 2}, {{3, 1}, 2}, {{6, 2}, 2}, {{6, 1}, 2}});
    CHECK(simulator.tally(0).branches == 6);
    CHECK(simulator.tally(6).mispredicted == 0);
}

TEST_CASE("the branch profiler's options are checked") {
    branch::Settings settings;
    branch::apply(settings, "predictor", "tage");
    branch::apply(settings, "predictor-bits", "12");
    CHECK(settings.table_bits == 12);
    CHECK_NOTHROW(branch::check(settings));
    CHECK_THROWS_WITH(branch::apply(settings, "predictor", "oracle"),
                      "--predictor=oracle: use cachegrind, bimodal, gshare, tournament or tage");
    CHECK_THROWS_WITH(branch::apply(settings, "indirect-bits", "25"),
                      "--indirect-bits=25: use 5 to 24");
    branch::Settings usual;
    branch::apply(usual, "predictor-bits", "12");
    CHECK_THROWS_AS(branch::check(usual), std::invalid_argument);
}

TEST_CASE("the branch summary is laid out as Cachegrind's") {
    const std::uint64_t totals[] = {14429, 27, 1, 0, 10, 1};
    CHECK(branch::summarise(totals, false) ==
          "Branches:     14,430  (14,429 cond + 1 ind)\n"
          "Mispredicts:      27  (    27 cond + 0 ind)\n"
          "Mispred rate:    0.2% (   0.2%     + 0.0%   )\n");
    CHECK(branch::summarise(totals, true)
              .ends_with("\nReturns:      10\n"
                         "Mispredicts:   1\n"
                         "Mispred rate: 10.0%\n"));
}

namespace {

// What predictors with tagged tables look at, folded anew each time. The latest first. An array and
// a pointer, because this loop runs 300 million times in builds that are not optimised.
struct PlainHistory {
    std::array<bool, branch::Tage::kLengths.back()> bits{};

    void add(bool bit) {
        std::memmove(bits.data() + 1, bits.data(), bits.size() - 1);
        bits[0] = bit;
    }
    unsigned folded(unsigned length, unsigned width) const {
        unsigned value = 0, place = 0;
        const bool* const end = bits.data() + length;
        for (const bool* bit = bits.data(); bit != end; ++bit) {
            value ^= static_cast<unsigned>(*bit) << place;
            if (++place == width) place = 0;
        }
        return value;
    }
};

// The entries of tagged tables that a branch leads to, from the shortest history to the longest.
template <typename Entry>
struct Candidates {
    std::vector<Entry*> matching;
    std::vector<Entry*> longer;  // behind the last that matches
    std::vector<unsigned> tags;  // that these would get

    void add(Entry& entry, unsigned tag) {
        longer.push_back(&entry);
        tags.push_back(tag);
        if (entry.tag != tag) return;
        matching.push_back(&entry);
        longer.clear();
        tags.clear();
    }
};

// TAGE as its paper has it (sections 3.1 and 3.2), written for plainness.
struct PlainTage {
    struct Entry {
        int counter = 0, useful = 0;
        unsigned tag = 0;
        bool is_new() const { return (counter == 0 || counter == -1) && useful == 0; }
    };
    static constexpr unsigned kTables = branch::Tage::kTables;
    unsigned bits;
    std::array<std::vector<Entry>, kTables> tables;
    std::vector<int> bimodal = std::vector<int>(8U << bits, 1);
    PlainHistory history;
    unsigned path = 0, random = 1, branches = 0, kept = 1;
    int trust_alternate = 0;

    explicit PlainTage(unsigned table_bits) : bits(table_bits) {
        for (std::vector<Entry>& table : tables) table.resize(1U << bits);
    }

    bool predict(std::uint64_t pc, bool taken) {
        Candidates<Entry> candidates;
        for (unsigned i = 0; i < kTables; ++i) {
            const unsigned length = branch::Tage::kLengths[i], width = branch::Tage::kTagBits[i];
            const unsigned recent = path & ((1U << std::min(length, 16U)) - 1);
            const std::uint64_t index = pc ^ pc >> (bits - i % bits) ^
                                        history.folded(length, bits) ^ recent ^ recent >> bits;
            Entry& entry = tables[i][index % tables[i].size()];
            const auto tag = static_cast<unsigned>(
                (pc ^ history.folded(length, width) ^ history.folded(length, width - 1) << 1) %
                (1U << width));
            candidates.add(entry, tag);
        }
        const auto& matching = candidates.matching;
        int& base = bimodal[pc % bimodal.size()];
        const auto predicted_by = [&](std::size_t nth) {
            return matching.size() < nth ? base >= 2
                                         : matching[matching.size() - nth]->counter >= 0;
        };
        const bool longest = predicted_by(1), alternate = predicted_by(2);
        const bool is_new = !matching.empty() && matching.back()->is_new();
        const bool prediction = is_new && trust_alternate >= 0 ? alternate : longest;
        if (!matching.empty() && longest != alternate) {
            int& useful = matching.back()->useful;
            if (is_new)
                trust_alternate =
                    std::clamp(trust_alternate + (alternate == taken ? 1 : -1), -8, 7);
            useful = std::clamp(useful + (longest == taken ? 1 : -1), 0, 3);
        }
        if (longest != taken) allocate(candidates.longer, candidates.tags, taken);
        if (matching.empty())
            base = std::clamp(base + (taken ? 1 : -1), 0, 3);
        else
            matching.back()->counter =
                std::clamp(matching.back()->counter + (taken ? 1 : -1), -4, 3);
        if (++branches == 256 * 1024) age();
        history.add(taken);
        path = path << 1 | (pc & 1);
        return prediction;
    }

    void allocate(const std::vector<Entry*>& longer, const std::vector<unsigned>& tags,
                  bool taken) {
        std::size_t chosen = longer.size();
        for (std::size_t i = 0; i < longer.size(); ++i) {
            if (longer[i]->useful != 0) continue;
            chosen = i;
            random = random >> 1 ^ (random % 2 != 0 ? 0xd0000001U : 0U);
            if (random % 3 != 0) break;
        }
        if (chosen != longer.size())
            *longer[chosen] = {taken ? 0 : -1, 0, tags[chosen]};
        else
            for (Entry* entry : longer) --entry->useful;
    }

    void age() {
        branches = 0;
        for (std::vector<Entry>& table : tables)
            for (Entry& entry : table) entry.useful &= static_cast<int>(kept);
        kept = 3 - kept;
    }
};

// ITTAGE, in the same way.
struct PlainIttage {
    struct Entry {
        std::uint64_t target = 0;
        unsigned tag = 0;
        int confidence = 0;
        bool useful = false;
    };
    static constexpr unsigned kBits = 9, kTagBits = 11;
    static constexpr std::array<unsigned, 4> kLengths{8, 20, 51, 128};
    std::array<std::vector<Entry>, 4> tables;
    std::vector<std::uint64_t> bases = std::vector<std::uint64_t>(1U << kBits);
    PlainHistory history;

    PlainIttage() {
        for (std::vector<Entry>& table : tables) table.resize(1U << (kBits - 1));
    }

    std::uint64_t predict(std::uint64_t pc, std::uint64_t target) {
        Candidates<Entry> candidates;
        for (unsigned i = 0; i < tables.size(); ++i) {
            const std::uint64_t index =
                pc ^ pc >> (kBits - i) ^ history.folded(kLengths[i], kBits - 1);
            Entry& entry = tables[i][index % tables[i].size()];
            const auto tag = static_cast<unsigned>(
                (pc ^ pc >> kTagBits ^ history.folded(kLengths[i], kTagBits)) % (1U << kTagBits));
            candidates.add(entry, tag);
        }
        const auto& matching = candidates.matching;
        std::uint64_t& base = bases[pc % bases.size()];
        const auto target_of = [&](std::size_t nth) {
            return matching.size() < nth ? base : matching[matching.size() - nth]->target;
        };
        const std::uint64_t longest = target_of(1), alternate = target_of(2);
        const bool doubted = !matching.empty() && matching.back()->confidence == 0;
        if (!matching.empty()) train(*matching.back(), longest != alternate, target);
        if (longest != target) allocate(candidates.longer, candidates.tags, target);
        base = target;
        for (unsigned bit = 0; bit < 8; ++bit) history.add((target ^ target >> 8) >> bit & 1);
        return doubted ? alternate : longest;
    }

    static void train(Entry& entry, bool differs, std::uint64_t target) {
        if (entry.target == target) {
            entry.confidence = std::min(entry.confidence + 1, 3);
            entry.useful |= differs;
        } else if (--entry.confidence < 0) {
            entry = {target, entry.tag, 0, false};
        }
    }

    static void allocate(const std::vector<Entry*>& longer, const std::vector<unsigned>& tags,
                         std::uint64_t target) {
        const auto room = std::find_if(longer.begin(), longer.end(),
                                       [](const Entry* entry) { return !entry->useful; });
        if (room != longer.end())
            **room = {target, tags[static_cast<std::size_t>(room - longer.begin())], 0, false};
        else
            for (Entry* entry : longer) entry->useful = false;
    }
};

}  // namespace

TEST_CASE("TAGE predicts as a plain model does") {
    // Small tables, in which all that is useful must make room; and so many branches that it ages.
    for (const auto& [bits, branches] : {std::pair{5U, 40'000}, std::pair{10U, 280'000}}) {
        branch::Tage tage(bits);
        const auto plain = std::make_unique<PlainTage>(bits);
        std::minstd_rand random(11);
        int different = 0, wrong = 0;
        std::uint64_t recent = 0;
        for (int i = 0; i < branches; ++i) {
            const std::uint64_t kind = (random() >> 8) % 300, pc = 0x400000 + kind * 37;
            // Mostly one way; as an earlier branch, or two of them; or by chance.
            const std::array<bool, 4> outcomes{
                (random() >> 8) % 50 != 0, (recent >> kind % 13 & 1) != 0,
                ((recent ^ recent >> 9) >> kind % 31 & 1) != 0, (random() >> 8) % 3 != 0};
            const bool taken = outcomes[kind % 4];
            const bool predicted = tage.predict(pc, taken);
            different += predicted != plain->predict(pc, taken);
            wrong += predicted != taken;
            recent = recent << 1 | (taken ? 1U : 0U);
        }
        CHECK(different == 0);
        CHECK(wrong > 1000);
    }
}

TEST_CASE("ITTAGE predicts as a plain model does") {
    const auto ittage = target_predictor("ittage", 0);
    const auto plain = std::make_unique<PlainIttage>();
    std::minstd_rand random(12);
    int different = 0, wrong = 0;
    std::uint64_t last = 0;
    for (int i = 0; i < 60'000; ++i) {
        const std::uint64_t pc = 0x400000 + (random() >> 8) % 100 * 53;
        const bool outcome = (random() >> 8) % 4 == 0;
        ittage->note_outcome(outcome);
        plain->history.add(outcome);
        const std::uint64_t target = 0x1000 + 0x30 * (pc % 3 == 0   ? i % 7
                                                      : pc % 3 == 1 ? (last + pc) % 5
                                                                    : random() % 3);
        const std::uint64_t predicted = ittage->predict(pc, target);
        different += predicted != plain->predict(pc, target);
        wrong += predicted != target;
        last = target;
    }
    CHECK(different == 0);
    CHECK(wrong > 1000);
}

TEST_CASE("TAGE's lengths of history are a geometric series") {
    CHECK(branch::Tage::kLengths == std::array<unsigned, 7>{5, 9, 15, 25, 44, 76, 130});
}

}  // namespace branch_test
