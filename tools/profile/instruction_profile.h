// An events file by instruction.
#pragma once

#include "framework/events/reader.h"
#include "tools/profile/count_store.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace assay {

class InstructionProfile final : public events::Handler {
  public:
    // An instruction.
    struct Row {
        std::uint32_t object;
        std::uint64_t address;  // link-time address in the object
        std::uint32_t line;     // of `file`; 0 if unknown
        std::string_view file, function;
        std::size_t counts;  // see counts()
    };

    // Throws Error if the file is malformed, or has no counts of instructions.
    explicit InstructionProfile(const std::string& path);

    const events::Header& header() const { return header_; }
    Counts totals() const { return totals_; }
    // By object, then by address; each address once.
    std::span<const Row> rows() const { return rows_; }
    Counts counts(const Row& row) const {
        return Counts(counts_).subspan(row.counts * columns_, columns_);
    }
    // What was seen at an instruction, by the names of the lists.
    std::vector<const events::Hotlist*> values(const Row& row) const;
    // The names of all lists, each once.
    std::vector<std::string_view> lists() const;

  private:
    struct Values {
        std::uint32_t object;
        std::uint64_t address;
        events::Hotlist list;
    };

    void start(const events::Header& header) override;
    void location(const events::Location& location) override;
    void instruction(const Instruction& at, Counts counts) override;
    void values(const Instruction& at, const events::Hotlist& list) override;
    void object(const events::Object& object) override { header_.objects.push_back(object); }
    void add(const Instruction& at, Counts counts);
    void add_up();

    events::Header header_;
    std::size_t columns_ = 0;
    std::vector<std::uint64_t> totals_, counts_;
    std::vector<Row> rows_;
    std::vector<Values> values_;
    std::unordered_set<std::string> names_;  // its nodes own what views refer to
    std::string_view file_, function_;
};

}  // namespace assay
