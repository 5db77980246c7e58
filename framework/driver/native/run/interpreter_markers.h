// The markers of assay/client.h with which an interpreter tells the lines of its program.
#pragma once

#include "framework/driver/native/process/process.h"

namespace assay::native {

// Executes the marker that a thread has just reached. False if it is another one.
bool do_interpreter_marker(Context& context, Process& process);

}  // namespace assay::native
