// What this driver uses of QEMU's interface for plugins, as of its versions 1 (QEMU 4.2 to 8.2) to
// 4 (QEMU 10.0): docs/devel/tcg-plugins.rst and include/qemu/qemu-plugin.h of QEMU's sources.
// Debian has no package with the header.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

using qemu_plugin_id_t = std::uint64_t;
using qemu_plugin_meminfo_t = std::uint32_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

struct qemu_info_t {
    const char* target_name;
    struct {
        int min, cur;
    } version;
    bool system_emulation;
    int smp_vcpus, max_vcpus;
};

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_CB_RW_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

using qemu_plugin_vcpu_cb = void (*)(qemu_plugin_id_t, unsigned vcpu);
using qemu_plugin_vcpu_udata_cb = void (*)(unsigned vcpu, void* data);
using qemu_plugin_mem_cb = void (*)(unsigned vcpu, qemu_plugin_meminfo_t, std::uint64_t address,
                                    void* data);
using qemu_plugin_tb_cb = void (*)(qemu_plugin_id_t, qemu_plugin_tb*);
using qemu_plugin_data_cb = void (*)(qemu_plugin_id_t, void* data);
using qemu_plugin_syscall_cb = void (*)(qemu_plugin_id_t, unsigned vcpu, std::int64_t number,
                                        std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                                        std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t);
using qemu_plugin_syscall_ret_cb = void (*)(qemu_plugin_id_t, unsigned vcpu, std::int64_t number,
                                            std::int64_t result);

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t, qemu_plugin_vcpu_cb);
void qemu_plugin_register_vcpu_exit_cb(qemu_plugin_id_t, qemu_plugin_vcpu_cb);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, qemu_plugin_data_cb, void* data);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t, qemu_plugin_syscall_cb);
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t, qemu_plugin_syscall_ret_cb);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, qemu_plugin_tb_cb);
std::size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb*);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb*, std::size_t);
std::uint64_t qemu_plugin_insn_vaddr(const qemu_plugin_insn*);
void* qemu_plugin_insn_haddr(const qemu_plugin_insn*);
std::size_t qemu_plugin_insn_size(const qemu_plugin_insn*);

void qemu_plugin_register_vcpu_tb_exec_cb(qemu_plugin_tb*, qemu_plugin_vcpu_udata_cb,
                                          qemu_plugin_cb_flags, void* data);
void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn*, qemu_plugin_vcpu_udata_cb,
                                            qemu_plugin_cb_flags, void* data);
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn*, qemu_plugin_mem_cb, qemu_plugin_cb_flags,
                                      qemu_plugin_mem_rw, void* data);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);

}  // extern "C"

namespace assay::qemu {

// In version 1 only, so it is looked up when QEMU has loaded the plugin.
using ExecInline = void (*)(qemu_plugin_tb*, int operation, void* counter, std::uint64_t value);
inline constexpr const char* kExecInline = "qemu_plugin_register_vcpu_tb_exec_inline";
using InstructionInline = void (*)(qemu_plugin_insn*, int operation, void* counter,
                                   std::uint64_t value);
inline constexpr const char* kInstructionInline = "qemu_plugin_register_vcpu_insn_exec_inline";
// The bytes of an instruction. Version 3 has changed the function.
inline constexpr const char* kInstructionData = "qemu_plugin_insn_data";
inline constexpr int kCopiesData = 3;
using PointToData = const void* (*)(const qemu_plugin_insn*);
using CopyData = std::size_t (*)(const qemu_plugin_insn*, void* into, std::size_t bytes);
// From version 2 on.
inline constexpr const char* kOfVersion2 = "qemu_plugin_scoreboard_new";

// From version 2 on: the registers of the vCPU that calls back. Arrays are those of GLib, which
// QEMU has loaded.
struct Register {
    void* handle;
    const char* name;
    const char* feature;
};
struct Array {
    char* data;
    unsigned count;
};
using GetRegisters = Array* (*)();
using ReadRegister = int (*)(void* handle, Array* bytes);
using NewByteArray = Array* (*)();
using SetArraySize = Array* (*)(Array*, unsigned);

}  // namespace assay::qemu
