// From an address in an ELF file to source file, line, function and inlined calls, with
// elfutils' libdw: DWARF in the file itself, in a separate debug file (by build id below
// /usr/lib/debug/.build-id, or by .gnu_debuglink), else the symbol tables.
//
// Resolves whole batches, because a profile asks for every executed instruction of an object at
// once. Nothing is thrown for missing or broken debug information: the answer is then "???" or
// whatever the symbol table knows. Names are demangled. Not thread-safe.
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
    std::string_view file;          // as the compiler recorded it, made absolute with the
                                    // compilation directory; "???" if unknown
    std::string_view function;      // demangled; "???" if unknown
    std::uint32_t line = 0;         // 0 if unknown
    std::string_view linkage = {};  // the function's name as the linker knows it, mangled, without
                                    // a version; empty if that is `function`, or unknown
};

// Innermost first: frames[0] is the function whose source line the instruction belongs to,
// frames.back() the function that was not inlined. Never empty.
struct Location {
    std::span<const Frame> frames;
};

// For one object.
struct Request {
    std::string object_path;
    // Virtual addresses as in the file's own program headers and symbol table (link-time
    // addresses), sorted ascending.
    std::vector<std::uint64_t> addresses;
};

inline constexpr const char* kDebugRoot = "/usr/lib/debug";

class Symbolizer {
  public:
    // Separate debug files are looked for beside the object and below `debug_root`. Decompressed
    // debug information is kept in `cache_folder` for the next time; see image_cache.h.
    explicit Symbolizer(std::string debug_root = kDebugRoot, std::string cache_folder = {});
    ~Symbolizer();
    Symbolizer(const Symbolizer&) = delete;
    Symbolizer& operator=(const Symbolizer&) = delete;

    // Lets the debug information of an object that resolve() may be asked for be opened on
    // another thread: decompressing that of libc takes longer than the rest of resolving a small
    // program. Returns at once. Optional; an object that is not resolved then costs little more.
    void prepare(const std::string& object_path);

    // Waits for what is being done on another thread, and leaves the rest. prepare() is not for
    // afterwards.
    void end_background();

    // For a process that forks, so that its children find it done: opens the debug information of
    // an object, or resolves addresses, and keeps both. Without threads.
    void open_now(const std::string& object_path);
    void learn(const Request& request);
    // For such a child, before anything else: what is kept of files that have been replaced since,
    // as those of a program that is built and run again and again, is not true of the new ones.
    void forget_replaced();
    // What the last resolve() was asked for and had not been learned.
    const std::vector<Request>& not_learned() const;

    // One Location for each of a request's addresses, in order.
    std::vector<Location> resolve(const std::string& object_path,
                                  std::span<const std::uint64_t> addresses);
    // The same for several objects, no two of them equal, on several threads.
    std::vector<std::vector<Location>> resolve(std::span<const Request> requests);

    // The names of the .dwo files that were needed for an object and cannot be read, each told
    // once.
    std::set<std::string> take_missing_files(const std::string& object_path);

    // The link-time address of a byte at `file_offset` of the object: what a mapping's start and
    // offset translate to. Where segments share a page of the file, the code's is meant. 0 if no
    // loadable segment contains it.
    std::uint64_t address_of_offset(const std::string& object_path, std::uint64_t file_offset);

    // Lower-case hexadecimal, or empty.
    std::string build_id(const std::string& object_path);

    // As given.
    const std::string& cache_folder() const { return cache_folder_; }

  private:
    struct Impl;
    const std::string cache_folder_;
    std::unique_ptr<Impl> impl_;
};

}  // namespace assay::symbols
