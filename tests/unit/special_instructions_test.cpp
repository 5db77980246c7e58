// Instructions that C++ looks at when they run: what of them is recorded, and what they do.
#include "framework/driver/native/run/special_instructions.h"
#include "assay/client.h"
#include "framework/driver/native/run/execution.h"
#include "framework/driver/native/run/special_references.h"

#include "tests/unit/driver_parts.h"

#include <array>
#include <string_view>

namespace special_instructions_test {

using namespace assay;
using namespace assay::native;

namespace {

constexpr std::uint32_t kSite = 7;
constexpr std::uint64_t kPage = 4096, kLine = 64;

constexpr trace::Spec kUnfiltered{trace::kCaptureBlockCounts | trace::kCaptureReferences};

// A record, to be compared and shown.
struct Seen {
    std::uint64_t value;
    std::uint32_t site, aux = 0;

    friend bool operator==(const Seen&, const Seen&) = default;
    friend doctest::String toString(const Seen& seen) {
        return doctest::toString(seen.value) + " at " + doctest::toString(seen.site) + " aux " +
               doctest::toString(seen.aux);
    }
};

// One thread that is about to execute an instruction. Its memory is that of the code, from the
// second page on; `code` is what has been asked for before.
class SpecialInstruction {
  public:
    explicit SpecialInstruction(const trace::Spec& spec = kEverything) : parts(spec) {
        parts.memory.add(
            {.start = data(0), .end = data(8 * kPage), .writable = true, .changeable = true});
        // What is there already: int3.
        std::memset(reinterpret_cast<void*>(data(0)), 0, 8 * kPage);
    }

    std::uint64_t data(std::uint64_t offset) const { return parts.start + kPage + offset; }
    std::uint64_t& gpr(unsigned reg) { return parts.context->gpr[reg]; }
    // With the site kSite, and those that follow.
    std::vector<Seen> record(const Assembled& instruction) {
        const std::size_t before = parts.records().size();
        SpecialReferences(parts.trace, parts.buffers, *parts.context, parts.watch, lock)
            .record(parts.decoded(instruction), kSite);
        std::vector<Seen> seen;
        for (const trace_record_t& record : parts.records().subspan(before))
            seen.push_back({record.value, record.site, record.aux});
        return seen;
    }
    // The lowest 16 bytes of a vector register, which the saved state has from now on.
    void set_xmm(unsigned reg, const std::array<std::uint32_t, 4>& lanes) {
        constexpr std::size_t kXmm0 = 160, kHeader = 512;
        constexpr std::uint64_t kSse = 2;
        std::memcpy(parts.context->vector_state + kXmm0 + 16ULL * reg, lanes.data(), 16);
        std::memcpy(parts.context->vector_state + kHeader, &kSse, sizeof kSse);
    }
    void protect(std::uint64_t page, int protection) const {
        REQUIRE(mprotect(reinterpret_cast<void*>(page), kPage, protection) == 0);
    }

    DriverParts parts;
    DriverLock lock;
};

const Assembled kCopyBytes{"rep movsb", {0xf3, 0xa4}};
const Assembled kFindByte{"repne scasb", {0xf2, 0xae}};
// vpgatherdd xmm0, [rax + xmm1 * 4], xmm2
const Assembled kGather{"vpgatherdd", {0xc4, 0xe2, 0x69, 0x90, 0x04, 0x88}};

}  // namespace

// --- Repeated strings.

TEST_CASE("strings: each line of a copy is recorded once, and how many iterations there are") {
    SpecialInstruction at;
    at.gpr(RSI) = at.data(0), at.gpr(RDI) = at.data(1024), at.gpr(RCX) = 100;
    CHECK(at.record(kCopyBytes) == std::vector<Seen>{{at.data(0), kSite},
                                                     {at.data(1024), kSite + 1},
                                                     {at.data(kLine), kSite},
                                                     {at.data(1024 + kLine), kSite + 1},
                                                     {100, kSite + 2}});
    // The filter's lines are still those.
    at.gpr(RCX) = 64;
    at.gpr(RSI) = at.data(kLine), at.gpr(RDI) = at.data(1024 + kLine);
    CHECK(at.record(kCopyBytes) == std::vector<Seen>{{64, kSite + 2}});
}

TEST_CASE("strings: without a filter all references are recorded, in the order of iterations") {
    SpecialInstruction at(kUnfiltered);
    at.gpr(RSI) = at.data(0), at.gpr(RDI) = at.data(1024), at.gpr(RCX) = 2;
    CHECK(at.record(kCopyBytes) == std::vector<Seen>{{at.data(0), kSite},
                                                     {at.data(1024), kSite + 1},
                                                     {at.data(1), kSite},
                                                     {at.data(1025), kSite + 1},
                                                     {2, kSite + 2}});
}

TEST_CASE("strings: the direction flag makes them go down") {
    constexpr std::uint64_t kDirection = 0x400;
    SpecialInstruction at(kUnfiltered);
    at.parts.context->rflags = kDirection;
    at.gpr(RDI) = at.data(kPage), at.gpr(RCX) = 3;  // across a page's start
    CHECK(at.record({"rep stosq", {0xf3, 0x48, 0xab}}) ==
          std::vector<Seen>{{at.data(kPage), kSite},
                            {at.data(kPage - 8), kSite},
                            {at.data(kPage - 16), kSite},
                            {3, kSite + 1}});
}

TEST_CASE("strings: no iteration refers to anything") {
    SpecialInstruction at;
    CHECK(at.record(kCopyBytes) == std::vector<Seen>{{0, kSite + 2}});
}

TEST_CASE("strings: a comparison ends them, or the count does") {
    SpecialInstruction at(kUnfiltered);
    std::memcpy(reinterpret_cast<void*>(at.data(0)), "abc", 3);
    at.gpr(RDI) = at.data(0), at.gpr(RCX) = 10, at.gpr(RAX) = 'b';
    CHECK(at.record(kFindByte) ==
          std::vector<Seen>{{at.data(0), kSite}, {at.data(1), kSite}, {2, kSite + 1, 1}});
    at.gpr(RCX) = 1;
    CHECK(at.record(kFindByte) == std::vector<Seen>{{at.data(0), kSite}, {1, kSite + 1, 0}});
}

TEST_CASE("strings: they end with the iteration that faults") {
    const TargetMemoryFaults faults;
    SpecialInstruction at(kUnfiltered);
    at.protect(at.data(kPage), PROT_READ);
    at.gpr(RSI) = at.data(0), at.gpr(RDI) = at.data(kPage - 1), at.gpr(RCX) = 1'000'000;
    CHECK(at.record(kCopyBytes) == std::vector<Seen>{{at.data(0), kSite},
                                                     {at.data(kPage - 1), kSite + 1},
                                                     {at.data(1), kSite},
                                                     {at.data(kPage), kSite + 1},
                                                     {2, kSite + 2, 1}});
    at.protect(at.data(kPage), PROT_NONE);
    at.gpr(RDI) = at.data(kPage);
    CHECK(at.record(kFindByte) == std::vector<Seen>{{at.data(kPage), kSite}, {1, kSite + 1, 1}});
}

TEST_CASE("strings: a page that the driver protects is written to nevertheless") {
    const TargetMemoryFaults faults;
    SpecialInstruction at;
    REQUIRE_FALSE(at.parts.watch.begin(at.data(kPage)));
    REQUIRE(at.parts.watch.guards(at.data(kPage)));
    at.gpr(RSI) = at.data(0), at.gpr(RDI) = at.data(kPage), at.gpr(RCX) = 64;
    CHECK(at.record(kCopyBytes).back() == Seen{64, kSite + 2, 0});
    CHECK(at.lock.try_lock());  // it has been let go
}

TEST_CASE("strings: 32-bit offsets begin anew at 0") {
    const TargetMemoryFaults faults;  // nothing need be there
    SpecialInstruction at(kUnfiltered);
    constexpr std::uint64_t kLast = 0xffff'ffff;
    const std::uint64_t base = at.data(1) - kLast;
    at.parts.context->target_gs = base;
    at.gpr(RSI) = 0x5'0000'0000 | (kLast - 1);
    at.gpr(RCX) = 0x7'0000'0003;
    std::vector<Seen> seen = at.record({"rep lodsb gs:[esi]", {0x67, 0x65, 0xf3, 0xac}});
    seen.back().aux = 0;
    CHECK(seen == std::vector<Seen>{
                      {at.data(0), kSite}, {at.data(1), kSite}, {base, kSite}, {3, kSite + 1}});
}

TEST_CASE("strings: each iteration is a branch that is taken, and the end one that is not") {
    trace::Spec spec = kUnfiltered;
    spec.captures |= trace::kCapturePredictions;
    spec.predictor = {0, 8, 0};
    SpecialInstruction at(spec);
    at.parts.context->predictor.reset();
    at.gpr(RSI) = at.data(0), at.gpr(RDI) = at.data(1024), at.gpr(RCX) = 5;
    const Seen predicted = at.record(kCopyBytes).back();
    CHECK(predicted.value == 6);
    CHECK(predicted.site == kSite + 3);
    // Of a comparison, whether another one follows is a branch as well.
    std::memset(reinterpret_cast<void*>(at.data(0)), 'x', 64);
    at.gpr(RDI) = at.data(0), at.gpr(RCX) = 5, at.gpr(RAX) = 0;
    CHECK(at.record(kFindByte).back().value == 5 + 5 + 1);
}

// --- The filter.

TEST_CASE("filter: a reference to two lines is recorded, and both are the most recent") {
    SpecialInstruction at;
    const Assembled bit{"bts [rdi], rax", {0x48, 0x0f, 0xab, 0x07}};
    at.gpr(RDI) = at.data(kLine);
    CHECK(at.record(bit).size() == 1);
    CHECK(at.record(bit).empty());
    ReferenceRecorder recorder(at.parts.trace.spec(), *at.parts.context, at.parts.buffers, kSite,
                               1);
    recorder.reference(at.data(kLine + 60), 8, kSite);
    CHECK(at.parts.records().size() == 2);
    recorder.reference(at.data(2 * kLine), 8, kSite);
    CHECK(at.parts.records().size() == 2);
    // Another line of the same set.
    recorder.reference(at.data(2 * kLine + kPage), 8, kSite);
    recorder.reference(at.data(2 * kLine), 8, kSite);
    CHECK(at.parts.records().size() == 4);
}

TEST_CASE("filter: with objects, each reference has a record for its object") {
    trace::Spec spec = kEverything;
    spec.objects = trace::Spec::kObjectsOnly;
    SpecialInstruction at(spec);
    ReferenceRecorder recorder(spec, *at.parts.context, at.parts.buffers, kSite, 1);
    recorder.reference(at.data(kLine), 8, kSite);
    CHECK(at.parts.records().size() == 2);
    recorder.reference(at.data(kLine), 8, kSite);
    CHECK(at.parts.records().size() == 3);
    CHECK(at.parts.records().back().site == kSite - 1);
}

TEST_CASE("filter: with footprints, bytes of the most recent line are added to what it has") {
    trace::Spec spec = kEverything;
    spec.data.kind = trace::Filter::kFootprints;
    SpecialInstruction at(spec);
    ReferenceRecorder recorder(spec, *at.parts.context, at.parts.buffers, kSite, 1);
    const std::uint64_t line = at.data(kLine);
    const std::uint64_t place = line % kPage;
    recorder.reference(line + 4, 4, kSite);
    REQUIRE(at.parts.records().size() == 2);
    CHECK(at.parts.records()[0].site == kSite - 1);
    CHECK(at.parts.records()[0].aux == place);
    CHECK(at.parts.records()[1].value == line + 4);
    // The reference that brings the line tells its bytes itself.
    CHECK(at.parts.buffers.touched(place) == 0);
    recorder.reference(line + 8, 8, kSite);
    CHECK(at.parts.records().size() == 2);
    CHECK(at.parts.buffers.touched(place) == 0xff00);
    // What it had goes with the line that takes its place.
    recorder.reference(line + kPage, 1, kSite);
    REQUIRE(at.parts.records().size() == 4);
    CHECK(at.parts.records()[2].value == 0xff00);
    CHECK(at.parts.buffers.touched(place) == 0);
}

// --- Other references.

TEST_CASE("references: a gather's are those of the elements that its mask has") {
    SpecialInstruction at(kUnfiltered);
    constexpr std::uint32_t kSign = 0x80000000, kMinusOne = 0xffffffff;
    at.gpr(RAX) = at.data(64);
    at.set_xmm(1, {3, 5, kMinusOne, 9});
    at.set_xmm(2, {kSign, 0, kSign, 1});
    CHECK(at.record(kGather) ==
          std::vector<Seen>{{at.data(64 + 12), kSite}, {at.data(64 - 4), kSite}, {2, kSite + 1}});
    const auto first = first_access(*at.parts.context, at.parts.decoded(kGather));
    REQUIRE(first);
    CHECK(first->address[0] == at.data(64 + 12));
    at.set_xmm(2, {});
    CHECK(at.record(kGather) == std::vector<Seen>{{0, kSite + 1}});
    CHECK_FALSE(first_access(*at.parts.context, at.parts.decoded(kGather)));
}

TEST_CASE("references: a bit string's is to the byte with the bit") {
    SpecialInstruction at(kUnfiltered);
    at.gpr(RDI) = at.data(kPage);
    const auto refers_to = [&](const Assembled& instruction) {
        const std::vector<Seen> seen = at.record(instruction);
        REQUIRE(seen.size() == 1);
        return seen[0].value - at.data(kPage);
    };
    const Assembled wide{"bt [rdi], rax", {0x48, 0x0f, 0xa3, 0x07}};
    const Assembled narrow{"bt [rdi], ax", {0x66, 0x0f, 0xa3, 0x07}};
    at.gpr(RAX) = 801;
    CHECK(refers_to(wide) == 100);
    at.gpr(RAX) = static_cast<std::uint64_t>(-9);
    CHECK(static_cast<std::int64_t>(refers_to(wide)) == -2);
    at.gpr(RAX) = 0x1'0008;  // of which 16 bits count
    CHECK(refers_to(narrow) == 1);
    at.gpr(R9) = 16;
    CHECK(refers_to({"bt [rdi], r9", {0x4c, 0x0f, 0xa3, 0x0f}}) == 2);
}

TEST_CASE("references: xlat's is by al, clzero's to the whole line, both in their segment") {
    SpecialInstruction at(kUnfiltered);
    at.gpr(RBX) = at.data(0), at.gpr(RAX) = 0x1205;
    CHECK(at.record({"xlatb", {0xd7}}) == std::vector<Seen>{{at.data(5), kSite}});
    at.parts.context->target_fs = 0x100;
    CHECK(at.record({"xlatb fs:[rbx]", {0x64, 0xd7}}) ==
          std::vector<Seen>{{at.data(0x105), kSite}});
    at.gpr(RAX) = at.data(kLine + 9);
    CHECK(at.record({"clzero", {0x0f, 0x01, 0xfc}}) == std::vector<Seen>{{at.data(kLine), kSite}});
}

TEST_CASE("references: with footprints, all lines of a large one are looked at") {
    trace::Spec spec = kEverything;
    SpecialInstruction without(spec);
    const Assembled save{"fxsave [rax]", {0x0f, 0xae, 0x00}};
    without.gpr(RAX) = without.data(0);
    CHECK(without.record(save) == std::vector<Seen>{{without.data(0), kSite}});
    spec.data.kind = trace::Filter::kFootprints;
    SpecialInstruction with(spec);
    with.gpr(RAX) = with.data(0);
    const std::vector<Seen> seen = with.record(save);
    constexpr std::size_t kLines = 512 / kLine;
    REQUIRE(seen.size() == kLines + 1);
    for (std::size_t i = 0; i < kLines; ++i)
        CHECK(seen[i] == Seen{0, kSite - 1, static_cast<std::uint32_t>(i * kLine)});
    CHECK(seen.back() == Seen{with.data(0), kSite});
}

// --- Values.

TEST_CASE("values: what a special instruction stores is read behind it") {
    trace::Spec spec = kUnfiltered;
    spec.captures |= trace::kCaptureValues;
    SpecialInstruction at(spec);
    const Instruction stos = at.parts.decoded({"rep stosq", {0xf3, 0x48, 0xab}});
    trace::ValueLists& lists = at.parts.segment.value_lists();
    const trace::ValueList list{.selected = 1, .count = 1, .values = {TRACE_STORED}};
    for (auto& map : lists.lists)
        for (auto& opcode : map)
            for (trace::ValueList& of_access : opcode) of_access = list;
    auto* word = reinterpret_cast<std::uint64_t*>(at.data(0));
    *word = 1;
    at.gpr(RDI) = at.data(0), at.gpr(RCX) = 1;
    SpecialValues values(at.parts.trace, at.parts.buffers, *at.parts.context);
    values.read(stos);
    *word = 2;  // as the instruction does it
    at.gpr(RDI) += 8, at.gpr(RCX) = 0;
    values.record(stos, kSite);
    REQUIRE(at.parts.records().size() == 2);
    CHECK(at.parts.records()[0].site == kSite);
    CHECK(at.parts.records()[1].value == 2);
    CHECK(at.parts.records()[1].site == kSite + 1);
    // Without an iteration there is no value.
    values.read(stos);
    values.record(stos, kSite);
    CHECK(at.parts.records().size() == 3);
}

// --- Markers.

namespace {

class Marking {
  public:
    Marking() { parts.regions.initialise(parts.trace.spec()); }
    // What the program has in rdx behind a marker.
    std::uint64_t says(std::uint64_t operation, std::uint64_t argument = 0) {
        const std::array<std::uint64_t, 6> marker{operation, argument};
        parts.context->gpr[RAX] = reinterpret_cast<std::uint64_t>(marker.data());
        switched = do_marker(*parts.context, parts.buffers, parts.regions);
        return parts.context->gpr[RDX];
    }
    DriverParts parts;
    bool switched = false;
};

}  // namespace

TEST_CASE("markers: one is answered if it is known, and can be read") {
    const TargetMemoryFaults faults;
    Marking marking;
    CHECK(marking.says(ASSAY_IS_PROFILING) == 1);
    CHECK(marking.says(999) == 0);
    marking.parts.context->gpr[RAX] = 1;
    CHECK_FALSE(do_marker(*marking.parts.context, marking.parts.buffers, marking.parts.regions));
    CHECK(marking.parts.context->gpr[RDX] == 0);
}

TEST_CASE("markers: they switch collecting off and on") {
    Marking marking;
    CHECK(marking.says(ASSAY_STOP_COLLECTING) == 1);
    CHECK(marking.switched);
    CHECK(marking.parts.regions.version_of(*marking.parts.context) == kPlain);
    CHECK(marking.says(ASSAY_STOP_COLLECTING) == 1);
    CHECK_FALSE(marking.switched);
    CHECK(marking.says(ASSAY_START_COLLECTING) == 1);
    CHECK(marking.switched);
    CHECK(marking.parts.regions.version_of(*marking.parts.context) == kCollecting);
}

TEST_CASE("markers: a phase's name is noted, with where in the trace it begins") {
    Marking marking;
    const collector::Segment& segment = marking.parts.segment;
    marking.parts.buffers.append(0x1000, kSite);
    const std::uint64_t before = segment.control().event_log_bytes;
    CHECK(marking.says(ASSAY_BEGIN_PHASE, reinterpret_cast<std::uint64_t>("setup")) == 1);
    CHECK_FALSE(marking.switched);
    trace::EventHeader header;
    trace::MarkerEvent event;
    REQUIRE(segment.control().event_log_bytes > before);
    const std::byte* logged = segment.event_log() + before;
    std::memcpy(&header, logged, sizeof header);
    std::memcpy(&event, logged + sizeof header, sizeof event);
    CHECK(header.type == trace::EventType::kMarker);
    CHECK(event.operation == ASSAY_BEGIN_PHASE);
    CHECK(event.record == 1);
    const std::string_view name(
        reinterpret_cast<const char*>(logged + sizeof header + sizeof event));
    CHECK(name == "setup");
}

// --- What the processor says, and iretq.

TEST_CASE("cpuid is answered by the level asked for, xgetbv if there is such a register") {
    SpecialInstruction at;
    const ShownProcessor v2(RealProcessor::own(), trace::CpuLevel::kV2),
        v4(RealProcessor::own(), trace::CpuLevel::kV4);
    at.gpr(RAX) = 7, at.gpr(RCX) = 0;
    CHECK(identify(*at.parts.context, at.parts.decoded({"cpuid", {0x0f, 0xa2}}), v2));
    constexpr std::uint64_t kAvx2 = 1 << 5;
    CHECK((at.gpr(RBX) & kAvx2) == 0);
    const Instruction xgetbv = at.parts.decoded({"xgetbv", {0x0f, 0x01, 0xd0}});
    at.gpr(RCX) = 1;
    CHECK(identify(*at.parts.context, xgetbv, v4));
    CHECK(at.gpr(RAX) == v4.xcr0());
    const ShownProcessor v3(RealProcessor::own(), trace::CpuLevel::kV3);
    CHECK_FALSE(identify(*at.parts.context, xgetbv, v3));
    at.gpr(RCX) = 2;
    CHECK_FALSE(identify(*at.parts.context, xgetbv, v4));
}

TEST_CASE("iretq: takes all from the stack, unless it would go on in another mode") {
    const TargetMemoryFaults faults;
    const auto context = std::make_unique<Context>();
    constexpr std::uint64_t kCarry = 1, kInterrupts = 0x200, kPrivilege = 0x3000;
    std::array<std::uint64_t, 5> frame{0x1234, 0x33, kCarry | kPrivilege, 0x5678, 0x2b};
    context->gpr[RSP] = reinterpret_cast<std::uint64_t>(frame.data());
    context->rflags = kInterrupts;
    REQUIRE(return_from_interrupt(*context));
    CHECK(context->pc == 0x1234);
    CHECK(context->gpr[RSP] == 0x5678);
    CHECK(context->rflags == (kInterrupts | kCarry));

    context->gpr[RSP] = reinterpret_cast<std::uint64_t>(frame.data());
    frame[1] = 0x23;  // 32-bit code
    CHECK_FALSE(return_from_interrupt(*context));
    context->gpr[RSP] = 8;
    CHECK_FALSE(return_from_interrupt(*context));
    CHECK(context->gpr[RSP] == 8);
    CHECK(context->pc == 0x1234);
}

}  // namespace special_instructions_test
