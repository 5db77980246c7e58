// The files of drmemtrace, DynamoRIO's tracer: records of 12 bytes (clients/drcachesim/common/
// trace_entry.h of DynamoRIO, trace_entry_t).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

namespace assay::tracing::drmemtrace {

enum Type : std::uint16_t {
    kRead = 0,
    kWrite = 1,
    kFirstPrefetch = 2,
    kLastPrefetch = 9,
    kInstr = 10,
    kDirectJump = 11,
    kIndirectJump = 12,
    kConditionalJump = 13,
    kDirectCall = 14,
    kIndirectCall = 15,
    kReturn = 16,
    kInstrFlush = 18,
    kInstrFlushEnd = 19,
    kDataFlush = 20,
    kDataFlushEnd = 21,
    kThread = 22,
    kThreadExit = 23,
    kPid = 24,
    kHeader = 25,
    kFooter = 26,
    kMarker = 28,
    kNoFetch = 29,  // a further iteration of a repeated string instruction
    kSysenter = 31,
    kFirstOtherPrefetch = 32,
    kLastOtherPrefetch = 46,
    kEncoding = 47,
    kTakenJump = 48,
    kUntakenJump = 49,
};

// The size of a record of type kMarker.
enum Marker : std::uint16_t {
    kKernelEvent = 0,
    kTimestamp = 2,
    kSplitValue = 8,  // only in files before DynamoRIO's post-processing
    kFileType = 9,
    kVersion = 12,
    kRseqAbort = 13,
    kChunkFooter = 21,
    kFilterEndpoint = 23,
    kBranchTarget = 29,
    kLastKnownMarker = 36,
};

inline constexpr std::uint64_t kOldestVersion = 2, kVersionOfKernelPc = 3, kLatestVersion = 6;

// Bits of the value of kFileType.
inline constexpr std::uint64_t kFiltered = 0x01 | 0x80 | 0x100 | 0x2000;
inline constexpr std::uint64_t kInstructionsOnly = 0x04;
inline constexpr std::uint64_t kAarch64 = 0x08, k32Bits = 0x10 | 0x20, kX86 = 0x40;
inline constexpr std::uint64_t kEncodings = 0x200;
// The encodings are DynamoRIO's synthetic ones, which only tell registers.
inline constexpr std::uint64_t kSynthetic = 0x20000;
inline constexpr std::uint64_t kKernelCode = 0x1000;
// These bits tell optimizations, and what is known of system calls. They change nothing here.
inline constexpr std::uint64_t kOthers = 0x02 | 0x400 | 0x800;

struct Entry {
    static constexpr std::size_t kBytes = 12;

    Entry() = default;
    explicit Entry(const char* from) {
        std::memcpy(&type, from, sizeof type);
        std::memcpy(&size, from + 2, sizeof size);
        std::memcpy(bytes.data(), from + 4, bytes.size());
    }
    std::uint64_t value() const {
        std::uint64_t value = 0;
        std::memcpy(&value, bytes.data(), sizeof value);
        return value;
    }

    std::uint16_t type = 0, size = 0;
    std::array<std::uint8_t, 8> bytes{};  // an address, a value or an encoding
};

// Reads the records of one file: plain or compressed, or a zip archive, whose members continue each
// other.
class EntryReader {
  public:
    // Throws Error if the file cannot be opened or does not begin with a header.
    explicit EntryReader(const std::string& path);
    ~EntryReader();
    EntryReader(const EntryReader&) = delete;
    EntryReader& operator=(const EntryReader&) = delete;

    // Returns the next record; null after the last one, which must be a footer. Throws Error.
    const Entry* next();
    // Throws Error that names the file and the record that next() returned.
    [[noreturn]] void fail(const std::string& what) const;

  private:
    class Source;
    class Plain;
    class Zip;
    bool fill();

    const std::string path_;
    const std::unique_ptr<Source> source_;
    std::string room_;
    std::size_t at_ = 0;  // of the next record in `room_`
    Entry entry_;
    std::uint64_t number_ = 0;  // of `entry_`, from 1
};

}  // namespace assay::tracing::drmemtrace
