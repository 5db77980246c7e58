// Finds the source file, line, function and inlined calls of addresses in ELF files, with libdw of
// elfutils. Reads DWARF of the file itself or of a separate debug file (by build id below
// /usr/lib/debug/.build-id, or by .gnu_debuglink), otherwise the symbol tables.
//
// Resolves addresses in batches, because a profile needs all executed instructions of an object at
// once. Missing or broken debug information throws nothing: the answer is then "???", or the name
// in the symbol table. Names are demangled. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::symbols {

// One level of an inline chain. The views stay valid as long as the symbolizer.
struct Frame {
    // As recorded by the compiler, made absolute with the compilation directory. "???" if unknown.
    std::string_view file;
    std::string_view function;  // demangled; "???" if unknown
    std::uint32_t line = 0;     // 0 if unknown
    // The mangled name without a version. Empty if it is equal to `function`, or unknown.
    std::string_view linkage = {};
};

// Innermost first: frames[0] is the function whose source line the instruction belongs to,
// frames.back() the function that was not inlined. Never empty.
struct Location {
    std::span<const Frame> frames;
};

struct Request {
    std::string object_path;
    // Virtual addresses as in the file's own program headers and symbol table (link-time
    // addresses), sorted ascending.
    std::vector<std::uint64_t> addresses;
};

inline constexpr const char* kDebugRoot = "/usr/lib/debug";

class Symbolizer {
  public:
    // Searches for separate debug files in the folder of the object and below `debug_root`. Keeps
    // decompressed debug information in `cache_folder`, see image_cache.h.
    explicit Symbolizer(std::string debug_root = kDebugRoot, std::string cache_folder = {});
    ~Symbolizer();
    Symbolizer(const Symbolizer&) = delete;
    Symbolizer& operator=(const Symbolizer&) = delete;

    // Starts to open the debug information of an object on another thread, and returns at once.
    // Decompressing that of libc takes longer than the rest of resolving a small program. Optional.
    void prepare(const std::string& object_path);

    // Waits for the current task on the other thread, and drops the waiting ones. Do not call
    // prepare() afterwards.
    void end_background();

    // For a process that forks: open the debug information of an object, or resolve addresses, and
    // keep the results for the children. Start no threads.
    void open_now(const std::string& object_path);
    void learn(const Request& request);
    // Such a child calls this first. Drops the results for files that were replaced since, such as
    // a program that was built again.
    void forget_replaced();
    // The addresses of the last resolve() that were not learned.
    const std::vector<Request>& not_learned() const;

    // Returns one location for each address, in order.
    std::vector<Location> resolve(const std::string& object_path,
                                  std::span<const std::uint64_t> addresses);
    // Resolves several different objects on several threads.
    std::vector<std::vector<Location>> resolve(std::span<const Request> requests);

    // The names of needed .dwo files of an object that cannot be read. Returns each name only once.
    std::set<std::string> take_missing_files(const std::string& object_path);

    // The link-time address of the byte at `file_offset`, for translating the start and offset of a
    // mapping. If segments share a page of the file, the executable one counts. 0 if no loadable
    // segment contains the byte.
    std::uint64_t address_of_offset(const std::string& object_path, std::uint64_t file_offset);

    // Lower-case hexadecimal, or empty.
    std::string build_id(const std::string& object_path);

    const std::string& cache_folder() const { return cache_folder_; }

  private:
    struct Impl;
    const std::string cache_folder_;
    std::unique_ptr<Impl> impl_;
};

}  // namespace assay::symbols
