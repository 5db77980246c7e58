// Sampling (--sample): a thread captures one burst of its instructions in each period, with a
// warm-up right before it. Bursts, and the records of their ends, have the same places as in the
// native driver (native/process/bursts.h).
#include "framework/driver/qemu/guest_thread.h"

namespace assay::qemu {

void GuestThread::begin_bursts(std::uint32_t thread) {
    const trace::Regions& regions = tables_->spec().regions;
    bursts_ = {.places = driver::BurstPlaces(regions, thread),
               .next_interval = regions.sample_interval};
    bursts_.boundary = bursts_.places.next_rest();
    slot_->executed.store(0, std::memory_order_relaxed);
}

void GuestThread::end_bursts() {
    // Without code there are no sites.
    if (tables_->next_block() == 0) return;
    if (bursts_.part == Bursts::Part::kBurst && tables_->spec().regions.recorded == 0)
        send_counts();
    send_intervals();
    send_end(trace::kThreadEnds);
}

bool GuestThread::go_on_in_bursts(const GuestBlock& block) {
    while (bursts_.executed + block.instr_count > bursts_.boundary) change_burst(block.pc);
    bursts_.executed += block.instr_count;
    slot_->executed.store(bursts_.executed, std::memory_order_relaxed);
    return bursts_.part != Bursts::Part::kRest;
}

// `pc`: where the thread goes on.
void GuestThread::change_burst(std::uint64_t pc) {
    const trace::Regions& regions = tables_->spec().regions;
    if (regions.recorded != 0) {
        if (bursts_.part == Bursts::Part::kRest)
            send_end(trace::kRestEnds);
        else
            append(pc, tables_->known_site(TRACE_SITE_BURST), trace::kGoesOnAt);
    }
    if (bursts_.part == Bursts::Part::kRest && regions.sample_warm_up != 0) {
        bursts_.part = Bursts::Part::kWarmUp;
        bursts_.boundary += regions.sample_warm_up;
    } else if (bursts_.part == Bursts::Part::kBurst) {
        send_end(trace::kBurstEnds);
        tables_->ring_doorbell();
        bursts_.part = Bursts::Part::kRest;
        bursts_.boundary += bursts_.places.next_rest();
    } else {
        if (bursts_.part == Bursts::Part::kWarmUp) send_end(trace::kWarmUpEnds);
        send_intervals();
        bursts_.part = Bursts::Part::kBurst;
        bursts_.boundary += regions.sample_burst;
    }
}

// No buffer has records of two parts.
void GuestThread::send_end(trace::EndOf of) {
    // A recording has a record of each execution instead.
    if (tables_->spec().regions.recorded == 0) send_counts();
    append(bursts_.executed, tables_->known_site(TRACE_SITE_BURST), of);
    const auto* const start = reinterpret_cast<const trace_record_t*>(
        slot_->buffer_start.load(std::memory_order_relaxed));
    if (next_ != start) complete();
}

// A burst belongs to the interval in which it starts.
void GuestThread::send_intervals() {
    if (bursts_.next_interval == 0) return;
    const std::uint64_t length = tables_->spec().regions.sample_interval;
    for (; bursts_.next_interval < bursts_.executed; bursts_.next_interval += length)
        append(length, tables_->known_site(TRACE_SITE_INTERVAL));
}

}  // namespace assay::qemu
