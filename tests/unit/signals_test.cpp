// Signals of a thread, and how translated code is left for them, without a thread that runs.
#include "framework/driver/native/process/signals.h"

#include "framework/driver/native/process/code_faults.h"
#include "tests/unit/driver_parts.h"

#include <atomic>
#include <utility>

namespace signals_test {

using namespace assay;
using namespace assay::native;

namespace {

constexpr std::uint64_t kHandler = 0x1000, kRestorer = 0x2000, kStart = 0x123;

// The mask and the alternate stack that the test itself has.
class OwnSignalState {
  public:
    OwnSignalState() {
        sigprocmask(SIG_SETMASK, nullptr, &mask_);
        sigaltstack(nullptr, &stack_);
    }
    ~OwnSignalState() {
        sigaltstack(&stack_, nullptr);
        sigprocmask(SIG_SETMASK, &mask_, nullptr);
    }
    OwnSignalState(const OwnSignalState&) = delete;
    OwnSignalState& operator=(const OwnSignalState&) = delete;

  private:
    sigset_t mask_;
    stack_t stack_;
};

class ThreadParts {
  public:
    ThreadParts() {
        parts.regions.initialise(parts.trace.spec());
        Context& context = *parts.context;
        context.exit_glue = reinterpret_cast<std::uint64_t>(&assay_exit);
        context.frame_bytes = 512;  // what FXSAVE writes
        context.saving = kSavedByFxsave;
        context.gpr[RSP] = reinterpret_cast<std::uint64_t>(std::end(stack));
        context.pc = kStart;
        signals.initialise(context, 0, {.ss_flags = SS_DISABLE});
    }
    // A unit of these instructions; where its hot code begins.
    const Unit& translate(std::initializer_list<Assembled> instructions) {
        const Block* block =
            parts.translator.translate(parts.code(0, instructions), kCollecting, false);
        REQUIRE(block != nullptr);
        return parts.cache.units()[block->unit];
    }
    // The first place in the unit where an instruction behind the first one may fault.
    std::uint64_t second_instruction(const Unit& unit) const {
        for (std::uint64_t pc = unit.hot_begin; pc < unit.hot_end; ++pc) {
            const RecoveryPoint* point = parts.cache.point_at(pc);
            if (point != nullptr && point->executed == 2) return pc;
        }
        FAIL("no instruction may fault");
        return 0;
    }
    ucontext_t interrupted_at(std::uint64_t host_pc) const {
        ucontext_t interrupted{};
        set_pc(&interrupted, host_pc);
        return interrupted;
    }

  private:
    OwnSignalState own_;

  public:
    alignas(64) unsigned char stack[8192] = {};
    DriverParts parts;
    DriverLock lock;
    LoadedProgram program;
    std::atomic<std::uint64_t> waited = 0;
    Intervals intervals{parts.trace, parts.buffers};
    Stepper stepper{parts.cache, lock, parts.buffers};
    CodeFaults faults{
        {lock, parts.cache, parts.watch, parts.translator, parts.regions, parts.trace},
        program,
        parts.buffers,
        intervals};
    Signals signals{parts.cache, stepper, faults, waited};
};

siginfo_t info_of(int number, int code, std::uint64_t address = 0) {
    siginfo_t info{};
    info.si_signo = number;
    info.si_code = code;
    info.si_addr = reinterpret_cast<void*>(address);
    return info;
}

// Dispositions of signals, put back in the kernel.
class Disposition {
  public:
    Disposition(int number, const KernelAction& action) : number_(number) {
        REQUIRE(actions.set(number, &action, &before_) == 0);
    }
    ~Disposition() { actions.set(number_, &before_, nullptr); }
    Disposition(const Disposition&) = delete;
    Disposition& operator=(const Disposition&) = delete;

    SignalActions actions;

  private:
    int number_;
    KernelAction before_;
};

bool has_trap_flag(const ucontext_t& interrupted) {
    return interrupted.uc_mcontext.gregs[REG_EFL] & static_cast<greg_t>(kTrapFlag);
}

// mov rax, [rdi]; mov rdx, [rsi]; ret
const std::initializer_list<Assembled> kTwoLoads{{"mov rax, [rdi]", {0x48, 0x8b, 0x07}},
                                                 {"mov rdx, [rsi]", {0x48, 0x8b, 0x16}},
                                                 {"ret", {0xc3}}};

}  // namespace

// --- Delivery.

TEST_CASE("signals: a handler's frame has the state, and the handler gets it back") {
    const auto thread = std::make_unique<ThreadParts>();
    Context& context = *thread->parts.context;
    const Disposition usr1(SIGUSR1,
                           {kHandler, SA_SIGINFO | 0x04000000, kRestorer, mask_of(SIGUSR2)});
    const std::uint64_t sp = context.gpr[RSP];
    context.gpr[RBX] = 77;
    ucontext_t interrupted = thread->interrupted_at(0x10);
    REQUIRE(thread->signals.arrive(SIGUSR1, info_of(SIGUSR1, SI_QUEUE), &interrupted));
    REQUIRE(thread->signals.pending());
    SignalActions actions = usr1.actions;
    const Signals::Delivery delivery = thread->signals.deliver(actions);
    CHECK(delivery.result == Signals::Delivery::kHandler);
    CHECK(delivery.number == SIGUSR1);
    CHECK_FALSE(thread->signals.pending());
    CHECK(thread->signals.mask() == (mask_of(SIGUSR1) | mask_of(SIGUSR2)));
    CHECK(context.pc == kHandler);
    CHECK(context.gpr[RDI] == SIGUSR1);
    CHECK(context.gpr[RSP] % 16 == 8);
    CHECK(*reinterpret_cast<std::uint64_t*>(context.gpr[RSP]) == kRestorer);
    CHECK(reinterpret_cast<siginfo_t*>(context.gpr[RSI])->si_code == SI_QUEUE);
    const auto& seen = *reinterpret_cast<ucontext_t*>(context.gpr[RDX]);
    CHECK(seen.uc_mcontext.gregs[REG_RBX] == 77);
    CHECK(seen.uc_mcontext.gregs[REG_RIP] == kStart);
    CHECK(seen.uc_mcontext.gregs[REG_RSP] == static_cast<greg_t>(sp));

    context.gpr[RBX] = 0;
    context.gpr[RSP] += 8;  // the handler returns
    thread->signals.return_from_handler();
    CHECK(context.gpr[RBX] == 77);
    CHECK(context.gpr[RSP] == sp);
    CHECK(context.pc == kStart);
    CHECK(thread->signals.mask() == 0);
}

TEST_CASE("signals: one that is ignored meanwhile is forgotten, by another the process ends") {
    const auto thread = std::make_unique<ThreadParts>();
    const Disposition usr1(SIGUSR1, {.handler = reinterpret_cast<std::uint64_t>(SIG_IGN)});
    SignalActions actions = usr1.actions;
    ucontext_t interrupted = thread->interrupted_at(0x10);
    REQUIRE(thread->signals.arrive(SIGUSR1, info_of(SIGUSR1, SI_USER), &interrupted));
    CHECK(thread->signals.deliver(actions).result == Signals::Delivery::kNothing);
    REQUIRE_FALSE(thread->signals.pending());
    // Of this one that is the default, which another thread may have restored.
    REQUIRE(thread->signals.arrive(SIGWINCH, info_of(SIGWINCH, SI_USER), &interrupted));
    CHECK(thread->signals.deliver(actions).result == Signals::Delivery::kNothing);
    REQUIRE_FALSE(thread->signals.pending());
    REQUIRE(thread->signals.arrive(SIGTERM, info_of(SIGTERM, SI_USER), &interrupted));
    const Signals::Delivery delivery = thread->signals.deliver(actions);
    CHECK(delivery.result == Signals::Delivery::kDeath);
    CHECK(delivery.number == SIGTERM);
}

TEST_CASE("signals: a fault whose signal is blocked ends the process though it has a handler") {
    const auto thread = std::make_unique<ThreadParts>();
    const Disposition ill(SIGILL, {kHandler, SA_SIGINFO | 0x04000000, kRestorer, 0});
    SignalActions actions = ill.actions;
    const std::uint64_t blocked = mask_of(SIGILL);
    REQUIRE(thread->signals.set_mask(SIG_BLOCK, &blocked, nullptr) == 0);
    thread->signals.raise_fault(SIGILL, ILL_ILLOPN, kStart);
    CHECK(thread->signals.deliver(actions).result == Signals::Delivery::kDeath);
}

TEST_CASE("signals: where a handler has no stack, SIGSEGV takes its place, and then ends all") {
    const TargetMemoryFaults faults;
    const auto thread = std::make_unique<ThreadParts>();
    const Disposition usr1(SIGUSR1, {kHandler, SA_SIGINFO | 0x04000000, kRestorer, 0});
    SignalActions actions = usr1.actions;
    thread->parts.context->gpr[RSP] = 8192;
    ucontext_t interrupted = thread->interrupted_at(0x10);
    REQUIRE(thread->signals.arrive(SIGUSR1, info_of(SIGUSR1, SI_QUEUE), &interrupted));
    CHECK(thread->signals.deliver(actions).result == Signals::Delivery::kOtherSignal);
    CHECK(thread->signals.pending());
    const Signals::Delivery delivery = thread->signals.deliver(actions);
    CHECK(delivery.result == Signals::Delivery::kDeath);
    CHECK(delivery.number == SIGSEGV);
}

// --- Translated code.

TEST_CASE("signals: translated code is left at a block's entry, elsewhere by single steps") {
    const auto thread = std::make_unique<ThreadParts>();
    const Unit& unit = thread->translate(kTwoLoads);
    const std::uint64_t entry = thread->parts.cache.blocks()[unit.first_block].entry;
    Context& context = *thread->parts.context;

    ucontext_t interrupted = thread->interrupted_at(thread->second_instruction(unit));
    const std::uint64_t inside = pc_of(&interrupted);
    REQUIRE(thread->signals.arrive(SIGUSR1, info_of(SIGUSR1, SI_USER), &interrupted));
    CHECK(pc_of(&interrupted) == inside);
    CHECK(has_trap_flag(interrupted));
    CHECK(thread->stepper.is_stepping());

    set_pc(&interrupted, entry);
    REQUIRE(thread->signals.arrive(SIGTRAP, info_of(SIGTRAP, TRAP_TRACE), &interrupted));
    CHECK(pc_of(&interrupted) == context.exit_glue);
    CHECK_FALSE(has_trap_flag(interrupted));
    CHECK_FALSE(thread->stepper.is_stepping());
    CHECK(context.exit_id == kInterrupted);
    CHECK(context.pc == thread->parts.start);
}

TEST_CASE("signals: a fault is told with what of the block was executed, unless it comes again") {
    for (const bool again : {false, true}) {
        CAPTURE(again);
        const auto thread = std::make_unique<ThreadParts>();
        const Unit& unit = thread->translate(kTwoLoads);
        Context& context = *thread->parts.context;
        const collector::Segment& segment = thread->parts.segment;
        const std::uint64_t before = segment.control().event_log_bytes;
        ucontext_t interrupted = thread->interrupted_at(thread->second_instruction(unit));
        // Behind a signal that waits, the instruction is executed once more.
        if (again)
            REQUIRE(thread->signals.arrive(SIGUSR1, info_of(SIGUSR1, SI_USER), &interrupted));
        REQUIRE(thread->signals.arrive(SIGSEGV, info_of(SIGSEGV, SEGV_MAPERR, 0x40), &interrupted));
        CHECK(pc_of(&interrupted) == context.exit_glue);
        CHECK(context.pc == thread->parts.start + 3);
        SignalActions actions;
        CHECK(thread->signals.deliver(actions).number == (again ? SIGUSR1 : SIGSEGV));
        trace::EventHeader header;
        trace::PartialEvent event;
        REQUIRE(segment.control().event_log_bytes > before);
        std::memcpy(&header, segment.event_log() + before, sizeof header);
        std::memcpy(&event, segment.event_log() + before + sizeof header, sizeof event);
        CHECK(header.type == trace::EventType::kPartial);
        CHECK(event.executed == (again ? 1 : 2));  // with the one that faults
        CHECK(event.slot == 0);
        CHECK(thread->lock.try_lock());  // nobody keeps it
    }
}

TEST_CASE("signals: a fault in the driver itself is nobody's") {
    const auto thread = std::make_unique<ThreadParts>();
    const std::uint8_t code[4] = {0x90, 0x90, 0x90, 0x90};
    ucontext_t interrupted = thread->interrupted_at(reinterpret_cast<std::uint64_t>(code + 2));
    CHECK_FALSE(thread->signals.arrive(SIGSEGV, info_of(SIGSEGV, SEGV_MAPERR, 0x40), &interrupted));
    // But in copies for the program it is an error to return.
    set_pc(&interrupted, reinterpret_cast<std::uint64_t>(&assay_copy) + 3);
    CHECK(thread->signals.arrive(SIGSEGV, info_of(SIGSEGV, SEGV_MAPERR, 0x40), &interrupted));
    CHECK(pc_of(&interrupted) == reinterpret_cast<std::uint64_t>(assay_copy_end));
}

}  // namespace signals_test
