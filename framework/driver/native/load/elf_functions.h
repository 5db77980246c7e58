// The functions of the program's files, and the vDSO's place.
#pragma once

#include "framework/driver/native/memory/proc_maps.h"
#include "framework/driver/shared/elf_functions.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace assay::native {

// A file of the program, which is open for reading as long as this exists.
class OpenFile {
  public:
    explicit OpenFile(const std::string& path);
    ~OpenFile();
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    int descriptor() const { return descriptor_; }  // negative: the file cannot be opened

  private:
    int descriptor_;
};

// The same as driver::for_each_function().
void for_each_function(const std::string& path,
                       const std::function<void(const char* symbol, std::uint64_t offset)>& visit);

// The vDSO is code of the kernel, with its data next to it, that the kernel maps into each process:
// vdso(7).
//
// Moves code and data from their random address to kVdsoAddress if the driver chooses addresses.
// `mappings`: all mappings of this process. Returns the address of the code, which is the old
// address if the kernel refuses the move; 0 if there is no vDSO. After the call the driver must not
// use libc's time functions, which still have the old address.
std::uint64_t move_vdso(const std::vector<Mapping>& mappings);

}  // namespace assay::native
