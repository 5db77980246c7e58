// Chooses the driver of a program. A program of another processor runs under QEMU, whose parts this
// finds.
#pragma once

#include "framework/collector/launch/program.h"

#include <string>
#include <vector>

namespace assay::collector {

// The program's driver: a file to execute, and the words that it gets.
struct DriverCommand {
    std::string file;
    std::vector<std::string> words;
    const isa::Architecture* under_qemu = nullptr;  // nullptr: the native driver
};

// What the user wants: see CoreSettings.
struct DriverWishes {
    std::string driver, qemu, sysroot, image;
    bool fixed_addresses = true;
};

// Makes `program.dynamic_linker` a path of this machine. Throws Error if a part is missing.
DriverCommand choose_driver(Program& program, const DriverWishes& wishes);

}  // namespace assay::collector
