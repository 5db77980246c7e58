#include "tools/profile/own_view.h"

#include "framework/events/writer.h"
#include "framework/support/error.h"
#include "framework/support/function_names.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "tools/profile/profile.h"
#include "tools/profile/stack_tree.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace assay {
namespace {

// Tells which functions are own. Names of contexts can lack the suffix of a clone that has the
// lines.
class OwnFunctions {
  public:
    OwnFunctions(const Profile& profile, const OwnCode& own) : profile_(profile) {
        std::set<Strings::Id> own_files;
        for (const Profile::Place& place : profile.places())
            if (is_own(place, own)) {
                own_files.insert(place.file);
                add(place.file, place.function);
            }
        // Functions that consist of inlined code have no binary.
        for (const Profile::Site& site : profile.sites().subspan(1))
            if (own_files.contains(site.file)) add(site.file, site.function);
    }

    bool has(Strings::Id function) const { return file_of(function).has_value(); }
    // The source of an own function.
    std::optional<Strings::Id> file_of(Strings::Id function) const {
        const auto found = files_.find(profile_.text(function));
        return found == files_.end() ? std::nullopt : std::optional(found->second);
    }

  private:
    bool is_own(const Profile::Place& place, const OwnCode& own) const {
        const std::optional<std::uint32_t> binary = profile_.binary_of(place.function);
        return own.has(profile_.text(place.function), profile_.text(place.file),
                       binary ? profile_.objects()[*binary].path : std::string());
    }

    void add(Strings::Id file, Strings::Id function) {
        const std::string_view name = profile_.text(function);
        files_.try_emplace(name, file);
        files_.try_emplace(without_clones(name), file);
    }

    const Profile& profile_;
    std::unordered_map<std::string_view, Strings::Id> files_;  // by name
};

class Folding {
  public:
    Folding(const Profile& profile, const OwnCode& own)
        : profile_(profile),
          own_(profile, own),
          by_context_(counted_by_context(profile, nullptr)),
          row_(profile.totals().size()) {
        fold_lines();
        fold_contexts();
        add_rest();
    }

    void write(events::Writer& writer) const {
        for (const auto& [function, name] : profile_.linkage_names())
            writer.linkage(function, name);
        for (const Profile::Function& function : profile_.functions())
            if (const std::optional<std::uint32_t> object = profile_.binary_of(function.name))
                writer.binary(profile_.text(function.name), *object);
        for (const auto& [line, counts] : lines_) {
            const auto& [file, function, number] = line;
            writer.location(file, function);
            writer.line(number, counts);
        }
        for (std::size_t i = 0; i < contexts_.size(); ++i) {
            const Context& context = contexts_[i];
            const Profile::Context& entered = profile_.contexts()[context.of];
            // Nothing is inlined into the outside of all calls.
            const bool is_outermost =
                context.parent == 0 && entered.kind == events::StackKind::kInlined;
            writer.stack({.number = static_cast<std::uint32_t>(i + 1),
                          .parent = context.parent,
                          .kind = is_outermost ? events::StackKind::kJumped : entered.kind,
                          .object = entered.object,
                          .address = entered.address,
                          .line = context.line,
                          .function = profile_.text(entered.function)},
                         context.counts);
        }
        if (profile_.counts_calls()) write_calls(writer);
    }

  private:
    // File, function and line.
    using Line = std::tuple<std::string_view, std::string_view, std::uint32_t>;
    // A context of an own function.
    struct Context {
        std::uint32_t of, parent;  // index in the profile; number in the view, 0 for none
        std::uint32_t line;        // of the call, in the function of the parent
        std::vector<std::uint64_t> counts;
    };
    // The own code that led to a context, itself included.
    struct Caller {
        std::uint32_t context = 0;          // number in the view; 0 if there is none
        std::optional<std::uint32_t> line;  // of the call that left own code; none in own code
    };

    void write_calls(events::Writer& writer) const {
        std::vector<std::uint64_t> numbers;
        for (const Context& context : contexts_)
            numbers.push_back(profile_.contexts()[context.of].calls);
        writer.calls(numbers);
        for (const auto& [at, number] : profile_.recursions()) {
            const Caller &entered = callers_[at.context], &caller = callers_[at.caller];
            if (entered.line || caller.context == 0) continue;  // a library's function
            writer.recursion({entered.context, caller.context, at.object, at.address,
                              caller.line.value_or(at.line)},
                             number);
        }
    }

    void add(const Line& line, Counts counts) { add_counts(lines_[line], counts); }

    Line line_of_library(Strings::Id function) const {
        const std::optional<std::uint32_t> binary = profile_.binary_of(function);
        const std::string path = binary ? profile_.objects()[*binary].path : std::string();
        return {kUnknown,
                names_.emplace(fmt::format("[{}]", path.empty() ? "libraries" : base_name(path)))
                    .first->c_str(),
                0};
    }

    // Own lines have all of their counts. Counts of library code that contexts do not have belong
    // to the own code that it was inlined into.
    void fold_lines() {
        for (std::uint32_t place = 0; place < profile_.places().size(); ++place) {
            const Profile::Place& at = profile_.places()[place];
            for (const Profile::Line& line : profile_.lines_by_site(place)) {
                profile_.counts().read(line.row, row_);
                if (own_.has(at.function)) {
                    add({profile_.text(at.file), profile_.text(at.function), line.line}, row_);
                    continue;
                }
                for (std::size_t event = 0; event < row_.size(); ++event)
                    if (by_context_[event]) row_[event] = 0;
                if (any_count(row_)) add(line_of_inlined(at.function, line.site), row_);
            }
        }
    }

    Line line_of_inlined(Strings::Id function, std::uint32_t site) const {
        for (; site != 0; site = profile_.sites()[site].parent) {
            const Profile::Site& at = profile_.sites()[site];
            if (own_.has(at.function))
                return {profile_.text(at.file), profile_.text(at.function), at.line};
        }
        return line_of_library(function);
    }

    void fold_contexts() {
        const std::span<const Profile::Context> contexts = profile_.contexts();
        callers_.resize(contexts.size());
        for (std::uint32_t i = 1; i < contexts.size(); ++i) {
            const Profile::Context& context = contexts[i];
            Caller caller = callers_[context.parent];
            if (!caller.line) caller.line = profile_.call_line(context);
            profile_.counts().read(context.row, row_);
            if (own_.has(context.function)) {
                contexts_.push_back(
                    {i, caller.context, caller.context == 0 ? 0 : *caller.line, row_});
                callers_[i] = {static_cast<std::uint32_t>(contexts_.size()), std::nullopt};
                continue;
            }
            callers_[i] = caller;
            if (any_count(row_)) add(line_of_caller(caller, context.function), row_);
            if (caller.context == 0) continue;
            // A library's function is not a call of the own function.
            for (std::size_t event = 0; event < row_.size(); ++event)
                if (profile_.events()[event].unit == "calls") row_[event] = 0;
            add_counts(contexts_[caller.context - 1].counts, row_);
        }
    }

    Line line_of_caller(const Caller& caller, Strings::Id library) const {
        if (caller.context == 0) return line_of_library(library);
        const Strings::Id function = profile_.contexts()[contexts_[caller.context - 1].of].function;
        return {profile_.text(*own_.file_of(function)), profile_.text(function), *caller.line};
    }

    // Library code outside of all contexts, where the caller is not known.
    void add_rest() {
        std::vector<std::uint64_t> rest(profile_.totals().begin(), profile_.totals().end());
        for (const auto& [line, counts] : lines_)
            for (std::size_t event = 0; event < rest.size(); ++event) {
                if (counts[event] > rest[event])
                    throw Error(fmt::format(
                        "--only-own: contexts have more {} than lines; leave out --only-own",
                        profile_.events()[event].name));
                rest[event] -= counts[event];
            }
        if (any_count(rest)) add({kUnknown, kOutside, 0}, rest);
    }

    static constexpr std::string_view kUnknown = "???";

    const Profile& profile_;
    const OwnFunctions own_;
    const std::vector<bool> by_context_;
    std::vector<std::uint64_t> row_;  // scratch
    mutable std::set<std::string> names_;
    std::map<Line, std::vector<std::uint64_t>> lines_;
    std::vector<Context> contexts_;
    std::vector<Caller> callers_;  // by context of the profile
};

events::Header header_of_view(const Profile& profile) {
    events::Header header = profile.header();
    header.descriptions = profile.heads().common_descriptions();
    header.descriptions.emplace_back(
        "Own code",
        profile.has_contexts()
            ? "library code counts for the lines that call it"
            : "library code that was inlined counts for the lines that call it; without "
              "--contexts, the callers of other library code are not known");
    header.command = join(profile.commands(), "; ");
    header.objects = profile.objects();
    header.incomplete = join(profile.incomplete(), "; ");
    header.series = profile.series();
    header.pid = 0;
    return header;
}

}  // namespace

void write_own_view(const std::vector<std::string>& paths, const OwnCode& own,
                    const std::string& out) {
    Profile profile(parts::kLines | parts::kContexts | parts::kSeries);
    profile.choose_events({});  // those of the files, without estimates
    for (const std::string& path : paths) profile.add_file(path);
    profile.finish();
    if (!profile.has_contexts())
        log::remark(
            fmt::format("{} has no calling contexts: only inlined library code counts for its "
                        "callers; run with --contexts",
                        join(paths, ", ")));
    events::Writer writer(out, header_of_view(profile));
    Folding(profile, own).write(writer);
    writer.finish();
}

OwnView::OwnView(const std::vector<std::string>& paths, const OwnCode& own)
    : descriptor_(memfd_create("assay own code", MFD_CLOEXEC)) {
    if (descriptor_ < 0)
        throw Error(fmt::format("cannot create a file in memory: {}", std::strerror(errno)));
    path_ = fmt::format("/dev/fd/{}", descriptor_);
    write_own_view(paths, own, path_);
}

OwnView::~OwnView() {
    close(descriptor_);
}

}  // namespace assay
