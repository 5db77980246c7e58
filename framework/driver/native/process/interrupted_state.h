// What a handler of the kernel's finds interrupted, and changes.
#pragma once

#include <ucontext.h>
#include <cstdint>
#include <cstring>

namespace assay::native {

inline constexpr std::uint64_t kTrapFlag = 0x100;

// Number of an encoding -> index in ucontext's gregs.
inline constexpr int kGregs[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                   REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                   REG_R12, REG_R13, REG_R14, REG_R15};

inline std::uint64_t pc_of(const ucontext_t* interrupted) {
    return static_cast<std::uint64_t>(interrupted->uc_mcontext.gregs[REG_RIP]);
}

inline void set_pc(ucontext_t* interrupted, std::uint64_t pc) {
    interrupted->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(pc);
}

inline void set_trap_flag(ucontext_t* interrupted, bool on) {
    auto& flags = interrupted->uc_mcontext.gregs[REG_EFL];
    flags = on ? flags | static_cast<greg_t>(kTrapFlag) : flags & ~static_cast<greg_t>(kTrapFlag);
}

inline void set_mask_of(ucontext_t* interrupted, std::uint64_t mask) {
    std::memcpy(&interrupted->uc_sigmask, &mask, sizeof mask);
}

inline bool is_between(std::uint64_t pc, const void* begin, const void* end) {
    return pc >= reinterpret_cast<std::uint64_t>(begin) &&
           pc < reinterpret_cast<std::uint64_t>(end);
}

template <typename Argument>
const void* address_of(void (*function)(Argument*)) {
    return reinterpret_cast<const void*>(function);
}

}  // namespace assay::native
