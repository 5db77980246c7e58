// Where exceptions of C++ and similar languages continue in the code of a file: its landing pads,
// as .eh_frame and the tables of its functions list them (Linux Standard Base, 10.6; "Exception
// Handling Tables" in the sources of GCC). Only little-endian files with an index of .eh_frame.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace assay::qemu {

// Addresses of code.
struct CodeRange {
    std::uint64_t begin, end;

    friend bool operator==(const CodeRange&, const CodeRange&) = default;
};

// All addresses are those of the file.
class LandingPads {
  public:
    // The file's bytes, which only this function reads. What is damaged is left out.
    explicit LandingPads(std::span<const std::uint8_t> file);

    // The calls that an exception can leave for this address. No ranges if it is no landing pad.
    std::span<const CodeRange> calls(std::uint64_t address) const;
    // The address of the code at an offset in the file; 0: there is none.
    std::uint64_t code_at(std::uint64_t offset) const;

  private:
    struct Segment {
        std::uint64_t address, offset, bytes;
        bool has_code;
    };
    struct Description;  // of the functions that share it
    class Cursor;

    template <typename Header, typename Row>
    std::uint64_t read_segments();
    std::uint64_t frames_of(std::uint64_t index) const;
    void read_frames(std::uint64_t frames);
    Description description_at(std::uint64_t address) const;
    void read_function(Cursor& at, const Description& description);
    void read_pads(std::uint64_t table, std::uint64_t function);
    std::span<const std::uint8_t> from(std::uint64_t address) const;

    std::span<const std::uint8_t> file_;
    unsigned word_bytes_ = 8;
    std::vector<Segment> segments_;
    std::unordered_map<std::uint64_t, std::vector<CodeRange>> calls_;  // by landing pad
};

// The landing pads of mapped files, at the addresses of the program.
class MappedLandingPads {
  public:
    void map(std::uint64_t start, std::uint64_t end, std::uint64_t offset, const std::string& path);
    void unmap(std::uint64_t start) { mappings_.erase(start); }
    // As LandingPads::calls(). Reads the file when its first address is asked for.
    std::vector<CodeRange> calls(std::uint64_t address);

  private:
    struct Mapping {
        std::uint64_t end, offset;
        std::string path;
    };

    std::map<std::uint64_t, Mapping> mappings_;  // by start
    std::map<std::string, LandingPads> files_;
};

}  // namespace assay::qemu
