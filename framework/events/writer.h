// Writes an events file (docs/reference/events-file.md): Cachegrind's text format, with extensions
// in `fl=#! ` lines that Cachegrind's tools ignore.
//
// The writer uses a temporary file in the same folder, and finish() renames it, so that readers
// never see half a file. A target that is not a regular file (/dev/stdout, a pipe) is written
// directly. A name that ends in .gz or .zst is compressed. Throws Error with the path and the
// system's reason if it cannot write. The destructor removes the temporary file if finish() did not
// succeed.
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
    // Also throws Error if the header breaks a rule of the format: no event or too many, a
    // malformed or repeated event name, a formula over unknown events.
    Writer(const std::string& path, const Header& header);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    // Sets the source file ("???" if unknown) and function of the lines that follow. Writes fl= and
    // fn= lines only if they change.
    void location(std::string_view file, std::string_view function);
    // A place where code was inlined. Call it before all locations, with numbers that go up from 1.
    void site(const Site& site);
    // Counts of one source line (0: unknown), one per event of the header. `site` is where the code
    // was inlined, 0 if it was not. Lines must be grouped by location. The caller adds up counts of
    // the same line and site.
    void line(std::uint32_t line, std::span<const std::uint64_t> counts, std::uint32_t site = 0);
    // Counts of one instruction of the line last written, a part of the counts of line(). `address`
    // is relative to the object with that index in the header.
    void instruction(std::uint32_t object, std::uint64_t address,
                     std::span<const std::uint64_t> counts, std::uint32_t site = 0);
    // Call it after all sites and before all locations, with numbers that go up from 1.
    void group(const Group& group);
    // The name of a function in the object's symbol table. Call it before all locations. It is
    // written after the first lines of that function, or not at all if the function has no lines or
    // the name is too long for a line.
    void linkage(std::string_view function, std::string_view name);
    // The object with the code of a function, by its index in the header. Written like linkage().
    void binary(std::string_view function, std::uint32_t object);
    // The counts of the line last written that belong to the group itself.
    void counts_of(std::uint32_t group, std::span<const std::uint64_t> counts);
    // Values of one instruction of the line last written. As many as fit into a line of the file
    // are written.
    void values(std::uint32_t object, std::uint64_t address, const Hotlist& list);
    // Counts of one calling context (docs/reference/events-file.md), a part of the counts of
    // line(). Call it after all lines and instructions, with numbers that go up from 1.
    void stack(const Stack& stack, std::span<const std::uint64_t> counts);
    // After the last context: `numbers` by context, from the first one.
    void calls(std::span<const std::uint64_t> numbers);
    void recursion(const Recursion& recursion, std::uint64_t number);
    // Writes the summary, the sum of all lines, and renames the file.
    void finish();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace assay::events
