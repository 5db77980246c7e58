// Resolves the addresses of one object.
#pragma once

#include "framework/symbols/debug_info.h"
#include "framework/symbols/elf_file.h"
#include "framework/symbols/frame_store.h"
#include "framework/symbols/interval_map.h"
#include "framework/symbols/symbolizer.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::symbols {

// Names entries of procedure linkage tables (.plt, .plt.got, .plt.sec, .iplt) "target@plt", because
// they have no symbols. Keeps existing names in `result`. Entries without a known target get no
// name, such as the first entry of .plt, which calls the dynamic linker.
void name_plt_entries(const ElfFile& object, std::span<const Address> addresses, Names& names,
                      std::vector<FunctionName>& result);

// Locations that were resolved in advance. All addresses are sorted.
class KnownLocations {
  public:
    bool empty() const { return addresses_.empty(); }
    // Adds one location for each of `addresses`, which must be new.
    void add(std::span<const Address> addresses, std::span<const Location> locations);
    // Sets the known locations. Returns the indices of the unknown addresses.
    std::vector<std::uint32_t> find(std::span<const Address> addresses,
                                    std::span<Location> locations) const;
    // The unknown addresses, without duplicates.
    std::vector<Address> without(std::span<const Address> addresses) const;

  private:
    std::vector<Address> addresses_;
    std::vector<Location> locations_;
};

// Any thread may call it; a mutex serializes the calls. All addresses are sorted.
class ObjectSymbols {
  public:
    ObjectSymbols(const std::string& path, DebugInfoPool& pool)
        : path_(path), pool_(pool), file_(ElfFile::open(path)) {
        if (file_ != nullptr) file_->close_descriptor();
    }

    const ElfFile* file() const { return file_.get(); }  // null if the file cannot be read
    // True if the file was replaced, or could not be read.
    bool is_outdated() const { return file_ == nullptr || file_->is_replaced(); }

    void open();
    void learn(std::span<const Address> addresses);
    // Returns one location for each of `addresses`. Sets `asked` to the addresses that were not
    // learned.
    std::vector<Location> resolve(std::span<const Address> addresses, std::vector<Address>& asked);
    // See Symbolizer.
    std::set<std::string> take_missing_files();

  private:
    bool is_readable() const { return file_ != nullptr && !file_->is_overwritten(); }
    std::vector<Location> look_up(std::span<const Address> addresses);
    std::vector<Location> locate(const DebugInfo& debug, std::span<const Address> addresses);
    // Gives functions without a name one from their object and their start: "program+0x1180".
    void name_by_address(std::span<const Address> addresses, std::vector<Location>& locations);

    const std::string path_;
    DebugInfoPool& pool_;
    const std::unique_ptr<ElfFile> file_;

    std::mutex mutex_;  // protects the members below
    FrameStore frames_;
    KnownLocations learned_;
    std::set<std::string> missing_files_;
};

}  // namespace assay::symbols
