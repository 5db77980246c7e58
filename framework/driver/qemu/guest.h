// The program or machine that QEMU runs: the state that its threads and the plugin's callbacks
// share. A vCPU of a machine is a thread.
#pragma once

#include "framework/driver/qemu/guest_calls.h"
#include "framework/driver/qemu/guest_code.h"
#include "framework/driver/qemu/guest_image.h"
#include "framework/driver/qemu/guest_mappings.h"
#include "framework/driver/qemu/guest_thread.h"
#include "framework/driver/qemu/regions.h"
#include "framework/driver/shared/trace_tables.h"
#include "framework/isa/architecture.h"
#include "framework/trace/launch.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace assay::qemu {

// The threads by vCPU; nullptr: there is none. Not in Guest, because each reference needs it.
inline GuestThread* threads[trace::kMaxThreads] = {};

class Guest {
  public:
    // `numbers`: nullptr for a whole machine.
    Guest(const isa::Architecture& architecture, const CallNumbers* numbers);

    // Maps the trace segment. False on failure.
    bool attach(const trace::Launch& launch);
    // Before the first thread begins.
    void set_machine(std::unique_ptr<const GuestImage> image, bool parallel);
    // A machine executes this code for the first time. Refuses a kernel that does not run where
    // its image says.
    void check(std::uint64_t pc, std::span<const std::uint8_t> bytes);
    bool is_machine() const { return numbers_ == nullptr; }

    // --- Threads. QEMU gives the number of an ended thread's vCPU to a later one.

    void begin_thread(unsigned vcpu);
    void end_thread(unsigned vcpu);
    // Later translations are for several threads at a time. QEMU translates all code again before
    // the second thread begins.
    bool parallel() const { return parallel_; }

    // --- System calls, before and after QEMU makes them.

    struct Arguments {
        std::uint64_t values[6];
    };
    void before_call(unsigned vcpu, std::int64_t number, const Arguments& arguments);
    void after_call(std::int64_t number);
    // In the child of a fork, which the thread before_call() was called in last has made.
    void become_child();

    // The program or machine ends by itself.
    void ends();
    // Ends the program with a message: the driver cannot run it further.
    [[noreturn]] void refuse(const std::string& why);
    // As GuestCode::seen(). Ends the program if there is no site.
    Operation::Seen seen(Operation& operation, std::uint32_t info, unsigned bytes, bool writes);
    // An instruction has cleared a line: QEMU does not tell which one.
    void note_cleared_line();
    // While parallel() is false.
    std::uint64_t* counters_of_only_thread() const { return all_.front()->counters(); }
    // The distance from the program's addresses to those of this process.
    void set_base(std::uint64_t base) { base_ = base; }

    std::mutex lock;  // for everything except the threads themselves
    driver::TraceTables tables;
    GuestCode code;
    Regions regions;
    GuestMappings mappings;

  private:
    void note_handler(std::uint64_t action);
    void execute(std::uint64_t path, std::uint64_t arguments, std::uint64_t environment);
    void replace(const std::string& file, std::vector<std::string>& arguments,
                 std::vector<std::string>& environment);
    GuestMemory memory() const;
    void note_architecture(const driver::NewImage& image) const;

    // Ends the program if most of the executed code of a kernel differs from its image.
    void check_image();

    const isa::Architecture& architecture_;
    const CallNumbers* const numbers_;
    std::unique_ptr<const GuestImage> image_;
    unsigned kernel_blocks_ = 0, equal_blocks_ = 0;  // the first ones, and those in the image
    std::vector<std::unique_ptr<GuestThread>> all_;
    std::vector<GuestThread*> idle_;
    std::uint32_t next_thread_ = 0;
    bool parallel_ = false;
    bool clears_lines_ = false;
    bool leaves_ = false;  // an execve(2) of a program that is not profiled has begun
    std::uint64_t base_ = 0;
    std::string own_program_;  // of a machine: its image
};

// Never destroyed: callbacks can come until the process has ended.
inline Guest* guest = nullptr;

}  // namespace assay::qemu
