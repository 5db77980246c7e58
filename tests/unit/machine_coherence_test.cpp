// The protocols, transition by transition: Papamarcos and Patel's table, and Sweazey and Smith's.
#include "plugins/machine/coherence.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace machine_coherence_test {

namespace {

using machine::Coherence;
using machine::Protocol;
using machine::State;

constexpr std::uint64_t kLine = 77;
constexpr std::uint32_t kSelf = 0, kOther = 1, kThird = 2;

char letter(State state) {
    return "ISEOM"[static_cast<int>(state)];
}

// Two letters, of self and of another core.
std::string states(Coherence& coherence) {
    return {letter(coherence.state(kSelf, kLine)), letter(coherence.state(kOther, kLine))};
}

// Brings two cores there by reads and writes. What cannot be is not asked for.
void reach(Coherence& coherence, const std::string& wanted) {
    const auto reach_one = [&](std::uint32_t core, char state) {
        if (state == 'E') coherence.read(core, kLine, true);
        if (state == 'S') coherence.read(core, kLine, false);
        if (state == 'M') coherence.write(core, kLine);
    };
    if (wanted == "OS" || wanted == "SO") {
        const bool self_owns = wanted == "OS";
        coherence.write(self_owns ? kSelf : kOther, kLine);
        coherence.read(self_owns ? kOther : kSelf, kLine, true);
    } else if (wanted == "OI" || wanted == "IO") {
        const std::uint32_t owner = wanted == "OI" ? kSelf : kOther;
        coherence.write(owner, kLine);
        coherence.read(kThird, kLine, true);
        coherence.drop(kThird, kLine);
    } else {
        reach_one(kSelf, wanted[0]);
        reach_one(kOther, wanted[1]);
    }
    REQUIRE(states(coherence) == wanted);
}

// Who supplies the line and whether it is cleaned: "-", the core's number, or with a "c".
struct Row {
    const char* before;
    const char* read;  // states behind the read of self; of a core that has the line, nullptr
    const char* supplied;
    const char* written;  // states behind the write of self
    const char* supplied_to_write;
    const char* dropped;        // behind the loss of self's
    const char* other_read;     // of a core that has the line, nullptr
    const char* other_written;  // behind the write of the other
};

void check(Protocol protocol, const Row& row) {
    CAPTURE(row.before);
    const auto begun = [&] {
        Coherence coherence(protocol);
        reach(coherence, row.before);
        return coherence;
    };
    if (row.read) {
        Coherence coherence = begun();
        const Coherence::Read read = coherence.read(kSelf, kLine, true);
        CHECK(states(coherence) == row.read);
        const std::string supplied = read.supplier == Coherence::kNobody
                                         ? "-"
                                         : std::to_string(read.supplier) + (read.cleans ? "c" : "");
        CHECK(supplied == row.supplied);
    }
    {
        Coherence coherence = begun();
        const Coherence::Write write = coherence.write(kSelf, kLine);
        CHECK(states(coherence) == row.written);
        CHECK(letter(write.before) == row.before[0]);
        CHECK(write.losers == (row.before[1] == 'I' ? 0u : 1u << kOther));
        CHECK((write.supplier == Coherence::kNobody ? "-" : std::to_string(write.supplier)) ==
              row.supplied_to_write);
        CHECK(coherence.holders(kLine).owner == kSelf);
    }
    {
        Coherence coherence = begun();
        coherence.drop(kSelf, kLine);
        CHECK(states(coherence) == row.dropped);
        CHECK(coherence.holders(kLine).cores == (row.dropped[1] == 'I' ? 0u : 1u << kOther));
    }
    if (row.other_read) {
        Coherence coherence = begun();
        coherence.read(kOther, kLine, true);
        CHECK(states(coherence) == row.other_read);
    }
    {
        Coherence coherence = begun();
        coherence.write(kOther, kLine);
        CHECK(states(coherence) == row.other_written);
    }
}

TEST_CASE("MESI's transitions") {
    for (const Row& row : std::vector<Row>{
             {"II", "EI", "-", "MI", "-", "II", "IE", "IM"},
             {"IS", "SS", "-", "MI", "-", "IS", nullptr, "IM"},
             {"IE", "SS", "-", "MI", "-", "IE", nullptr, "IM"},
             {"IM", "SS", "1c", "MI", "1", "IM", nullptr, "IM"},
             {"SI", nullptr, "", "MI", "-", "II", "SS", "IM"},
             {"SS", nullptr, "", "MI", "-", "IS", nullptr, "IM"},
             {"EI", nullptr, "", "MI", "-", "II", "SS", "IM"},
             {"MI", nullptr, "", "MI", "-", "II", "SS", "IM"},
         })
        check(Protocol::kMesi, row);
}

TEST_CASE("MOESI's transitions") {
    for (const Row& row : std::vector<Row>{
             {"II", "EI", "-", "MI", "-", "II", "IE", "IM"},
             {"IS", "SS", "-", "MI", "-", "IS", nullptr, "IM"},
             {"IE", "SS", "-", "MI", "-", "IE", nullptr, "IM"},
             {"IO", "SO", "1", "MI", "1", "IO", nullptr, "IM"},
             {"IM", "SO", "1", "MI", "1", "IM", nullptr, "IM"},
             {"SI", nullptr, "", "MI", "-", "II", "SS", "IM"},
             {"SS", nullptr, "", "MI", "-", "IS", nullptr, "IM"},
             {"SO", nullptr, "", "MI", "-", "IO", nullptr, "IM"},
             {"EI", nullptr, "", "MI", "-", "II", "SS", "IM"},
             {"OI", nullptr, "", "MI", "-", "II", "OS", "IM"},
             {"OS", nullptr, "", "MI", "-", "IS", nullptr, "IM"},
             {"MI", nullptr, "", "MI", "-", "II", "OS", "IM"},
         })
        check(Protocol::kMoesi, row);
}

}  // namespace

}  // namespace machine_coherence_test
