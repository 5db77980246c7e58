// What is known of the addresses of one object.
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

// Names for entries of procedure linkage tables, which have no symbols of their own.

// Where an address lies in a .plt, .plt.got, .plt.sec or .iplt section and `result` has no name for
// it yet, names it "target@plt". Entries whose target cannot be told stay as they are: the first
// one of .plt, which calls the dynamic linker.
void name_plt_entries(const ElfFile& object, std::span<const Address> addresses, Names& names,
                      std::vector<FunctionName>& result);

// Locations that have been resolved before they were asked for. Addresses are sorted.
class KnownLocations {
  public:
    bool empty() const { return addresses_.empty(); }
    // One for each of `addresses`, none of which is known yet.
    void add(std::span<const Address> addresses, std::span<const Location> locations);
    // Sets the locations of those of `addresses` that are known. Returns the indices of the others.
    std::vector<std::uint32_t> find(std::span<const Address> addresses,
                                    std::span<Location> locations) const;
    // Those of `addresses` that are not known, once each.
    std::vector<Address> without(std::span<const Address> addresses) const;

  private:
    std::vector<Address> addresses_;
    std::vector<Location> locations_;
};

// Any thread may call it; those that resolve wait for one another. Addresses are sorted.
class ObjectSymbols {
  public:
    ObjectSymbols(const std::string& path, DebugInfoPool& pool)
        : path_(path), pool_(pool), file_(ElfFile::open(path)) {
        if (file_ != nullptr) file_->close_descriptor();
    }

    const ElfFile* file() const { return file_.get(); }  // null if it cannot be read
    // Whether the path leads to something else by now, as far as there was anything.
    bool is_outdated() const { return file_ == nullptr || file_->is_replaced(); }

    void open();
    void learn(std::span<const Address> addresses);
    // One for each of the addresses. Sets `asked` to those that have not been learned.
    std::vector<Location> resolve(std::span<const Address> addresses, std::vector<Address>& asked);
    // See Symbolizer.
    std::set<std::string> take_missing_files();

  private:
    bool is_readable() const { return file_ != nullptr && !file_->is_overwritten(); }
    std::vector<Location> look_up(std::span<const Address> addresses);
    std::vector<Location> locate(const DebugInfo& debug, std::span<const Address> addresses);
    // Names functions that have no name after their object and their start: "program+0x1180".
    void name_by_address(std::span<const Address> addresses, std::vector<Location>& locations);

    const std::string path_;
    DebugInfoPool& pool_;
    const std::unique_ptr<ElfFile> file_;

    std::mutex mutex_;  // of all below
    FrameStore frames_;
    KnownLocations learned_;
    std::set<std::string> missing_files_;
};

}  // namespace assay::symbols
