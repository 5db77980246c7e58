#include "framework/driver/native/code_cache/stress.h"

#include <unistd.h>
#include <ctime>

namespace assay::native {
namespace {

constexpr int kMark = 0x61737361;
constexpr std::uint32_t kForgetOneOf = 16, kFlushOneOf = 4096;
constexpr long kInterval = 1'000'000;  // nanoseconds of the thread's processor time

}  // namespace

// Processor time stands still during a waiting system call, which an interruption would disturb.
void Stress::begin_thread() const {
    if (!enabled_) return;
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGTRAP;
    event.sigev_value.sival_int = kMark;
    event._sigev_un._tid = gettid();
    timer_t timer;
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0) return;
    const itimerspec often{{0, kInterval}, {0, kInterval}};
    timer_settime(timer, 0, &often, nullptr);
}

bool Stress::is_interruption(int number, const siginfo_t& info) {
    return number == SIGTRAP && info.si_code == SI_TIMER && info.si_value.sival_int == kMark;
}

bool Stress::disturb(CodeCache& cache) {
    if (!enabled_ || cache.blocks().empty()) return false;
    if (next_random() % kForgetOneOf == 0) {
        const Block& block = cache.blocks()[next_random() % cache.blocks().size()];
        cache.invalidate(block.pc, block.pc + 1);
    }
    return next_random() % kFlushOneOf == 0;
}

// xorshift with 32 bits (Marsaglia 2003).
std::uint32_t Stress::next_random() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 17;
    random_ ^= random_ << 5;
    return random_;
}

}  // namespace assay::native
