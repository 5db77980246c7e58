// What is known of the addresses of one object.
#pragma once

#include "framework/symbols/debug_info_pool.h"
#include "framework/symbols/elf_file.h"
#include "framework/symbols/frame_store.h"
#include "framework/symbols/known_locations.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace assay::symbols {

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
    // Whether resolving takes long enough to prepare it, as far as is known.
    bool worth_preparing() const { return file_ != nullptr && !without_dwarf_; }

    void open();
    void learn(std::span<const Address> addresses);
    void prepare(std::span<const Address> addresses);
    // One for each of the addresses. Sets `asked` to those that have not been learned.
    std::vector<Location> resolve(std::span<const Address> addresses, std::vector<Address>& asked);

  private:
    bool is_readable() const { return file_ != nullptr && !file_->is_overwritten(); }
    std::vector<Location> resolve_unlearned(std::span<const Address> addresses);
    std::vector<Location> look_up(std::span<const Address> addresses);
    std::vector<Location> locate(const DebugInfo& debug, std::span<const Address> addresses);

    const std::string path_;
    DebugInfoPool& pool_;
    const std::unique_ptr<ElfFile> file_;
    std::atomic<bool> without_dwarf_ = false;

    std::mutex mutex_;  // of all below
    FrameStore frames_;
    KnownLocations learned_, prepared_;
};

}  // namespace assay::symbols
