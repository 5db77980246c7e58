// The files whose code the program has mapped. QEMU's own memory map shows them, at addresses that
// differ from the program's by a constant.
#pragma once

#include "framework/driver/qemu/guest_code.h"

#include <cstdint>
#include <map>
#include <string>

namespace assay::qemu {

class GuestMappings {
  public:
    explicit GuestMappings(GuestCode& code) : code_(code) {}

    // The program may have changed its mappings.
    void note_change() { stale_ = true; }
    // Tells the collector about the file at this address before code there runs. `host`: where the
    // program's address `pc` is in this process.
    void need(std::uint64_t pc, std::uint64_t host);

  private:
    struct Mapping {
        std::uint64_t end, offset;
        std::string path;

        friend bool operator==(const Mapping&, const Mapping&) = default;
    };
    using Mappings = std::map<std::uint64_t, Mapping>;  // by start

    static Mappings read(std::uint64_t base);
    bool contains(std::uint64_t pc) const;

    GuestCode& code_;
    Mappings known_;  // those with executed code
    bool stale_ = true;
    std::uint64_t last_page_ = 1;  // none
};

}  // namespace assay::qemu
