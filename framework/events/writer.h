// Writes an events file (docs/reference/events-file.md): Cachegrind's text format, with everything
// beyond it in `fl=#! ` lines that Cachegrind's tools pass over.
//
// The file is written under a temporary name beside its own and renamed by finish(), so that a
// reader never sees half of one; what is not a regular file (/dev/stdout, a pipe) is written
// directly. A name that ends in .gz or .zst is compressed. Throws Error (with the path and the
// system's reason) when it cannot write; the temporary file is removed by the destructor if
// finish() did not succeed.
#pragma once

#include "framework/events/header.h"
#include "framework/events/series.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace assay::events {

class Writer {
  public:
    // Throws Error also if the header breaks a rule of the format: an event name that is
    // malformed or occurs twice, no event, too many of them, a formula over unknown events.
    Writer(const std::string& path, const Header& header);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    // Sets the source file ("???" if unknown) and function for the lines that follow. Writes
    // fl= and fn= lines only where they change.
    void location(std::string_view file, std::string_view function);
    // Where code was inlined, before all locations. Numbers go up from 1.
    void site(const Site& site);
    // Counts of one source line (0: unknown), one per event of the header, that was inlined at
    // that site; 0: it was not. Lines must arrive grouped by location; the caller adds up counts
    // of the same line and site.
    void line(std::uint32_t line, std::span<const std::uint64_t> counts, std::uint32_t site = 0);
    // Counts of one instruction (an address relative to the object with that index in the
    // header) of the line last written; a breakdown of counts that line() already carried.
    void instruction(std::uint32_t object, std::uint64_t address,
                     std::span<const std::uint64_t> counts, std::uint32_t site = 0);
    // Before all locations, behind sites. Numbers go up from 1.
    void group(const Group& group);
    // Before all locations: a function's name as the linker knows it, to be written behind the
    // first lines of that function; not if there are none, or if it is too long for a line.
    void linkage(std::string_view function, std::string_view name);
    // Counts of the line last written that belong to that group itself.
    void counts_of(std::uint32_t group, std::span<const std::uint64_t> counts);
    // Values of such an instruction. They are cut to those that a line of the file can hold.
    void values(std::uint32_t object, std::uint64_t address, const Hotlist& list);
    // Counts of one calling context (docs/reference/events-file.md), after all lines and
    // instructions: a breakdown of counts that line() already carried. Numbers go up from 1.
    void stack(const Stack& stack, std::span<const std::uint64_t> counts);
    // Writes the summary, which is the sum of what line() received, and renames the file.
    void finish();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace assay::events
