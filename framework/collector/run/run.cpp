#include "framework/collector/run/run.h"

#include "framework/collector/launch/emulator.h"
#include "framework/collector/launch/program.h"
#include "framework/collector/launch/supervisor.h"
#include "framework/collector/run/collection.h"
#include "framework/collector/run/overview.h"
#include "framework/collector/run/session.h"
#include "framework/driver/replay/replay_driver.h"
#include "framework/support/error.h"
#include "framework/support/large_heap.h"
#include "framework/support/log.h"
#include "framework/support/mpi_rank.h"
#include "framework/support/text.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/personality.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace assay::collector {
namespace {

constexpr int kHeapStep = 64 << 20;

class OpenFile {
  public:
    explicit OpenFile(const std::string& path)
        : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        if (descriptor_ < 0)
            throw Error(fmt::format("cannot run {}: {}", path, system_reason(errno)),
                        kExitNotExecutable);
    }
    ~OpenFile() { close(descriptor_); }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    int descriptor() const { return descriptor_; }

  private:
    int descriptor_;
};

// True if setarch(8) has fixed the addresses. Must be called before assay itself does so.
bool addresses_are_fixed() {
    constexpr unsigned long kQuery = 0xffffffff;
    const int now = personality(kQuery);
    return now >= 0 && now & ADDR_NO_RANDOMIZE;
}

// Opening the debug information of the C library takes longer than a small program runs. Most
// programs map this library, and glibc installs it in the folder of its dynamic linker.
std::vector<std::string> usual_objects(const Program& program) {
    namespace fs = std::filesystem;
    std::vector<std::string> objects;
    if (program.dynamic_linker.empty()) return objects;
    std::error_code error;
    const fs::path linker = fs::canonical(program.dynamic_linker, error);
    const fs::path library = fs::canonical(linker.parent_path() / "libc.so.6", error);
    if (error) return objects;
    return {library, linker};
}

// Returns how assay must end.
Ending end_of_run(const Collection::Outcome& outcome, Ending ending) {
    if (outcome.refused) {
        // If a program cannot be started, the status is the same as in a shell.
        if (ending.exit_status != kExitNotExecutable && ending.exit_status != kExitNotFound)
            ending.exit_status = kExitFailure;
        ending.signal = 0;
    } else if (outcome.failed && ending.signal == 0) {
        ending.exit_status = kExitFailure;
    }
    return ending;
}

// Replaces this process by the program if the kernel gives the program privileges, because the
// driver would not get them. Otherwise returns.
void run_natively_if_privileged(const std::vector<std::string>& words) {
    const Program program = find_program(words);
    if (program.privilege.empty()) return;
    log::remark(fmt::format("{}: {}; it runs natively, without being profiled", program.file,
                            program.privilege));
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execv(program.invoked.c_str(), argv.data());
    throw Error(fmt::format("cannot run {}: {}", program.invoked, system_reason(errno)),
                kExitNotExecutable);
}

DriverWishes wishes(const CoreSettings& settings) {
    return {settings.driver, settings.qemu, settings.sysroot, settings.image,
            !settings.randomize_addresses};
}

// QEMU's driver records neither system calls nor values of instructions: a trace without --capture
// does without them. A replay needs calls to tell where branches lead that an interrupt follows.
CoreSettings for_driver(CoreSettings settings, const DriverCommand& driver) {
    if (settings.record.empty() || !driver.under_qemu) return settings;
    constexpr std::uint32_t kAll = recording::TraceContent().captures;
    std::uint32_t& captures = settings.recorded.captures;
    const bool is_usual = (captures & kAll) == kAll;
    captures &= ~std::uint32_t{TRACE_RECORDED_LINE_OPERATIONS};
    if (is_usual) captures &= ~std::uint32_t{TRACE_RECORDED_SYSTEM_CALLS | TRACE_RECORDED_CALLS};
    if (driver.under_qemu->describe) captures |= TRACE_RECORDED_CALLS;
    return settings;
}

// The members are in the order in which a run needs them.
class ProgramRun {
  public:
    ProgramRun(const CoreSettings& settings, const std::vector<std::string>& program)
        : words_(program),
          program_(find_program(program)),
          driver_(choose_driver(program_, wishes(settings))),
          settings_(for_driver(settings, driver_)),
          session_(settings_, command_line(program)),
          segment_(std::in_place, trace::Command{program_.invoked, program}),
          lifeline_(std::in_place),
          supervisor_(settings.trace_children ? std::make_unique<Supervisor>() : nullptr),
          program_file_(program_.file),
          child_(child_settings()) {
        lifeline_->close_writing_end();
        if (supervisor_) supervisor_->close_driver_end();
    }

    Ending execute();
    // Releases everything that is not memory of this process.
    void release_outside();

  private:
    Child::Settings child_settings();
    void check_for_qemu(const Collection& collection);
    void follow_children();
    bool collect_from_child(const Supervisor::Arrival& arrival, int first_process);

    const std::vector<std::string>& words_;
    Program program_;
    const DriverCommand driver_;
    const CoreSettings settings_;
    Session session_;
    std::optional<Segment> segment_;
    std::optional<Lifeline> lifeline_;
    std::unique_ptr<Supervisor> supervisor_;  // null if children are not profiled
    const OpenFile program_file_;
    Child child_;
    std::set<std::string> seen_objects_;  // in the supervisor: files that images have executed
};

Child::Settings ProgramRun::child_settings() {
    // Uses the kernel's signal set, which has 64 bits. The one of libc is longer.
    std::uint64_t mask = 0;
    sigset_t set;
    sigprocmask(SIG_BLOCK, nullptr, &set);
    std::memcpy(&mask, &set, sizeof mask);
    trace::Launch launch{.segment_fd = segment_->fd(),
                         .program_fd = program_file_.descriptor(),
                         .lifeline_fd = lifeline_->writing_end(),
                         .channel_fd = supervisor_ ? supervisor_->driver_end() : -1,
                         .signal_mask = mask,
                         .fixed_addresses = addresses_are_fixed(),
                         .name = program_.invoked};
    return {driver_.file, driver_.words, std::move(launch), settings_.randomize_addresses};
}

// Tells the segment the instruction set. Throws Error if QEMU's driver cannot do what is asked for.
void ProgramRun::check_for_qemu(const Collection& collection) {
    const isa::Architecture& architecture = *driver_.under_qemu;
    trace::Spec needed = collection.spec();
    const std::string missing =
        settings_.types
            ? "types of data"
            : replay::missing_under_qemu(needed, collection.value_lists(), architecture);
    if (!missing.empty())
        throw Error(fmt::format("cannot capture {} of {} programs, which run under QEMU", missing,
                                architecture.name));
    const isa::ElfKind& elf = architecture.elf;
    segment_->control().instruction_set = {elf.microcontroller ? TRACE_EMULATED_MICROCONTROLLER
                                           : settings_.image.empty() ? TRACE_EMULATED_PROGRAM
                                                                     : TRACE_EMULATED_MACHINE,
                                           elf.machine, elf.word_class, elf.byte_order};
}

Ending ProgramRun::execute() {
    if (supervisor_) follow_children();
    begin_large_heap(kHeapStep);
    session_.watch(&Child::send);
    const Image image{
        child_.pid(), 1, 0, true, program_.name, command_line(words_), mpi_rank_of(child_.pid())};
    Collection collection(session_, image, *segment_, *lifeline_);
    if (driver_.under_qemu) check_for_qemu(collection);
    segment_->control().spec = collection.spec();
    segment_->control().spec.short_blocks = settings_.image.empty() ? 0 : 1;
    if (collection.spec().captures & trace::kCaptureValues)
        segment_->value_lists() = collection.value_lists();
    child_.start();
    if (session_.columns.size() > 0)
        for (const std::string& object : usual_objects(program_))
            session_.symbolizer.prepare(object);
    collection.collect();
    // If another image follows, this one can be written without waiting for the end of the process.
    std::optional<Ending> ending;
    if (!collection.replaced()) ending = child_.wait();
    const Collection::Outcome outcome = collection.finish(ending);
    Ending end = end_of_run(outcome, child_.wait());
    const bool all_there = !supervisor_ || supervisor_->leave();
    const std::optional<std::string> profile =
        tell_of_profiles(session_.log->entries(), session_.settings, image);
    if (outcome.lost || !all_there || !profile) return {kExitFailure, 0};
    if (!session_.end_by_deadline().empty()) end = {Deadline::kExitStatus, 0};
    end.profile = *profile;
    return end;
}

void ProgramRun::release_outside() {
    session_.profilers.clear();
    session_.stop_watching();
    session_.symbolizer.end_background();
}

void ProgramRun::follow_children() {
    log::say_once_among_processes();
    Supervisor::Work work;
    work.begin = [this] {
        session_.abandon_processes();
        child_.abandon();
        segment_.reset();
        lifeline_.reset();
    };
    work.prepare = [this] {
        if (session_.columns.size() == 0) return;
        for (const std::string& object : usual_objects(program_)) {
            session_.symbolizer.open_now(object);
            seen_objects_.insert(object);
        }
    };
    work.collect = [this, first = child_.pid()](const Supervisor::Arrival& arrival,
                                                const Supervisor::Tell& tell) {
        const bool done = collect_from_child(arrival, first);
        for (const symbols::Request& asked : session_.symbolizer.not_learned())
            for_each_message(asked, Supervisor::kMostToTell, tell);
        return done;
    };
    // Resolves only code that at least two processes run, because other code is not worth the time.
    work.learn = [this](std::string_view told) {
        const symbols::Request request = request_from(told);
        if (!seen_objects_.insert(request.object_path).second) session_.symbolizer.learn(request);
    };
    supervisor_->start(work);
}

bool ProgramRun::collect_from_child(const Supervisor::Arrival& arrival, int first_process) {
    begin_large_heap(kHeapStep);
    session_.symbolizer.forget_replaced();
    Segment segment(arrival.segment_fd);
    const Lifeline lifeline(arrival.lifeline_fd);
    const trace::Command command = segment.command();
    const Image image{arrival.pid,
                      segment.control().image,
                      arrival.place,
                      arrival.pid == first_process,
                      std::filesystem::path(command.file).filename(),
                      command_line(command.arguments),
                      mpi_rank_of(arrival.pid),
                      arrival.earlier};
    session_.watch([&](int signal) {
        // The run itself sends the signal to the first process.
        if (arrival.pid != first_process && !lifeline.ended()) kill(arrival.pid, signal);
    });
    Collection collection(session_, image, segment, lifeline);
    collection.collect();
    const Collection::Outcome outcome = collection.finish({});
    session_.profilers.clear();
    session_.stop_watching();
    return !outcome.failed && !outcome.lost;
}

}  // namespace

// Never destroys the run, because the process ends soon. The kernel frees everything at once, but a
// destructor would take longer than most of the other steps after the end of the program.
Ending run(const CoreSettings& settings, const std::vector<std::string>& program) {
    if (settings.warm_up && settings.regions.sample_period == 0)
        throw Error("--warm-up is for --sample: give both");
    run_natively_if_privileged(program);
    auto run = std::make_unique<ProgramRun>(settings, program);
    Ending ending = run->execute();
    run->release_outside();
    [[maybe_unused]] static const ProgramRun* left;  // keeps the run reachable for LeakSanitizer
    left = run.release();
    return ending;
}

}  // namespace assay::collector
