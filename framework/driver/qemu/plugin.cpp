// The plugin that QEMU loads: its start, and its callbacks for threads and system calls.
#include "framework/driver/qemu/callbacks.h"
#include "framework/driver/qemu/command.h"
#include "framework/driver/qemu/guest.h"
#include "framework/driver/qemu/plugin_interface.h"
#include "framework/driver/qemu/translation.h"

#include <dlfcn.h>
#include <pthread.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

extern "C" {
extern __attribute__((visibility("default"))) int qemu_plugin_version;
int qemu_plugin_version = 1;
__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id,
                                                               const qemu_info_t* info, int argc,
                                                               char** argv);
}

namespace assay::qemu {
namespace {

// QEMU refuses a plugin of a version that it does not offer. It reads the version after this.
__attribute__((constructor)) void choose_version() {
    if (dlsym(RTLD_DEFAULT, kOfVersion2) != nullptr) qemu_plugin_version = 2;
}

// --- Threads and system calls.

void on_thread(qemu_plugin_id_t, unsigned vcpu) {
    guest->begin_thread(vcpu);
}

void on_thread_end(qemu_plugin_id_t, unsigned vcpu) {
    guest->end_thread(vcpu);
}

void on_call(qemu_plugin_id_t, unsigned vcpu, std::int64_t number, std::uint64_t a, std::uint64_t b,
             std::uint64_t c, std::uint64_t d, std::uint64_t e, std::uint64_t f, std::uint64_t,
             std::uint64_t) {
    guest->before_call(vcpu, number, {{a, b, c, d, e, f}});
}

void on_call_end(qemu_plugin_id_t, unsigned, std::int64_t number, std::int64_t) {
    guest->after_call(number);
}

void on_exit(qemu_plugin_id_t, void*) {
    guest->ends();
}

void before_fork() {
    guest->lock.lock();
}

void after_fork_in_parent() {
    guest->lock.unlock();
}

void after_fork_in_child() {
    guest->lock.unlock();
    guest->become_child();
}

int fail(const char* why) {
    std::fprintf(stderr, "assay: %s\n", why);
    return -1;
}

}  // namespace

// Refuses an image that this emulator does not run. That of AArch64 runs 32-bit machines too.
void check_target(const GuestImage& image, const std::string& path, const qemu_info_t& info) {
    const isa::Architecture& architecture = *image.architecture();
    const std::string target = info.target_name;
    if (!info.system_emulation)
        guest->refuse("--image is for the emulator of a whole machine: qemu-system-" +
                      std::string(architecture.qemu));
    if (architecture.qemu != target && !(architecture.qemu == "arm" && target == "aarch64"))
        guest->refuse(path + " is built for " + std::string(architecture.name) +
                      ", but this QEMU emulates " + target + "; start qemu-system-" +
                      std::string(architecture.qemu));
}

int install_in_machine(qemu_plugin_id_t id, const qemu_info_t& info, const trace::Launch& launch,
                       const std::string& path) {
    auto image = std::make_unique<const GuestImage>(path);
    if (image->architecture() == nullptr) return fail("the image cannot be read");
    guest = new Guest(*image->architecture(), nullptr);
    if (!guest->attach(launch)) return fail("the trace segment cannot be mapped");
    check_target(*image, path, info);
    prepare_translation(guest->tables.spec(), info);
    guest->set_machine(std::move(image), info.max_vcpus > 1);
    guest->tables.set_pid(getpid());
    qemu_plugin_register_vcpu_init_cb(id, on_thread);
    qemu_plugin_register_vcpu_exit_cb(id, on_thread_end);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation_in_machine);
    qemu_plugin_register_atexit_cb(id, on_exit, nullptr);
    guest->tables.set_state(trace::DriverState::kRunning);
    return 0;
}

// Called by QEMU. Returns 0 if the plugin works.
int install(qemu_plugin_id_t id, const qemu_info_t& info, std::span<char* const> arguments) {
    const char* const variable = std::getenv("ASSAY_DRIVER");
    const auto launch =
        variable ? trace::launch_from((std::string(trace::kLaunchVariable) + variable).c_str())
                 : std::nullopt;
    if (!launch) return fail("this plugin of QEMU cannot run alone; start `assay` instead");
    for (const std::string_view argument : arguments)
        if (argument.starts_with(kImageArgument))
            return install_in_machine(id, info, *launch,
                                      std::string(argument.substr(kImageArgument.size())));
    const auto all = isa::architectures();
    const auto architecture = std::find_if(
        all.begin(), all.end(), [&](const auto& known) { return known.qemu == info.target_name; });
    const CallNumbers* const numbers = call_numbers(info.target_name);
    if (architecture == all.end() || numbers == nullptr || info.system_emulation)
        return fail("this QEMU runs programs that assay does not know");
    guest = new Guest(*architecture, numbers);
    if (!guest->attach(*launch)) return fail("the trace segment cannot be mapped");
    prepare_translation(guest->tables.spec(), info);
    // The size is that of the processor in the table of architectures.
    constexpr unsigned kClearedBytes = 64;
    if (std::getenv("QEMU_CPU") == nullptr && find_registers())
        guest->code.set_cleared_bytes(kClearedBytes);
    guest->tables.set_pid(getpid());
    qemu_plugin_register_vcpu_init_cb(id, on_thread);
    qemu_plugin_register_vcpu_exit_cb(id, on_thread_end);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_vcpu_syscall_cb(id, on_call);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_call_end);
    qemu_plugin_register_atexit_cb(id, on_exit, nullptr);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    guest->tables.set_state(trace::DriverState::kRunning);
    return 0;
}

}  // namespace assay::qemu

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int argc, char** argv) {
    return assay::qemu::install(id, *info, {argv, static_cast<std::size_t>(argc)});
}
