// Feeds garbage that looks like a program to what finds its variables, by symbols and by debug
// information. What is found at a place contains it.
#include "framework/symbols/data_symbols.h"
#include "framework/symbols/elf_file.h"
#include "framework/symbols/frame_variables.h"
#include "tests/fuzz/memory_file.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

using namespace assay::symbols;

namespace {

void search_data(const std::string& path) {
    const std::unique_ptr<DataSymbols> symbols = DataSymbols::open(path, "/nonexistent");
    if (symbols == nullptr) return;
    for (const bool described : {false, true}) {
        if (described) symbols->read_debug_information();
        const Address start = symbols->address_of_offset(0);
        for (Address address = start; address < start + 0x5000; address += 32) {
            const auto found = symbols->find(address);
            if (found && (address < found->start || address >= found->end)) std::abort();
            symbols->find_thread_local(address - start);
        }
    }
}

void search_frames(const std::string& path) {
    const std::unique_ptr<ElfFile> file = ElfFile::open(path);
    const std::unique_ptr<FrameVariables> variables = FrameVariables::open(path, "/nonexistent");
    if (file == nullptr || variables == nullptr) return;
    const Address start = file->code_start();
    for (Address pc = start; pc < start + 0x200; pc += 4) {
        for (const FrameVariable& variable : variables->at(pc)) {
            if (variable.start >= variable.end || variable.name.empty()) std::abort();
            if (!variables->find(pc, variable.end - 1)) std::abort();
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const MemoryFile file(std::string_view(reinterpret_cast<const char*>(data), size));
    search_data(file.path());
    search_frames(file.path());
    return 0;
}
