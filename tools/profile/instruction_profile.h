// An events file by instruction.
#pragma once

#include "framework/events/reader.h"
#include "tools/profile/count_store.h"
#include "tools/profile/strings.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

class InstructionProfile final : public events::Handler {
  public:
    // An instruction.
    struct Row {
        std::uint32_t object;
        std::uint64_t address;  // link-time address in the object
        std::string_view function;
        CountStore::Row counts;
    };

    // Throws Error if the file is malformed, or has no counts of instructions.
    explicit InstructionProfile(const std::string& path, const events::EventChoice& choice = {});

    const events::Header& header() const { return header_; }
    Counts totals() const { return totals_; }
    // By object, then by address; each address once.
    std::span<const Row> rows() const { return rows_; }
    std::vector<std::uint64_t> counts(const Row& row) const;
    // Adds those of the row to `sum`.
    void add_to(std::span<std::uint64_t> sum, const Row& row) const {
        counts_.add_to(sum, row.counts);
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
    void add(const Instruction& at, CountStore::Row counts);
    void add_up();

    events::Header header_;
    std::vector<std::uint64_t> totals_;
    CountStore counts_;
    CountStore::Row no_counts_ = 0;
    std::vector<Row> rows_;
    std::vector<Values> values_;
    Strings names_;
    std::string_view function_;
};

}  // namespace assay
