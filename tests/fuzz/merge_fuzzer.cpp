// Feeds garbage to what reads whole profiles, of any format and compressed or not, adds it to
// itself and writes the sum. What was taken must have twice its totals, and the sum must be
// readable and keep them when it is merged alone.
#include "framework/events/reader.h"
#include "framework/support/error.h"
#include "tools/merge/merged_file.h"

#include <sys/mman.h>
#include <unistd.h>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

// A file that has no name but that of its descriptor.
class MemoryFile {
  public:
    explicit MemoryFile(std::string_view content = {}) : descriptor_(memfd_create("fuzz", 0)) {
        if (write(descriptor_, content.data(), content.size()) < 0) std::abort();
    }
    ~MemoryFile() { close(descriptor_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
    std::string content() const {
        std::string text(static_cast<std::size_t>(lseek(descriptor_, 0, SEEK_END)), '\0');
        if (pread(descriptor_, text.data(), text.size(), 0) < 0) std::abort();
        return text;
    }

  private:
    int descriptor_;
};

// No bomb: a few compressed bytes can stand for gigabytes.
bool is_compressed(std::string_view text) {
    return text.starts_with("\x1f\x8b") || text.starts_with("\x28\xb5\x2f\xfd");
}

std::vector<std::uint64_t> totals_of(const MemoryFile& file) {
    assay::events::Handler ignore;
    return assay::events::read_events(file.path(), ignore).totals;
}

std::string merged(const MemoryFile& file, int times) {
    assay::WholeProfile profile;
    for (int i = 0; i < times; ++i) profile.add_file(file.path());
    profile.finish();
    const MemoryFile out;
    assay::write_events_file(profile, out.path());
    return out.content();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (is_compressed(text)) return 0;
    const MemoryFile input(text);
    std::string twice;
    std::vector<std::uint64_t> totals;
    try {
        totals = totals_of(input);
        twice = merged(input, 2);
    } catch (const assay::Error&) {
        return 0;
    }
    for (const std::string& text_of_sum : {twice, merged(MemoryFile(twice), 1)}) {
        const std::vector<std::uint64_t> doubled = totals_of(MemoryFile(text_of_sum));
        for (std::size_t i = 0; i < totals.size(); ++i)
            if (doubled.at(i) != 2 * totals[i]) std::abort();
    }
    return 0;
}
