// Callgrind's format, version 1 (Valgrind's manual, "Callgrind Format Specification"), for
// KCachegrind, QCachegrind and callgrind_annotate.
//
// A function has one block for each object that contains its instructions. If the profile has
// counts of instructions, costs have addresses. The remaining counts of lines have address 0.
#include "framework/events/lexical.h"
#include "framework/version.h"
#include "tools/export/export.h"
#include "tools/export/stacks.h"
#include "tools/profile/call_graph.h"

#include <fmt/format.h>  // format_to: clang does not find it in the library
#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <tuple>

namespace assay::exporting {

namespace {

constexpr std::uint32_t kNoObject = std::numeric_limits<std::uint32_t>::max();

// Writes names as `(1) name` at the first use, later as `(1)`.
class Names {
  public:
    std::string reference(std::string_view name) {
        const auto [entry, is_new] = numbers_.try_emplace(std::string(name), numbers_.size() + 1);
        if (is_new)  // a name ends at the end of its line; lines without a name refer to a number
            return fmt::format("({}) {}", entry->second,
                               name.empty() ? std::string(kUnknown) : events::one_line(name));
        return fmt::format("({})", entry->second);
    }

  private:
    std::unordered_map<std::string, std::size_t> numbers_;
};

// Counts of a line or of an instruction.
struct Cost {
    std::uint32_t object;
    Strings::Id file;
    std::uint32_t line;
    std::uint64_t address;
    std::vector<std::uint64_t> counts;
};

class CallgrindDocument {
  public:
    CallgrindDocument(const Selection& selection, Sink& sink)
        : profile_(selection.profile),
          events_(selection.events),
          sink_(sink),
          has_instructions_(!profile_.instructions().empty()),
          graph_(call_graph(profile_)),
          calls_(graph_.calls) {
        leave_out_callers_outside();
    }

    void write() {
        write_header();
        find_objects();
        for (const Profile::Function& function : profile_.functions()) write_function(function);
        write_functions_without_lines();
        sink_.write("\ntotals:" + numbers(profile_.totals()) + "\n");
    }

  private:
    // callgrind_annotate computes the inclusive costs of a function from all its calls, or, without
    // calls, from its own costs and its callees. A caller outside is not needed if that second sum
    // is right.
    void leave_out_callers_outside() {
        std::map<FunctionKey, std::vector<std::uint64_t>> sums;
        std::set<FunctionKey> called;
        for (const auto& [function, counts] : graph_.functions) sums[function] = counts.exclusive;
        for (const auto& [site, calls] : calls_) {
            if (site.caller == kOutsideCaller) continue;
            called.insert(site.callee);
            std::vector<std::uint64_t>& sum = sums[site.caller];
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += calls.inclusive[i];
        }
        std::erase_if(calls_, [&](const auto& call) {
            const FunctionKey& callee = call.first.callee;
            return call.first.caller == kOutsideCaller && !called.contains(callee) &&
                   sums[callee] == graph_.functions[callee].inclusive;
        });
    }

    void write_header() {
        sink_.write("# callgrind format\nversion: 1\n");
        sink_.write(fmt::format("creator: assay {}\n", kVersion));
        for (const std::string& command : profile_.commands())
            sink_.write(fmt::format("cmd: {}\n", events::one_line(command)));
        for (const auto& [name, value] : profile_.heads().common_descriptions())
            sink_.write(
                fmt::format("desc: {}: {}\n", events::one_line(name), events::one_line(value)));
        for (const std::string& reason : profile_.incomplete())
            sink_.write(fmt::format("desc: incomplete: {}\n", events::one_line(reason)));
        sink_.write(fmt::format("\npositions: {}line\n", has_instructions_ ? "instr " : ""));
        std::string names;
        for (const std::size_t index : events_) {
            const events::Event& event = profile_.events()[index];
            names += " " + event.name;
            if (!event.description.empty())
                sink_.write(fmt::format("event: {} : {}\n", event.name,
                                        events::one_line(event.description)));
        }
        sink_.write("events:" + names + "\nsummary:" + numbers(profile_.totals()) + "\n");
    }

    std::string numbers(Counts counts) const {
        std::string out;
        for (const std::size_t event : events_)
            fmt::format_to(std::back_inserter(out), " {}", counts[event]);
        return out;
    }

    // Chooses the object of each function: that of its first instruction, or of its calls.
    void find_objects() {
        if (!has_instructions_) return;
        for (const Profile::Function& function : profile_.functions())
            for (std::uint32_t i = function.first_place; i < function.end_place; ++i)
                for (const Profile::Instruction& at : profile_.instructions(i))
                    objects_.try_emplace({function.file, function.name}, at.object);
        for (const auto& [site, calls] : calls_)
            if (!site.inlined) objects_.try_emplace(site.caller, site.object);
        find_objects_of_inlined();
    }

    // Inlined functions are in the object of their caller. Visits each function once, after a
    // function that it was inlined into.
    void find_objects_of_inlined() {
        std::vector<FunctionKey> callers;
        for (const auto& [function, object] : objects_) callers.push_back(function);
        for (std::size_t i = 0; i < callers.size(); ++i) {
            const FunctionKey caller = callers[i];
            const std::uint32_t object = objects_.at(caller);
            for (auto call = first_call(caller);
                 call != calls_.end() && call->first.caller == caller; ++call)
                if (call->first.inlined && objects_.try_emplace(call->first.callee, object).second)
                    callers.push_back(call->first.callee);
        }
    }

    std::uint32_t object_of(const FunctionKey& key) const {
        const auto found = objects_.find(key);
        return found == objects_.end() ? kNoObject : found->second;
    }

    std::string object_name(std::uint32_t object) const {
        return object == kNoObject ? std::string(kUnknown)
                                   : events::one_line(profile_.objects()[object].path);
    }

    // --- Own costs

    std::vector<Cost> costs_of(const Profile::Function& function) const {
        const std::uint32_t object = object_of({function.file, function.name});
        std::vector<Cost> costs;
        for (std::uint32_t place = function.first_place; place < function.end_place; ++place) {
            const Strings::Id file = profile_.places()[place].file;
            for_each_part(
                profile_, place,
                [&](const Profile::Instruction& at, const std::vector<std::uint64_t>& counts) {
                    costs.push_back({at.object, file, at.line, at.address, counts});
                },
                [&](const Profile::Line& line, const std::vector<std::uint64_t>& rest) {
                    costs.push_back({object, file, line.line, 0, rest});
                });
        }
        std::stable_sort(costs.begin(), costs.end(), [](const Cost& a, const Cost& b) {
            return std::tie(a.object, a.file) < std::tie(b.object, b.file);
        });
        return costs;
    }

    void write_function(const Profile::Function& function) {
        const FunctionKey key = {function.file, function.name};
        const std::vector<Cost> costs = costs_of(function);
        bool calls_written = false;
        for (auto begin = costs.begin(); begin != costs.end();) {
            const auto end = std::find_if(
                begin, costs.end(), [&](const Cost& cost) { return cost.object != begin->object; });
            start_block(key, begin->object);
            for (; begin != end; ++begin) write_cost(*begin);
            if (std::prev(end)->object == object_of(key)) {
                write_calls(key);
                calls_written = true;
            }
        }
        if (calls_written || !makes_calls(key)) return;
        start_block(key, object_of(key));
        write_calls(key);
    }

    // `file_` is the file of the last fl=, fi= or fe= line.
    void start_block(const FunctionKey& key, std::uint32_t object) {
        sink_.write("\n");
        if (has_instructions_)
            sink_.write(fmt::format("ob={}\n", object_names_.reference(object_name(object))));
        sink_.write(fmt::format("fl={}\nfn={}\n",
                                file_names_.reference(text_of(profile_, key.file)),
                                function_names_.reference(text_of(profile_, key.name))));
        file_ = function_file_ = key.file;
    }

    // fi= begins code of another file, fe= ends it.
    void set_file(Strings::Id file) {
        if (file == file_) return;
        file_ = file;
        sink_.write(fmt::format("{}={}\n", file == function_file_ ? "fe" : "fi",
                                file_names_.reference(text_of(profile_, file))));
    }

    std::string position(std::uint64_t address, std::uint32_t line) const {
        return has_instructions_ ? fmt::format("{:#x} {}", address, line) : fmt::format("{}", line);
    }

    void write_cost(const Cost& cost) {
        set_file(cost.file);
        sink_.write(position(cost.address, cost.line) + numbers(cost.counts) + "\n");
    }

    // --- Calls

    // The first call site of a caller, in the order of the call graph.
    std::map<CallSite, Calls>::const_iterator first_call(const FunctionKey& caller) const {
        CallSite first{};
        first.caller = caller;
        return calls_.lower_bound(first);
    }
    bool makes_calls(const FunctionKey& caller) const {
        const auto first = first_call(caller);
        return first != calls_.end() && first->first.caller == caller;
    }

    Strings::Id file_of(const CallSite& site) const {
        const auto* const at =
            site.inlined ? nullptr : profile_.instruction_at(site.object, site.address);
        return at ? profile_.places()[at->place].file : site.caller.file;
    }

    void write_calls(const FunctionKey& caller) {
        for (auto call = first_call(caller); call != calls_.end() && call->first.caller == caller;
             ++call) {
            const CallSite& site = call->first;
            set_file(file_of(site));
            if (has_instructions_)
                sink_.write(fmt::format(
                    "cob={}\n", object_names_.reference(object_name(object_of(site.callee)))));
            // Like Callgrind, omits cfi= for the current file. callgrind_annotate shortens only the
            // name of the current file, so it would take the two for different files.
            if (site.callee.file != file_)
                sink_.write(fmt::format(
                    "cfi={}\n", file_names_.reference(text_of(profile_, site.callee.file))));
            // callgrind_annotate adds the costs of 0 calls to the caller's own costs, so write at
            // least 1.
            sink_.write(fmt::format("cfn={}\ncalls={} {}\n",
                                    function_names_.reference(text_of(profile_, site.callee.name)),
                                    std::max<std::uint64_t>(1, call->second.number),
                                    position(0, 0)));
            sink_.write(position(site.address, site.line) + numbers(call->second.inclusive) + "\n");
        }
    }

    // Writes callers whose own instructions have no counts.
    void write_functions_without_lines() {
        std::set<FunctionKey> written;
        for (const Profile::Function& function : profile_.functions())
            written.insert({function.file, function.name});
        for (auto call = calls_.begin(); call != calls_.end();) {
            const FunctionKey caller = call->first.caller;
            if (!written.contains(caller)) {
                start_block(caller, object_of(caller));
                write_calls(caller);
            }
            while (call != calls_.end() && call->first.caller == caller) ++call;
        }
    }

    const Profile& profile_;
    const std::vector<std::size_t>& events_;
    Sink& sink_;
    bool has_instructions_;
    CallGraph graph_;
    std::map<CallSite, Calls>& calls_;  // calls of graph_
    std::map<FunctionKey, std::uint32_t> objects_;
    Names object_names_, file_names_, function_names_;
    Strings::Id file_ = 0, function_file_ = 0;
};

}  // namespace

void write_callgrind(const Selection& selection, Sink& sink) {
    CallgrindDocument(selection, sink).write();
}

}  // namespace assay::exporting
