// assay/profiler.hpp - profilers in C++20, on top of the C interface of assay/vprofiler.h.
//
//     class Splits final : public assay::Profiler {
//       public:
//         static constexpr const char* kName = "splits";
//         static constexpr vp_event_t kEvents[] = {
//             {"Splits", "references of two lines", "references"}};
//         void capture(assay::Captures& wanted) override { wanted.references(); }
//         void process(assay::Trace& trace, assay::Samples& samples) override { ... }
//     };
//     extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch = assay::dispatch<Splits>();
//
// An object of the class lives from vp_init to vp_release: one run of one program. assay calls its
// functions on one thread, in this order: option() for each option, check_options(), capture(),
// process() for each buffer, finish(), finish_more(), summary(). If one of them throws, assay shows
// the text of the exception. The profiler is then lost; if option() or check_options() throws, the
// run does not start. No exception leaves the library.
//
// Data from a Trace belongs to assay and is valid during the call, unless stated otherwise. This
// header copies or keeps all data that is returned or passed to assay. Do not call functions of
// this header from threads that the profiler starts.
//
// Unless stated otherwise, addresses are virtual addresses of the profiled process, sizes are in
// bytes, and counts are numbers of executions.
//
// This header is not part of the binary interface. Profilers built with different versions of it
// work in one run, also if their classes have the same name. For classes with static members, this
// requires -fvisibility=hidden. You can also use the C functions.
#ifndef ASSAY_PROFILER_HPP
#define ASSAY_PROFILER_HPP

#include <assay/vprofiler.h>
#include <assay/series.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace assay {

// Throw this from Profiler::option for an unusable value. The user sees "--name=value: why".
class BadOption final : public std::invalid_argument {
  public:
    BadOption(std::string_view name, std::string_view value, std::string_view why)
        : std::invalid_argument("--" + std::string(name) + "=" + std::string(value) + ": " +
                                std::string(why)) {}
};

// Returns the value of an option as a decimal number from `least` to `most`. Throws BadOption if it
// is not such a number.
inline std::uint64_t number(std::string_view name, std::string_view value, std::uint64_t least,
                            std::uint64_t most) {
    std::uint64_t found = 0;
    const char* const end = value.data() + value.size();
    const auto [stopped, error] = std::from_chars(value.data(), end, found);
    if (error != std::errc{} || stopped != end || found < least || found > most)
        throw BadOption(name, value,
                        "use " + std::to_string(least) + " to " + std::to_string(most));
    return found;
}

// Requests captures, in Profiler::capture only. trace_vlist.h describes each function and its cost.
class Captures {
  public:
    // Does not take ownership of `spec`.
    explicit Captures(trace_vlist_table_t* spec) : spec_(spec) {}

    // Execution counts of instructions, for Trace::count.
    void block_counts() { trace_capture_block_counts(spec_); }
    // Data references: all with 0 sets. Otherwise without those that cannot change an LRU cache
    // with that line size and at least `filter_sets` sets.
    void references(std::uint32_t filter_line = 64, std::uint32_t filter_sets = 0) {
        trace_capture_references(spec_, filter_line, filter_sets);
    }
    // The same, and the first write to a line since it became the most recent of its set.
    void first_writes(std::uint32_t filter_line, std::uint32_t filter_sets) {
        trace_capture_first_writes(spec_, filter_line, filter_sets);
    }
    // As references(), with the bytes touched by omitted references, for Trace::footprints.
    void footprints(std::uint32_t filter_line, std::uint32_t filter_sets) {
        trace_capture_footprints(spec_, filter_line, filter_sets);
    }
    // Data references without those that continue a run of their operand. `aux` is their number.
    void runs() { trace_capture_runs(spec_); }
    // Instruction fetches by line, in order with data references; with 0 sets all.
    void fetches(std::uint32_t filter_line, std::uint32_t filter_sets) {
        trace_capture_fetches(spec_, filter_line, filter_sets);
    }
    // Fetches and data references that miss a cache of each thread, if possible (Trace::misses).
    // nullptr captures nothing of that kind.
    void misses(const trace_cache_t* fetch, const trace_cache_t* data) {
        trace_capture_misses(spec_, fetch, data);
    }
    // Fetches in order with data references, and through their filter.
    void code(std::uint32_t line) { trace_capture_code(spec_, line); }
    // Calls and returns, and the context of each record, for Trace::contexts.
    void calls() { trace_capture_calls(spec_); }
    // The blocks of every `instructions` instructions of a thread, for Trace::next_interval.
    void intervals(std::uint64_t instructions) { trace_capture_intervals(spec_, instructions); }
    // With --sample: also the `instructions` before each burst, in buffers with Trace::is_warm_up.
    void warm_up(std::uint64_t instructions) { trace_capture_warm_up(spec_, instructions); }
    // Iterations of repeated string instructions, without references.
    void repeats() { trace_capture_repeats(spec_); }
    // Trace::facts will be called.
    void facts() { trace_capture_facts(spec_); }
    // Each execution of branches of these kinds: a set of TRACE_CONDITIONAL_BRANCHES and others.
    void branches(std::uint32_t which) { trace_capture_branches(spec_, which); }
    // System calls and their results; with TRACE_SYSTEM_CALL_TIMES also their durations.
    void system_calls(std::uint32_t which = 0) { trace_capture_system_calls(spec_, which); }
    // Possible sizes of pages, as markers TRACE_MARKER_PAGES_4K to TRACE_MARKER_PAGES_SEEN.
    void mappings() { trace_capture_mappings(spec_); }
    // Each execution of a basic block, before the records of its instructions: TRACE_SITE_BLOCK.
    void blocks() { trace_capture_blocks(spec_); }
    // Counts of mispredictions, for Trace::mispredictions. The default sizes are Cachegrind's.
    void predictions(std::uint32_t history_bits = 7, std::uint32_t address_bits = 7,
                     std::uint32_t target_bits = 9) {
        trace_capture_predictions(spec_, history_bits, address_bits, target_bits);
    }

    // At most TRACE_VLIST_MAX values of each execution of some instructions, for Trace::next.
    // `selector` returns non-zero for the opcodes, or `opcode` (TRACE_OPCODE) names one. Several
    // calls append to the list of an instruction.
    void values(std::initializer_list<trace_value_t> wanted, trace_selector_t selector) {
        added(trace_add_vlist_by_select(spec_, selector, list_of(wanted).get()));
    }
    void values(std::initializer_list<trace_value_t> wanted, std::uint16_t opcode) {
        added(trace_add_vlist_by_opc(spec_, opcode, list_of(wanted).get()));
    }
    // The value that `pick` returns for an opcode; TRACE_NONE captures nothing. Replaces all
    // earlier lists.
    void value(trace_pick_value_t pick) {
        if (trace_set_vlist_by_pick_value(spec_, pick) != 0)
            throw std::invalid_argument("a value that assay does not know");
    }

    // For functions of trace_vlist.h. Do not free it.
    trace_vlist_table_t* get() const { return spec_; }

  private:
    struct Free {
        void operator()(trace_vlist_t* list) const { std::free(list); }
    };
    static std::unique_ptr<trace_vlist_t, Free> list_of(
        std::initializer_list<trace_value_t> wanted) {
        std::unique_ptr<trace_vlist_t, Free> list(trace_vlist_alloc());
        for (const trace_value_t value : wanted)
            if (trace_add_value_to_vlist(list.get(), value) != 0)
                throw std::invalid_argument("too many values, or one that assay does not know");
        return list;
    }
    static void added(int status) {
        if (status != 0)
            throw std::invalid_argument(
                "too many values of one instruction, or an opcode that assay does not know");
    }

    trace_vlist_table_t* spec_;
};

// One execution of an instruction with values.
struct Execution {
    std::uint32_t instr;  // index in Trace::instrs
    std::uint64_t pc;
    std::uint64_t context;
    std::array<std::uint64_t, TRACE_VLIST_MAX> values;  // in the order of the list
    int count;                                          // number of values
};

// An interval of a thread, with Captures::intervals.
struct Interval {
    std::uint32_t thread;
    bool complete;               // false: the rest after the last complete interval
    std::uint64_t instructions;  // the sum over `blocks`
    std::span<const trace_interval_block_t> blocks;  // by index in Trace::blocks, each block once
};

// The captured data. trace_parse.h describes each function.
class Trace {
  public:
    // Does not take ownership of `parser`.
    explicit Trace(trace_parser_t* parser) : parser_(parser) {}

    // The id of the profiled process.
    std::uint32_t pid() const { return trace_parser_get_pid(parser_); }
    // The thread that made this buffer, from 0 in order of creation. A program that damages its
    // trace can make it any number. 0 in finish().
    std::uint32_t thread() const { return trace_parser_get_thread(parser_); }
    // True if records have a context: with Captures::calls, and for all profilers with --contexts.
    bool has_context() const { return trace_parser_has_context(parser_) != 0; }

    // The records of the buffer. Empty in finish().
    std::span<const trace_record_t> records() const { return table(trace_parser_records); }
    // The context of each record; empty without contexts.
    std::span<const std::uint32_t> contexts() const { return table(trace_parser_contexts); }
    // With --objects, the data object of references in that context; else null.
    const trace_data_object_t* data_object(std::uint32_t context) const {
        return trace_parser_data_object(parser_, context);
    }
    // In finish(), with --objects: the last known object at an address, and the distance from its
    // beginning; else null.
    const trace_data_object_t* data_object_at(std::uint64_t address, std::uint64_t& offset) const {
        return trace_parser_data_object_at(parser_, address, &offset);
    }
    // The number of the type or member that the references of a site refer to, or 0. `offset` is
    // the distance from the beginning of the outermost type, or UINT64_MAX if it varies.
    std::uint32_t type_of_site(std::uint32_t site, std::uint64_t& offset) const {
        return trace_parser_type_of_site(parser_, site, &offset);
    }
    // The type with a number from type_of_site() or from another row; null for 0.
    const trace_data_type_t* data_type(std::uint32_t number) const {
        return trace_parser_data_type(parser_, number);
    }
    // The next execution with values; nullopt at the end of the buffer.
    std::optional<Execution> next() {
        Execution found{};
        found.count = trace_parser_next(parser_, &found.instr, &found.pc, &found.context, nullptr,
                                        TRACE_VLIST_MAX, found.values.data());
        if (found.count < 0) return std::nullopt;
        return found;
    }
    // True if the execution that next() found last has the value with this index of the list. A
    // missing value is 0.
    bool has_value(std::uint32_t index) const {
        return trace_parser_has_value(parser_, index) != 0;
    }
    // Stores the bytes of that value in `room`, the lowest first: up to 64 with TRACE_WIDE, else at
    // most 8. Empty if the execution does not have the value.
    std::span<const std::uint8_t> value_bytes(std::uint32_t index,
                                              std::span<std::uint8_t, 64> room) const {
        return room.first(trace_parser_value_bytes(parser_, index, room.data(), 64));
    }
    // The footprints that no record has told at the end of the buffer, by set; empty without a
    // filter.
    std::span<const std::uint64_t> footprints() const { return table(trace_parser_footprints); }
    // The thread's markers among its records, from assay/client.h and from assay.
    std::span<const trace_marker_t> markers() const { return table(trace_parser_markers); }
    // The last marker if the thread ends with this buffer: free its state. Otherwise null, also for
    // threads that run until the program ends.
    const trace_marker_t* thread_end() const {
        const auto said = markers();
        const bool ends = !said.empty() && said.back().operation == TRACE_MARKER_THREAD_END;
        return ends ? &said.back() : nullptr;
    }
    // The next interval that ends in the buffer; in finish(), the unfinished one of each thread.
    // nullopt after the last.
    std::optional<Interval> next_interval() {
        const trace_interval_t* const found = trace_parser_next_interval(parser_);
        if (found == nullptr) return std::nullopt;
        return Interval{found->thread, found->complete != 0, found->instructions,
                        std::span(found->blocks, found->block_count)};
    }

    // All code translated so far. An index stays valid for the run.
    std::span<const trace_site_t> sites() const { return table(trace_parser_sites); }
    std::span<const trace_instr_t> instrs() const { return table(trace_parser_instrs); }
    std::span<const trace_block_t> blocks() const { return table(trace_parser_blocks); }
    std::span<const trace_context_t> context_table() const {
        return table(trace_parser_context_table);
    }
    // Executions of an instruction, by its index; in finish() and totals(), with block counts.
    std::uint64_t count(std::uint32_t instr) const { return trace_parser_count(parser_, instr); }
    // Mispredictions of a branch, by its index in instrs(); in finish() and totals(), with
    // predictions.
    std::uint64_t mispredictions(std::uint32_t instr) const {
        return trace_parser_mispredictions(parser_, instr);
    }
    // The number of bytes that a store writes in each access. A value has at most its low 8 bytes,
    // or 64 with TRACE_WIDE.
    std::uint32_t stored_bytes(std::uint32_t instr) const {
        return trace_parser_stored_bytes(parser_, instr);
    }
    // Facts about an instruction, by its index in instrs(): mnemonic, instruction set, vectors,
    // bytes moved. Null for an invalid index. Valid until the next call.
    const trace_instr_facts_t* facts(std::uint32_t instr) const {
        return trace_parser_instr_facts(parser_, instr);
    }
    // A set of TRACE_FETCH_MISSES and TRACE_DATA_MISSES: for these kinds only the misses of
    // Captures::misses arrive.
    std::uint32_t misses() const { return trace_parser_misses(parser_); }
    // With --sample: is_warm_up() is true if nothing in this buffer counts. scale(), in finish(),
    // is the factor for counts.
    bool is_warm_up() const { return trace_parser_is_warm_up(parser_) != 0; }
    double scale() const { return trace_parser_scale(parser_); }
    // The ELF file that the profiled process has mapped there now, or null.
    const trace_object_t* object(std::uint64_t pc) const {
        return trace_parser_object(parser_, pc);
    }

    // The source places of an instruction, for reports: at least one, the innermost inlined
    // function first. Valid until the end of finish().
    std::span<const trace_frame_t> frames(std::uint64_t pc) const {
        std::size_t count = 0;
        const trace_frame_t* const first = trace_parser_frames(parser_, pc, &count);
        return {first, count};
    }
    // Call this before frames() of many instructions. It reads debug information once for all.
    void prepare_frames(std::span<const std::uint64_t> pcs) const {
        trace_parser_prepare_frames(parser_, pcs.data(), pcs.size());
    }

    // For functions of trace_parse.h.
    trace_parser_t* get() const { return parser_; }

  private:
    template <typename Row>
    std::span<const Row> table(const Row* (*function)(const trace_parser_t*, std::size_t*)) const {
        std::size_t count = 0;
        const Row* const rows = function(parser_, &count);
        return {rows, count};
    }

    trace_parser_t* parser_;
};

// The results of a call; empty when the call begins. Few large batches, such as all at the end, are
// faster than one for each record. Samples with a weight of 0 are dropped, except by add().
class Samples {
  public:
    // Adds `weight` to the column of event `event`. With `context`, it counts in that context; with
    // `part`, in that part of the profile (Profiler::part) instead of the whole.
    void count(std::uint64_t pc, std::uint32_t event, std::uint64_t weight = 1,
               std::uint64_t context = 0, std::uint64_t part = 0) {
        if (weight != 0) all_.push_back({pc, context, part, 0, event, 0, weight});
    }
    // Adds a value seen `times` times to the list with that index.
    void value(std::uint64_t pc, std::uint64_t value, std::uint64_t times = 1,
               std::uint32_t list = 0) {
        if (times != 0) all_.push_back({pc, 0, 0, value, VP_VALUE_OF(list), 0, times});
    }
    // Adds `times` dropped values, each of them seen at most `most` times.
    void rest(std::uint64_t pc, std::uint64_t most, std::uint64_t times, std::uint32_t list = 0) {
        if (times != 0) all_.push_back({pc, 0, 0, most, VP_VALUE_REST(list), 0, times});
    }
    // Adds `sample` unchanged.
    void add(const vsample_t& sample) { all_.push_back(sample); }

    std::size_t size() const { return all_.size(); }
    const vsample_t* data() const { return all_.data(); }
    void clear() { all_.clear(); }

  private:
    std::vector<vsample_t> all_;
};

// A T for each site or instruction, by its index. Grows with use; new elements are T{}.
template <typename T>
class Indexed {
  public:
    T& operator[](std::size_t index) {
        if (index >= all_.size()) all_.resize(index + index / 2 + 64);
        return all_[index];
    }
    std::size_t size() const { return all_.size(); }

  private:
    std::vector<T> all_;
};

// The base of profilers. A class defines the constants and functions that it needs:
//     static constexpr const char* kName            required; as vp_name
//     static constexpr const char* kDescription     one sentence
//     static constexpr vp_event_t kEvents[]         columns
//     static constexpr vp_derived_t kDerived[]      figures computed from their totals
//     static constexpr vp_option_t kOptions[]
//     static constexpr bool kPrintsValues = true    preface() and format() are defined
//     static constexpr const char* kValueLists[]    names of several lists of values
//     void totals(assay::Trace&, std::span<std::uint64_t> by_event)
//     std::span<const vp_event_t> events() const    instead of kEvents
//     std::span<const vp_derived_t> derived() const instead of kDerived
//
// A table can be an array, a std::array, or a reference to either. events() and derived() may
// depend on options; their results must live as long as the object.
//
// totals() is vp_totals. After bursts of a sampled run, it stores the sum of all samples of each
// event if the program ended now. The elements are 0 before. Samples from finish() have errors only
// with totals().
class Profiler {
  public:
    Profiler() = default;
    virtual ~Profiler() = default;
    Profiler(const Profiler&) = delete;
    Profiler& operator=(const Profiler&) = delete;

    // Called for each option that the user gave, in that order, and for files with a default. The
    // value fits the option's type.
    virtual void option(std::string_view, const std::string&) {}
    // Called after the last option, also without options, to check combinations.
    virtual void check_options() {}
    // Called before the program starts. Tools call it without a program, so create no files here.
    virtual void capture(Captures& wanted) = 0;
    // Called for each buffer of a thread. Buffers of one thread arrive in order.
    virtual void process(Trace&, Samples&) {}
    // Called once, after the program's end.
    virtual void finish(Trace&, Samples&) {}
    // Called after finish() until it returns false, for samples in portions of some thousand: all
    // samples of a large program at once would need much memory. Samples added before it returns
    // false also count.
    virtual bool finish_more(Trace&, Samples&) { return false; }
    // Called last. Gets the totals by event, and returns text for people. Lines end in newlines.
    virtual std::string summary(std::span<const std::uint64_t>) { return {}; }

    // For tools: preface() returns the text before an instruction's values in the list with that
    // index, or nullopt to omit them. format() returns one value as text.
    virtual std::optional<std::string> preface(const trace_instr_t&, std::uint32_t) {
        return "values";
    }
    virtual std::string format(const trace_instr_t&, std::uint64_t value) {
        return std::to_string(value);
    }

  protected:
    // Shows a remark to the user: one line.
    void warn(const std::string& text) const { host_->warning(host_, text.c_str()); }
    // Adds a line "name: text" to the header of the events file. From capture() on.
    void describe(const std::string& name, const std::string& text) const {
        host_->describe(host_, name.c_str(), text.c_str());
    }
    // Returns the number of a part of the profile, for Samples::count. A part is a separate events
    // file: the profile's name with `name` appended. Returns 0 if there are too many. From
    // capture() on.
    std::uint32_t part(const std::string& name) const { return host_->part(host_, name.c_str()); }
    // Leaves out the column of an event that these options do not count. In option() or capture().
    void leave_out(std::uint32_t event) const { host_->leave_out(host_, event); }
    // With --sample, leaves counts of the event unscaled, because they do not grow with the number
    // of instructions. In option() or capture().
    void unscaled(std::uint32_t event) const { host_->unscaled(host_, event); }
    // With --sample, shows `why` in place of the event's error, because differences between bursts
    // do not tell it.
    void no_error(std::uint32_t event, const std::string& why) const {
        host_->no_error(host_, event, why.c_str());
    }
    // Adds a series to the events file, for tools to plot. Returns false if there are too many, or
    // if this assay has no series. From capture() to the end of finish_more().
    bool series(const Series& series) const {
        if (host_->size < offsetof(vp_host_t, series) + sizeof host_->series) return false;
        return series.give([&](const vp_series_t* given) { return host_->series(host_, given); }) !=
               0;
    }
    // Call this in check_options() before you load a library that the user names. If it returns
    // false, do not load it, and throw: assay starts the profiler again in its own process.
    bool may_load(const std::string& path) const {
        if (host_->size < offsetof(vp_host_t, library) + sizeof host_->library) return true;
        return host_->library(host_, path.c_str()) != 0;
    }
    // True with --sample: only bursts are profiled, as an estimate of the whole run.
    bool is_sampled() const { return host_->samples != 0; }
    // The profiled command line; "" in the tools.
    std::string_view command() const { return host_->command; }
    // The C interface of the functions above. They do not work in the class's constructor.
    const vp_host_t& host() const { return *host_; }

  private:
    template <typename Class>
    friend class Binding;

    const vp_host_t* host_ = nullptr;
    Samples samples_;
    bool finished_ = false;
    bool has_more_ = true;
    std::string text_;  // the last returned text
};

// All libraries of a process share the static members of a template, unless these are hidden.
#ifdef __GNUC__
#define ASSAY_HIDDEN __attribute__((visibility("hidden")))
#else
#define ASSAY_HIDDEN
#endif

// The functions of the C interface for a class.
template <typename Class>
class ASSAY_HIDDEN Binding {
  public:
    static constexpr vp_dispatch_t table() {
        vp_dispatch_t table{};
        table.size = sizeof table;
        table.abi_version = VP_ABI_VERSION;
        table.vp_name = [] { return Class::kName; };
        if constexpr (requires { Class::kDescription; })
            table.vp_description = [] { return Class::kDescription; };
        table.vp_init = init;
        table.vp_release = release;
        if constexpr (requires(const Class& c) { c.events(); })
            table.vp_events = [](uint32_t* count) {
                if constexpr (requires { Class::kEvents; })
                    if (!profiler) return rows<Class::kEvents>(count);
                return own_rows(*count, own().events());
            };
        else if constexpr (requires { Class::kEvents; })
            table.vp_events = rows<Class::kEvents>;
        if constexpr (requires(const Class& c) { c.derived(); })
            table.vp_derived = [](uint32_t* count) {
                if constexpr (requires { Class::kDerived; })
                    if (!profiler) return rows<Class::kDerived>(count);
                return own_rows(*count, own().derived());
            };
        else if constexpr (requires { Class::kDerived; })
            table.vp_derived = rows<Class::kDerived>;
        if constexpr (requires { Class::kOptions; }) table.vp_option_table = rows<Class::kOptions>;
        table.vp_options = options;
        table.vp_prof_init = prof_init;
        table.vp_prof_release = prof_release;
        table.vp_prof_process = process;
        table.vp_finish = finish;
        table.vp_summary = summary;
        constexpr bool kHasLists = requires {
            Class::kValueLists;
        };
        if constexpr (requires { Class::kPrintsValues; }) {
            if constexpr (!kHasLists)
                table.vp_preface = [](const trace_instr_t* instr) { return preface(instr, 0); };
            table.vp_list_preface = preface;
            table.vp_format = format;
        }
        if constexpr (kHasLists) table.vp_value_lists = rows<Class::kValueLists>;
        if constexpr (requires { &Class::totals; }) table.vp_totals = totals;
        return table;
    }

  private:
    static inline std::unique_ptr<Profiler> profiler;
    static inline const vp_host_t* host = nullptr;
    static inline trace_vlist_table_t* spec = nullptr;

    // A copy, because a static member of the class need not be hidden.
    template <const auto& kRows>
    static const auto* rows(uint32_t* count) {
        static constexpr auto kOwn = [] {
            if constexpr (std::is_array_v<std::remove_cvref_t<decltype(kRows)>>)
                return std::to_array(kRows);
            else
                return kRows;
        }();
        *count = static_cast<uint32_t>(kOwn.size());
        return kOwn.data();
    }

    static const Class& own() { return static_cast<const Class&>(*profiler); }
    template <typename Row>
    static const Row* own_rows(uint32_t& count, std::span<const Row> rows) {
        count = static_cast<uint32_t>(rows.size());
        return rows.data();
    }

    // Returns the result of `function`. If it throws, calls host->error and returns `failed`.
    template <typename Result, typename Function>
    static Result caught(Result failed, const Function& function) {
        try {
            return function();
        } catch (const std::exception& error) {
            host->error(host, error.what());
        } catch (...) {
            host->error(host, "an exception without a text");
        }
        return failed;
    }

    static int init(const vp_host_t* given) {
        host = given;
        return caught(-1, [] {
            profiler = std::make_unique<Class>();
            profiler->host_ = host;
            return 0;
        });
    }
    static void release() { profiler.reset(); }

    static int options(const vp_setting_t* settings, uint32_t count) {
        return caught(-1, [&] {
            for (const vp_setting_t& setting : std::span(settings, count))
                profiler->option(setting.name, setting.value);
            profiler->check_options();
            return 0;
        });
    }

    static trace_vlist_table_t* prof_init() {
        return caught<trace_vlist_table_t*>(nullptr, [] {
            spec = trace_vlist_table_alloc();
            Captures wanted(spec);
            profiler->capture(wanted);
            return spec;
        });
    }
    static void prof_release() {
        std::free(spec);
        spec = nullptr;
    }

    static int totals(uint32_t, trace_parser_t* parser, uint64_t* by_event, uint32_t count) {
        return caught(-1, [&] {
            Trace trace(parser);
            std::fill_n(by_event, count, 0);
            static_cast<Class&>(*profiler).totals(trace, std::span(by_event, count));
            return 0;
        });
    }

    static int returned(const vsample_t** samples) {
        *samples = profiler->samples_.data();
        return static_cast<int>(profiler->samples_.size());
    }
    static int process(uint32_t, trace_parser_t* parser, const vsample_t** samples) {
        return caught(-1, [&] {
            Trace trace(parser);
            profiler->samples_.clear();
            profiler->process(trace, profiler->samples_);
            return returned(samples);
        });
    }
    static int finish(uint32_t, trace_parser_t* parser, const vsample_t** samples) {
        return caught(-1, [&] {
            Trace trace(parser);
            Samples& given = profiler->samples_;
            given.clear();
            if (!std::exchange(profiler->finished_, true)) profiler->finish(trace, given);
            // An empty result ends the calls.
            while (given.size() == 0 && profiler->has_more_)
                profiler->has_more_ = profiler->finish_more(trace, given);
            return returned(samples);
        });
    }

    static const char* keep(std::string text) {
        profiler->text_ = std::move(text);
        return profiler->text_.c_str();
    }
    static const char* summary(const uint64_t* totals, uint32_t count) {
        return caught<const char*>(nullptr, [&] {
            return keep(profiler->summary({totals, count}));
        });
    }
    static const char* preface(const trace_instr_t* instr, uint32_t list) {
        return caught<const char*>(nullptr, [&]() -> const char* {
            const std::optional<std::string> text = profiler->preface(*instr, list);
            return text ? keep(*text) : nullptr;
        });
    }
    static const char* format(const trace_instr_t* instr, uint64_t value) {
        return caught<const char*>("?", [&] { return keep(profiler->format(*instr, value)); });
    }
};

// The table of a profiler, to be exported as assay_vp_dispatch.
template <std::derived_from<Profiler> Class>
constexpr vp_dispatch_t dispatch() {
    return Binding<Class>::table();
}

#undef ASSAY_HIDDEN

}  // namespace assay

#endif
