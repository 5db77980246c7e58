// Writes an events file (docs/events-file.md): Cachegrind's text format, with everything beyond
// it in `#!` lines that Cachegrind's tools skip.
//
// The file is written under a temporary name beside its own and renamed by finish(), so that a
// reader never sees half of one. A name that ends in .gz or .zst is compressed. Throws Error
// (with the path and the system's reason) when it cannot write; the temporary file is removed
// by the destructor if finish() was not reached.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::events {

struct Event {
    std::string name;         // no white space
    std::string description;  // may be empty
    std::string unit;         // plural noun; may be empty
    std::string profiler;     // which profiler declared it; may be empty
};

// A figure over event totals, e.g. {"D1 miss rate", "(D1mr + D1mw) / (Dr + Dw)", "%"}.
struct Derived {
    std::string name, formula, unit;
};

struct Object {
    std::string path;
    std::string build_id;  // lower-case hexadecimal, or empty
};

struct Header {
    std::vector<std::pair<std::string, std::string>> descriptions;  // desc: NAME: TEXT
    std::string command;                                            // cmd:
    std::vector<Event> events;                                      // at least one
    std::vector<Derived> derived;
    std::vector<Object> objects;
    std::uint32_t pid = 0;  // written as `#! pid N`
    std::string incomplete;  // why the counts are not those of a whole run; empty if they are
};

class Writer {
  public:
    Writer(std::string path, const Header& header);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    // Sets the source file ("???" if unknown) and function for the lines that follow. Writes
    // fl= and fn= lines only where they change.
    void location(std::string_view file, std::string_view function);
    // Counts of one source line (0: unknown), one per event of the header. Lines must arrive
    // grouped by location; the caller adds up counts of the same line.
    void line(std::uint32_t line, std::span<const std::uint64_t> counts);
    // `#! at`: counts of one instruction (an address relative to the object with that index in
    // the header) of the line last written; a breakdown of counts that line() already carried.
    void instruction(std::uint32_t object, std::uint64_t address,
                     std::span<const std::uint64_t> counts);
    // Writes the summary, which is the sum of what line() received, and renames the file.
    void finish();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace assay::events
