// Prints one function instruction by instruction.
#pragma once

#include "framework/symbols/symbolizer.h"
#include "tools/code/object_code.h"
#include "tools/list/list.h"
#include "tools/list/values.h"
#include "tools/output/output.h"
#include "tools/profile/profile.h"
#include "tools/table/table.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::list {

// An instruction of an object, with its counts in all lines. It may have values without counts.
struct Row {
    std::uint32_t object;
    std::uint64_t address;
    std::string_view function;
    std::span<const Profile::Instruction* const> parts;
    std::span<const Profile::Values* const> values;  // by name

    std::vector<std::uint64_t> counts(const Profile& profile) const;
};

class Instructions {
  public:
    // `profile` must outlive this object. Throws Error if it has no instructions and no values.
    explicit Instructions(const Profile& profile);
    // By object, then by address.
    std::span<const Row> rows() const { return rows_; }

  private:
    std::vector<const Profile::Instruction*> parts_;
    std::vector<const Profile::Values*> values_;
    std::vector<Row> rows_;
};

struct Function {
    std::string name;
    std::string outer;  // the function that the code was inlined into, unless `name` is shown whole
    std::uint32_t object;
    std::uint64_t low = 0, high = 0;  // its code; equal if its extent is unknown
    std::vector<const Row*> rows;     // of the profile, by address
    std::vector<std::uint64_t> counts;
    double weight = 0;  // of this function: see hottest.h
};

// "f", or "f, inlined into g".
std::string text_of(const Function& function, const DisplayNames& names);

class FunctionWriter {
  public:
    FunctionWriter(const Options& options, const Profile& profile, const Columns& columns,
                   const DisplayNames& names, ValuePrinter& values,
                   const std::vector<std::unique_ptr<ObjectCode>>& code, Output& output);
    ~FunctionWriter();
    FunctionWriter(const FunctionWriter&) = delete;
    FunctionWriter& operator=(const FunctionWriter&) = delete;

    // The line above the instructions.
    static std::string heading(const Table& table);

    // Writes the whole function.
    void write(const Function& function, ObjectCode& code);
    // Writes these rows of the function, which are sorted by address, below a heading().
    void write_rows(const Function& function, ObjectCode& code, const std::vector<const Row*>& rows,
                    const Table& table);

  private:
    // An instruction, or an address with counts that is no instruction.
    struct Line {
        std::uint64_t address;
        const Row* row = nullptr;  // null without counts
        CodeText code;
    };
    using Lines = std::vector<Line>;

    std::string title(const Function& function) const;
    // With the names of the targets of jumps.
    Lines named_lines(const Function& function, ObjectCode& code);
    Lines lines_of(const Function& function, const ObjectCode& code);
    void write_line(const Line& line, const Table& table, const ObjectCode& code);
    Line line_at(std::uint64_t address, const Row* row, const ObjectCode& code);
    std::vector<std::string> source_lines(const Lines& lines, const ObjectCode& code);
    std::string_view source_text(std::string_view file, std::uint32_t line);
    std::vector<std::string> read_lines(const std::string& file);
    std::vector<std::string> values_of(const Row& row, const ObjectCode& code, std::size_t width);

    struct Decoders;

    const Options& options_;
    const Profile& profile_;
    const Columns& columns_;
    const DisplayNames& names_;
    ValuePrinter& values_;
    Output& output_;
    Disassembler disassembler_;
    SourceFinder finder_;
    std::unique_ptr<Decoders> decoders_;
    symbols::Symbolizer symbolizer_;
    std::map<std::string, std::vector<std::string>, std::less<>> sources_;  // lines, by file
    std::string warnings_;  // about sources that are new in sources_
};

}  // namespace assay::list
