#include "framework/driver/qemu/guest.h"

#include "framework/driver/qemu/command.h"
#include "framework/driver/shared/new_image.h"
#include "framework/support/program_file.h"
#include "framework/trace/command_event.h"

#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>

namespace assay::qemu {
namespace {

constexpr int kExitRefused = 125, kExitNotExecutable = 126;

int adopt(int descriptor) {
    if (descriptor >= 0) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    return descriptor;
}

constexpr driver::DescriptorCare kCare{trace::move_high, adopt, adopt};

thread_local unsigned calling_vcpu = 0;
thread_local bool runs_vcpus = false;  // this thread of QEMU does

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size());
    for (std::string& text : texts) pointers.push_back(text.data());
    return pointers;
}

// QEMU's own command line, up to the plugin.
std::vector<std::string> own_words() {
    std::ifstream file("/proc/self/cmdline");
    std::vector<std::string> words;
    for (std::string word; std::getline(file, word, '\0');) {
        words.push_back(std::move(word));
        if (words.size() > 1 && words[words.size() - 2] == kPluginOption) return words;
    }
    return {};
}

}  // namespace

Guest::Guest(const isa::Architecture& architecture, const CallNumbers* numbers)
    : tables(kCare),
      code(tables, architecture),
      mappings(code),
      architecture_(architecture),
      numbers_(numbers) {}

bool Guest::attach(const trace::Launch& launch) {
    own_program_ = launch.name;
    if (!tables.attach(launch)) return false;
    code.name_functions();
    regions.initialise(tables.spec());
    return true;
}

void Guest::set_machine(std::unique_ptr<const GuestImage> image, bool parallel) {
    own_program_ = image->path();
    image->announce(code);
    image_ = std::move(image);
    parallel_ = parallel;
}

// The first blocks tell: a kernel changes its code later. One for AArch64 moves itself after some
// 100 blocks.
void Guest::check(std::uint64_t pc, std::span<const std::uint8_t> bytes) {
    constexpr unsigned kFirstBlocks = 1000;
    if (!image_->is_kernel() || pc >> 63 == 0 || kernel_blocks_ == kFirstBlocks) return;
    if (image_->has(pc, bytes)) ++equal_blocks_;
    if (++kernel_blocks_ == kFirstBlocks) check_image();
}

void Guest::check_image() {
    if (equal_blocks_ < kernel_blocks_ - equal_blocks_)
        refuse("the kernel does not run at the addresses of " + image_->path() +
               "; add nokaslr to its command line (-append), or give the file from which it was "
               "made");
}

void Guest::note_architecture(const driver::NewImage& image) const {
    image.write(offsetof(trace::Control, instruction_set), &tables.instruction_set(),
                sizeof(trace::InstructionSet));
}

void Guest::begin_thread(unsigned vcpu) {
    const std::lock_guard locked(lock);
    if (vcpu >= trace::kMaxThreads) refuse("the program has too many threads at a time");
    GuestThread* thread = nullptr;
    if (!idle_.empty()) {
        thread = idle_.back();
        idle_.pop_back();
    } else {
        all_.push_back(std::make_unique<GuestThread>(code, regions, lock, is_machine()));
        thread = all_.back().get();
        if (!thread->map(tables, tables.new_slot()))
            refuse("no memory for another thread of the program");
    }
    thread->begin(next_thread_++);
    threads[vcpu] = thread;
    runs_vcpus = true;
    if (is_machine()) calling_vcpu = vcpu;
}

// With Spec::threads, the first threads keep their slots.
void Guest::end_thread(unsigned vcpu) {
    const std::lock_guard locked(lock);
    GuestThread* const thread = std::exchange(threads[vcpu], nullptr);
    if (thread == nullptr) return;
    thread->end();
    if (tables.spec().threads == 0 || all_.size() > trace::kOwnSlots) idle_.push_back(thread);
}

void Guest::before_call(unsigned vcpu, std::int64_t number, const Arguments& arguments) {
    const auto& values = arguments.values;
    switch (numbers_->kind(number)) {
        case CallKind::kClone: {
            const std::uint64_t flags = values[numbers_->clone_flags];
            calling_vcpu = vcpu;
            // QEMU makes vfork(2) a fork(2).
            if (flags & CLONE_VM && !(flags & CLONE_VFORK)) parallel_ = true;
            return;
        }
        case CallKind::kExecute:
            return execute(values[0], values[1], values[2]);
        case CallKind::kHandlesSignal:
            return note_handler(values[1]);
        case CallKind::kReturnsFromSignal:
            return threads[vcpu]->return_from_signal();
        default:
            calling_vcpu = vcpu;  // fork(2) and vfork(2) have numbers of their own
            return;
    }
}

void Guest::after_call(std::int64_t number) {
    const CallKind kind = numbers_->kind(number);
    if (kind == CallKind::kChangesMappings) {
        const std::lock_guard locked(lock);
        mappings.note_change();
    } else if (kind == CallKind::kExecute && leaves_) {
        const std::lock_guard locked(lock);
        leaves_ = false;
        tables.leaves_for("");
        tables.set_state(trace::DriverState::kRunning);
    }
}

// `action`: of the kernel's type sigaction, which begins with the handler.
void Guest::note_handler(std::uint64_t action) {
    constexpr std::uint64_t kIgnore = 1;  // SIG_IGN; SIG_DFL is 0
    const std::optional<std::uint64_t> handler = memory().pointer(action);
    if (!handler || *handler <= kIgnore) return;
    const std::lock_guard locked(lock);
    code.note_handler(*handler);
}

// The lock is free: see fork handlers in plugin.cpp.
void Guest::become_child() {
    GuestThread* const thread = threads[calling_vcpu];
    if (thread == nullptr) _exit(kExitRefused);
    std::fill(std::begin(threads), std::end(threads), nullptr);
    idle_.clear();
    threads[calling_vcpu] = thread;
    driver::NewImage image(tables.spec(), tables.value_lists(), 1, getppid());
    if (image.usable()) note_architecture(image);
    const bool followed = tables.channel() >= 0 && !tables.detached() && image.usable() &&
                          tables.move_to(image) && thread->map_again(tables.new_slot());
    if (!followed) {
        tables.detach();
        thread->detach();
    }
    next_thread_ = 1;
    thread->begin_in_child();
}

// Threads that still run keep what they have recorded. All vCPUs of a machine have stopped unless
// one of them has ended it.
void Guest::ends() {
    const std::lock_guard locked(lock);
    if (tables.next_block() == 0) {
        tables.refuse(is_machine() ? "QEMU has not run the machine"
                                   : "QEMU cannot load the program");
        _exit(is_machine() ? kExitRefused : kExitNotExecutable);
    }
    check_image();
    if (is_machine() && (!runs_vcpus || !parallel_)) {
        for (const auto& thread : all_) thread->end();
    } else if (GuestThread* const thread = threads[calling_vcpu]) {
        thread->end();
    }
    for (const std::string& name : code.missing_functions())
        tables.message("--toggle=" + name + ": " + own_program_ +
                       (is_machine() ? " has" : " and its libraries have") + " no such function");
    tables.set_state(trace::DriverState::kFinished);
}

void Guest::refuse(const std::string& why) {
    tables.refuse(why);
    _exit(kExitRefused);
}

Operation::Seen Guest::seen(Operation& operation, std::uint32_t info, unsigned bytes, bool writes) {
    const std::lock_guard locked(lock);
    if (const auto* const known = code.seen(operation, info, bytes, writes)) return *known;
    char text[96];
    std::snprintf(text, sizeof text,
                  "unsupported instruction at %#" PRIx64 ": it refers to memory in an unknown way",
                  operation.pc);
    refuse(text);
}

void Guest::note_cleared_line() {
    if (clears_lines_) return;
    const std::lock_guard locked(lock);
    if (std::exchange(clears_lines_, true)) return;
    tables.message(
        "this QEMU does not report the memory that the instruction 'dc zva' clears, so its "
        "references are not counted");
}

GuestMemory Guest::memory() const {
    return {base_, architecture_.elf.word_class == ELFCLASS64 ? 8U : 4U,
            architecture_.elf.byte_order == ELFDATA2MSB};
}

// Executes the program under a new QEMU, which then has the same process id. If that is impossible,
// QEMU makes the call: the kernel runs the program, or says why it cannot.
void Guest::execute(std::uint64_t path, std::uint64_t arguments, std::uint64_t environment) {
    const GuestMemory memory = this->memory();
    const std::optional<std::string> file = memory.text(path);
    std::optional<std::vector<std::string>> words = memory.texts(arguments);
    std::optional<std::vector<std::string>> variables = memory.texts(environment);
    if (!file || !words || !variables) return;
    const std::string real = *file == "/proc/self/exe" ? own_program_ : *file;
    const int program = open(real.c_str(), O_RDONLY | O_CLOEXEC);
    if (program < 0) return;
    const isa::ElfKind kind = isa::kind_of_file(program);
    const std::lock_guard locked(lock);
    const bool runs = access(real.c_str(), X_OK) == 0;
    if (runs && kind == architecture_.elf && tables.channel() >= 0 && privilege(program) == nullptr)
        replace(real, *words, *variables);
    close(program);
    if (!runs) return;
    leaves_ = true;
    tables.leaves_for("the program became " + *file + "; it runs natively, without being profiled");
    tables.set_state(trace::DriverState::kFinished);
}

// Returns only on failure.
void Guest::replace(const std::string& file, std::vector<std::string>& arguments,
                    std::vector<std::string>& environment) {
    std::vector<std::string> words = own_words();
    driver::NewImage image(tables.spec(), tables.value_lists(), tables.image() + 1, getppid());
    if (words.empty() || !image.usable() ||
        !image.write_log(trace::command_event({file, arguments})))
        return;
    note_architecture(image);
    if (!image.announce(tables.channel())) return;
    add_program(words, environment, file, arguments);
    const trace::Launch launch{.segment_fd = image.segment(),
                               .lifeline_fd = image.lifeline(),
                               .channel_fd = tables.channel(),
                               .name = file};
    const trace::DriverEnvironment made =
        trace::driver_environment(pointers_to(environment), launch);
    std::vector<char*> argv = pointers_to(words);
    argv.push_back(nullptr);
    const auto set_flags = [&](int flags) {
        for (const int descriptor : {launch.segment_fd, launch.lifeline_fd, launch.channel_fd})
            fcntl(descriptor, F_SETFD, flags);
    };
    set_flags(0);
    tables.set_state(trace::DriverState::kReplaced);
    syscall(SYS_execve, "/proc/self/exe", argv.data(), made.pointers.data());
    tables.set_state(trace::DriverState::kRunning);
    set_flags(FD_CLOEXEC);
    image.cancel();
}

}  // namespace assay::qemu
