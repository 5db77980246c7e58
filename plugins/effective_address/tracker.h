// Collects the statistics of a program's data operands from trace records.
#pragma once

#include "plugins/common/page_map.h"
#include "plugins/effective_address/operand.h"
#include "plugins/effective_address/sharing.h"

#include "assay/trace_types.h"

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace effective_address {

// The state of an operand in one thread. It is the state that the driver uses to omit continuing
// references (trace_capture_runs).
struct alignas(32) Stream {
    std::uint64_t last;   // address; 0 before the first
    std::int64_t stride;  // of the last reference; for the first reference, its address
    std::uint64_t count;  // of references in the run that are not yet added to the operand
    bool known;           // there was a reference
    std::uint32_t since;  // the thread's latest site when the run began

    ReferenceRun run() const { return {last, stride, count}; }
};

class Tracker {
  public:
    Tracker();

    // `sites` and `instrs` are the whole tables. The tracker knows their beginnings already.
    void learn(std::span<const trace_site_t> sites, const trace_instr_t* instrs);
    // Takes records of one thread. Their sites must have been learnt. `alone`: no other thread has
    // existed yet.
    void process(std::uint32_t thread, bool alone, std::span<const trace_record_t> records);
    // The thread has ended. `sites` comes from TRACE_MARKER_THREAD_END.
    void end(std::uint32_t thread, std::uint64_t sites);
    // Call it before the first record if take_changed() will be called.
    void note_changes() { notes_changes_ = true; }
    // The numbers of operands with references since the last call. Adds their current runs to them,
    // which may continue.
    std::vector<std::uint32_t> take_changed();
    // Call it when all threads have ended.
    void finish();

    // In the order in which they were found.
    std::span<const Operand> operands() const {
        return {operands_.data() + 1, operands_.size() - 1};
    }
    // Operands are numbered from 1, as in Touch::operand.
    const Operand& operand(std::uint32_t number) const { return operands_[number]; }
    // One of the sites of the operand.
    std::uint32_t site(std::uint32_t operand) const { return sites_[operand]; }
    Sharing& sharing() { return sharing_; }
    const Sharing& sharing() const { return sharing_; }
    const ThreadEnds& ends() const { return ends_; }

  private:
    // The number of threads that a driver can run at the same time. Only a damaged trace has more.
    // In that case, those that were idle longest are ended.
    static constexpr std::size_t kMostThreads = 1024;
    static constexpr std::size_t kMostOperands = std::size_t{64} << 20;  // of sites

    struct Key {
        std::uint64_t pc;
        std::uint64_t operand;  // its number, kind and size
        bool operator==(const Key&) const = default;
    };
    struct KeyHash {
        std::size_t operator()(const Key& key) const;
    };
    struct Thread {
        pages::ZeroPages<Stream> streams{kMostOperands};  // by operand
        std::uint32_t number = 0;
        bool alone = true;              // no other thread has existed yet
        std::uint32_t latest_site = 0;  // highest site since another thread exists
        std::uint64_t last_used = 0;
    };

    std::uint32_t operand_of(const trace_site_t& site, const trace_instr_t& instr);
    Thread& thread_of(std::uint32_t number);
    void end_runs(Thread& thread);
    void note(std::span<const trace_record_t> records);
    void add_operand(std::uint64_t pc, std::uint16_t bytes, std::uint8_t number, bool writes);
    template <bool kAlone>
    void follow(Thread& thread, std::span<const trace_record_t> records);
    void take_each(Stream& stream, std::uint32_t operand, const trace_record_t& record);
    void take_left_out(Stream& stream, std::uint32_t operand, std::uint32_t references);
    void take_irregular(Thread& thread, std::uint32_t operand, const trace_record_t& record);
    void begin_run(Thread& thread, std::uint32_t operand, const ReferenceRun& ended,
                   std::uint32_t site);
    void end(std::map<std::uint32_t, Thread>::iterator thread);
    void end_run(Thread& thread, std::uint32_t operand);
    // `since` is Stream::since.
    void add_run(const Thread& thread, std::uint32_t operand, const ReferenceRun& run,
                 std::uint32_t since);
    void take_single(std::uint32_t operand, std::uint64_t address, std::int64_t stride);
    bool take_with_stride(std::uint32_t operand, std::uint64_t address, std::int64_t stride);
    void add_other(std::uint32_t operand, std::uint64_t address);
    void change_kind(std::uint32_t operand);
    void take_at_once(Thread& thread, std::uint32_t operand);
    void share(const Thread& thread, std::uint32_t operand, const ReferenceRun& run,
               std::uint32_t since);

    std::vector<std::uint32_t> operand_of_site_;
    // An instruction can be in several blocks, and then has several sites.
    std::unordered_map<Key, std::uint32_t, KeyHash> numbers_;
    std::vector<Operand> operands_;     // the first stands for no operand
    std::vector<Operand::Kind> kinds_;  // by operand
    std::vector<std::uint32_t> sites_;  // by operand
    bool notes_changes_ = false;
    std::vector<bool> is_changed_;  // by operand
    std::vector<std::uint32_t> changed_;
    std::map<std::uint32_t, Thread> threads_;
    std::uint64_t buffers_ = 0;
    Footprint::Budget budget_;
    Sharing sharing_;
    ThreadEnds ends_;
};

}  // namespace effective_address
