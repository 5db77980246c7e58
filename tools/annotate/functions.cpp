#include "tools/annotate/functions.h"

#include "framework/support/text.h"

#include <algorithm>
#include <numeric>

namespace assay::annotate {

namespace {

// A file with its functions, or a function's name with its files.
struct Group {
    std::uint32_t name;
    std::vector<std::uint64_t> counts;
    std::vector<std::size_t> functions;  // indices in the profile
    std::size_t all;                     // how many there are, above the threshold or not
    bool is_single() const { return all == 1; }
};

enum class By : std::uint8_t { kFile, kFunction };

std::uint32_t outer(By by, const Profile& profile, std::size_t function) {
    return by == By::kFile ? profile.by_source().file(function)
                           : profile.by_source().name(function);
}

// Those above the threshold, in no order. Of millions few are: what all have is in one place.
std::vector<Group> groups_above_threshold(By by, const Profile& profile,
                                          const std::vector<SortColumn>& sort) {
    const std::size_t columns = profile.totals().size();
    const std::size_t names =
        (by == By::kFile ? profile.by_source().files() : profile.by_source().names()).size();
    std::vector<std::uint64_t> counts(names * columns);
    std::vector<std::uint32_t> sizes(names), group_of(names);
    std::vector<bool> has_large(names);  // a function that is above the threshold
    for (std::size_t i = 0; i < profile.by_source().size(); ++i) {
        const std::uint32_t name = outer(by, profile, i);
        ++sizes[name];
        const Counts row = profile.by_source().counts(i);
        for (std::size_t e = 0; e < columns; ++e) counts[name * columns + e] += row[e];
        // Those of a difference may cancel.
        if (profile.header().difference &&
            is_above_threshold(row, profile.totals(), sort, profile.header()))
            has_large[name] = true;
    }
    std::vector<Group> groups;
    for (std::uint32_t name = 0; name < names; ++name) {
        const Counts sum = Counts(counts).subspan(name * columns, columns);
        if (sizes[name] == 0) continue;
        if (!has_large[name] && !is_above_threshold(sum, profile.totals(), sort, profile.header()))
            continue;
        groups.push_back({name, {sum.begin(), sum.end()}, {}, sizes[name]});
        group_of[name] = static_cast<std::uint32_t>(groups.size());
    }
    for (std::size_t i = 0; i < profile.by_source().size(); ++i)
        if (const std::uint32_t group = group_of[outer(by, profile, i)])
            groups[group - 1].functions.push_back(i);
    return groups;
}

std::string_view outer_name(By by, const Profile& profile, const Group& group) {
    return by == By::kFile ? profile.by_source().files()[group.name]
                           : profile.by_source().names()[group.name];
}

// Those above the threshold, in order.
std::vector<Group> groups_to_show(By by, const Profile& profile,
                                  const std::vector<SortColumn>& sort) {
    std::vector<Group> groups = groups_above_threshold(by, profile, sort);
    std::sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
        return comes_first(a.counts, b.counts, sort, profile.header())
            .value_or(outer_name(by, profile, a) < outer_name(by, profile, b));
    });
    return groups;
}

class GroupWriter {
  public:
    GroupWriter(By by, const Profile& profile, const Columns& columns,
                const std::vector<SortColumn>& sort, Output& output)
        : by_(by), profile_(profile), columns_(columns), sort_(sort), output_(output) {}

    void write() {
        groups_ = groups_to_show(by_, profile_, sort_);
        for (Group& group : groups_) choose_functions(group);
        Table table(columns_);
        for_each([&](const Group& group, Counts running) {
            table.fit(group.counts, running);
            if (!group.is_single())
                for (const std::size_t function : group.functions)
                    table.fit(profile_.by_source().counts(function));
        });
        output_.section(by_ == By::kFile ? "Files and their functions"
                                         : "Functions and their files");
        output_.write("  " + table.heading(by_ == By::kFile ? "file:function" : "function:file") +
                      "\n");
        for_each([&](const Group& group, Counts running) { write_group(table, group, running); });
        if (groups_.empty()) output_.write("  none is above the threshold\n\n");
    }

  private:
    void choose_functions(Group& group) const {
        if (group.is_single()) return;
        std::erase_if(group.functions,
                      [&](std::size_t f) { return !is_shown(profile_.by_source().counts(f)); });
        std::sort(group.functions.begin(), group.functions.end(),
                  [&](std::size_t a, std::size_t b) {
                      return comes_first(profile_.by_source().counts(a),
                                         profile_.by_source().counts(b), sort_, columns_.header)
                          .value_or(inner_name(a) < inner_name(b));
                  });
    }

    bool is_shown(Counts counts) const {
        return is_above_threshold(counts, columns_.totals, sort_, columns_.header);
    }

    template <typename Function>
    void for_each(const Function& function) const {
        std::vector<std::uint64_t> running(columns_.totals.size());
        for (const Group& group : groups_) {
            for (std::size_t i = 0; i < running.size(); ++i) running[i] += group.counts[i];
            function(group, running);
        }
    }

    void write_group(const Table& table, const Group& group, Counts running) const {
        const std::string mark = by_ == By::kFile ? "< " : "> ";
        const std::string name = printable(outer_name(by_, profile_, group));
        if (group.is_single()) {
            output_.write(mark + table.row(group.counts,
                                           name + ":" + printable(inner_name(group.functions[0])),
                                           running));
        } else {
            output_.write(mark + table.row(group.counts, name + ":", running));
            for (const std::size_t function : group.functions)
                output_.write("  " + table.row(profile_.by_source().counts(function),
                                               "  " + printable(inner_name(function))));
        }
        output_.write("\n");
    }

    std::string_view inner_name(std::size_t function) const {
        return by_ == By::kFile ? profile_.by_source().names()[profile_.by_source().name(function)]
                                : profile_.by_source().files()[profile_.by_source().file(function)];
    }

    By by_;
    const Profile& profile_;
    const Columns& columns_;
    const std::vector<SortColumn>& sort_;
    Output& output_;
    std::vector<Group> groups_;
};

}  // namespace

std::vector<std::uint32_t> files_to_show(const Profile& profile,
                                         const std::vector<SortColumn>& sort) {
    std::vector<std::uint32_t> files;
    for (const Group& group : groups_to_show(By::kFile, profile, sort)) files.push_back(group.name);
    return files;
}

std::vector<std::size_t> functions_in_order(const Profile& profile,
                                            const std::vector<SortColumn>& sort) {
    std::vector<std::size_t> functions(profile.by_source().size());
    std::iota(functions.begin(), functions.end(), 0);
    const auto name = [&](std::size_t function) {
        return std::pair(profile.by_source().files()[profile.by_source().file(function)],
                         profile.by_source().names()[profile.by_source().name(function)]);
    };
    std::sort(functions.begin(), functions.end(), [&](std::size_t a, std::size_t b) {
        return comes_first(profile.by_source().counts(a), profile.by_source().counts(b), sort,
                           profile.header())
            .value_or(name(a) < name(b));
    });
    return functions;
}

void write_functions(const Profile& profile, const Columns& columns,
                     const std::vector<SortColumn>& sort, Output& output) {
    GroupWriter(By::kFile, profile, columns, sort, output).write();
    GroupWriter(By::kFunction, profile, columns, sort, output).write();
}

}  // namespace assay::annotate
