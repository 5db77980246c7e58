// The references of a run, to be replayed: compressed, in a temporary file without a name.
#pragma once

#include "assay/trace_types.h"

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace struct_layout {

class Recording {
  public:
    // The file gets no larger than that; what follows is left out.
    explicit Recording(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

    // Those of one thread, in the order in which they are to be replayed. Only the site and the
    // value are kept. Throws std::runtime_error if there is no room in the file system.
    void add(std::uint32_t thread, std::span<const trace_record_t> references);
    // After the last.
    void end() { write(); }

    std::uint64_t references() const { return references_; }
    std::uint64_t left_out() const { return left_out_; }
    std::uint64_t bytes() const { return bytes_; }

    using Take = std::function<void(std::uint32_t thread, std::span<const trace_record_t>)>;
    void replay(const Take& take);

  private:
    struct Chunk {
        std::uint32_t thread, count;
        std::size_t bytes, packed;
    };
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    // What the next record is told as a difference to.
    struct Before {
        std::uint32_t site = 0;
        std::vector<std::uint64_t> values;  // by site
        std::uint64_t& value(std::uint32_t of);
    };

    void write();

    const std::uint64_t most_bytes_;
    std::unique_ptr<std::FILE, Close> file_;
    std::vector<Chunk> chunks_;
    std::vector<unsigned char> pending_, packed_;  // of a chunk
    std::uint32_t pending_thread_ = 0, pending_count_ = 0;
    Before before_;
    std::uint64_t references_ = 0, left_out_ = 0, bytes_ = 0;
};

}  // namespace struct_layout
