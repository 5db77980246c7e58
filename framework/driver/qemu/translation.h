// Code that QEMU translates: tells QEMU which functions to call when the code runs.
//
// Executions of a block are counted where QEMU's version can do that without a call, as long as the
// program has one thread. Callbacks do the rest.
#pragma once

#include "framework/driver/qemu/plugin_interface.h"
#include "framework/trace/segment_layout.h"

namespace assay::qemu {

// Call this before the first translation.
void prepare_translation(const trace::Spec& spec, const qemu_info_t& info);
// QEMU calls these for a translation of a program and of a machine.
void on_translation(qemu_plugin_id_t, qemu_plugin_tb* translated);
void on_translation_in_machine(qemu_plugin_id_t, qemu_plugin_tb* translated);

}  // namespace assay::qemu
