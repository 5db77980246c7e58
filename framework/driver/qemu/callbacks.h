// The functions that QEMU calls while the program runs, for executions, fetches and references.
// QEMU calls them in the thread of the vCPU.
#pragma once

#include "framework/driver/qemu/plugin_interface.h"
#include "framework/trace/segment_layout.h"

namespace assay::qemu {

// nullptr: not needed.
struct Callbacks {
    bool in_order = false;  // executions of all blocks need a call, in order
    // At the begin of a block: if all executions need a call, if the block begins with a fetch, and
    // otherwise. The data is a GuestBlock.
    qemu_plugin_vcpu_udata_cb block_in_order = nullptr, block_with_fetch = nullptr, block = nullptr;
    qemu_plugin_vcpu_udata_cb fetch = nullptr;  // of a Fetch
    qemu_plugin_vcpu_udata_cb code = nullptr;   // of CodeFetches
    qemu_plugin_mem_cb reference = nullptr;     // of an Operation
    // Before and after an instruction whose executions can have different references. The data of
    // the first is an Operation.
    qemu_plugin_vcpu_udata_cb variable = nullptr, end_of_variable = nullptr;
    // Before an instruction that clears a line. The data is an Operation. The second one is for a
    // line whose address is unknown.
    qemu_plugin_vcpu_udata_cb cleared_line = nullptr, unknown_cleared_line = nullptr;
};
// `has_regions`: only a part of the program is profiled.
Callbacks callbacks_for(const trace::Spec& spec, bool has_regions);

// False if this QEMU does not show registers. Must be called before Callbacks::cleared_line is
// used.
bool find_registers();

}  // namespace assay::qemu
