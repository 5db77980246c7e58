// Writes the source files of a page with the counts of their lines and instructions. A difference
// shows both versions side by side.
#pragma once

#include "tools/output/formats.h"
#include "tools/report/assembly.h"
#include "tools/report/data.h"
#include "tools/report/functions.h"
#include "tools/report/report.h"
#include "tools/sources/source_finder.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

class Sources {
  public:
    // All arguments must outlive this object.
    Sources(const Content& content, const Options& options, FunctionList& functions,
            Assembly& assembly, JsonWriter& json);

    // Writes the files by descending counts. Names on stderr the files that SourceFinder does not
    // accept as sources.
    void write();

  private:
    // The part of a line that belongs to one function.
    struct Row {
        std::uint32_t line;
        std::uint32_t function;  // row in the list of functions
        CountStore::Row counts;
    };
    struct Text {
        SourceFinder::Status status = SourceFinder::Status::kNotFound;
        std::string path, warning;
        std::optional<std::string> content;
        std::vector<std::string_view> lines;
    };
    // A source file in one profile.
    struct Version {
        const Profile* profile = nullptr;  // null if the profile does not have the file
        Strings::Id name = 0;
        std::vector<Row> rows;
        Text text;
    };
    struct File {
        std::string_view name;
        Version now, old;
        Column sum, old_sum;
        std::map<std::uint32_t, Column> callees;  // by line: counts of what is called there
    };

    void collect();
    void add_callees();
    void add(const Profile& profile, bool is_old);
    void read(Version& version, SourceFinder& finder, const std::vector<std::string>& profiles);
    void write_file(File& file);
    void write_version(const Version& version);
    void write_callees(const File& file);
    void write_texts(const File& file);
    void write_pieces(const Text& text, const std::vector<bool>& shown);
    void say_what_is_left_out() const;

    const Content& content_;
    const Options& options_;
    FunctionList& functions_;
    Assembly& assembly_;
    JsonWriter& json_;
    SourceFinder finder_, old_finder_;
    std::map<std::string_view, File> files_;
    std::size_t source_bytes_ = 0;
    std::vector<std::string> left_out_;  // files not accepted as sources
};

}  // namespace assay::report
