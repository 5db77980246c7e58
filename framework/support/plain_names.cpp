#include "framework/support/plain_names.h"

#include "framework/support/function_names.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace assay {
namespace {

using Arguments = std::vector<std::string>;

// Templates of the C++ library, with the number of arguments that a programmer gives. The names
// with an underscore are of libstdc++, then of libc++.
struct LibraryTemplate {
    std::string_view name;
    std::size_t given;
};
constexpr std::array kTemplates{
    LibraryTemplate{"std::deque", 1},
    LibraryTemplate{"std::forward_list", 1},
    LibraryTemplate{"std::list", 1},
    LibraryTemplate{"std::map", 2},
    LibraryTemplate{"std::multimap", 2},
    LibraryTemplate{"std::multiset", 1},
    LibraryTemplate{"std::priority_queue", 1},
    LibraryTemplate{"std::queue", 1},
    LibraryTemplate{"std::set", 1},
    LibraryTemplate{"std::stack", 1},
    LibraryTemplate{"std::unique_ptr", 1},
    LibraryTemplate{"std::unordered_map", 2},
    LibraryTemplate{"std::unordered_multimap", 2},
    LibraryTemplate{"std::unordered_multiset", 1},
    LibraryTemplate{"std::unordered_set", 1},
    LibraryTemplate{"std::vector", 1},
    LibraryTemplate{"std::_Deque_base", 1},
    LibraryTemplate{"std::_Fwd_list_base", 1},
    LibraryTemplate{"std::_Hashtable", 2},
    LibraryTemplate{"std::_List_base", 1},
    LibraryTemplate{"std::_Rb_tree", 2},
    LibraryTemplate{"std::_Sp_counted_base", 0},
    LibraryTemplate{"std::_Sp_counted_deleter", 1},
    LibraryTemplate{"std::_Sp_counted_ptr", 1},
    LibraryTemplate{"std::_Sp_counted_ptr_inplace", 1},
    LibraryTemplate{"std::_Vector_base", 1},
    LibraryTemplate{"std::__allocated_ptr", 1},
    LibraryTemplate{"std::__detail::_Equality", 2},
    LibraryTemplate{"std::__detail::_Hash_code_base", 2},
    LibraryTemplate{"std::__detail::_Hashtable_base", 2},
    LibraryTemplate{"std::__detail::_Insert", 2},
    LibraryTemplate{"std::__detail::_Insert_base", 2},
    LibraryTemplate{"std::__detail::_Map_base", 2},
    LibraryTemplate{"std::__detail::_Rehash_base", 2},
    LibraryTemplate{"std::__shared_count", 0},
    LibraryTemplate{"std::__shared_ptr", 1},
    LibraryTemplate{"std::__shared_ptr_access", 1},
    LibraryTemplate{"std::__uniq_ptr_data", 1},
    LibraryTemplate{"std::__uniq_ptr_impl", 1},
    LibraryTemplate{"std::__weak_count", 0},
    LibraryTemplate{"std::__weak_ptr", 1},
    LibraryTemplate{"std::__hash_table", 1},
    LibraryTemplate{"std::__shared_ptr_emplace", 1},
    LibraryTemplate{"std::__shared_ptr_pointer", 1},
    LibraryTemplate{"std::__split_buffer", 1},
    LibraryTemplate{"std::__tree", 1},
};

// Default arguments that depend on the first argument: "std::less<" is "std::less<int>" there.
constexpr std::array<std::string_view, 6> kOfFirst{"std::less<",     "std::hash<",
                                                   "std::equal_to<", "std::default_delete<",
                                                   "std::deque<",    "std::vector<"};
// The beginnings of other default arguments.
constexpr std::array<std::string_view, 14> kDefaults{"std::allocator<",
                                                     "(__gnu_cxx::_Lock_policy)",
                                                     "std::_Select1st<",
                                                     "std::_Identity<",
                                                     "std::__detail::_Select1st",
                                                     "std::__detail::_Identity",
                                                     "std::__detail::_Mod_range_hashing",
                                                     "std::__detail::_Default_ranged_hash",
                                                     "std::__detail::_Prime_rehash_policy",
                                                     "std::__detail::_Hashtable_traits<",
                                                     "std::__map_value_compare<",
                                                     "std::__unordered_map_hasher<",
                                                     "std::__unordered_map_equal<",
                                                     "std::__allocator_destructor<"};

// Names beginning with "std::basic_" that have a shorter name for characters of these types.
constexpr std::array<std::array<std::string_view, 2>, 5> kCharacters{
    {{"char", ""}, {"wchar_t", "w"}, {"char8_t", "u8"}, {"char16_t", "u16"}, {"char32_t", "u32"}}};

// Inline namespaces of libstdc++ and libc++. Nobody else may use such names.
constexpr std::array<std::string_view, 5> kInline{
    "__cxx11::", "_V2::", "__1::", "__8::", "__ndk1::"};

bool is_default(std::string_view argument, std::string_view first) {
    for (const std::string_view each : kOfFirst)
        if (argument.starts_with(each) && argument.ends_with('>') &&
            argument.substr(each.size(), argument.size() - each.size() - 1) == first)
            return true;
    return std::any_of(kDefaults.begin(), kDefaults.end(),
                       [&](std::string_view each) { return argument.starts_with(each); });
}

// Removes the arguments at the end that have their default values.
void remove_defaults(std::string_view name, Arguments& arguments) {
    // Strings, streams, and functions that take them: <char, char_traits<char>, allocator<char>>.
    const std::string of_first = arguments[0] + ">";
    if (arguments.size() == 3 && arguments[2] == "std::allocator<" + of_first &&
        arguments[1] == "std::char_traits<" + of_first)
        arguments.pop_back();
    if (arguments.size() == 2 && arguments[1] == "std::char_traits<" + of_first)
        arguments.pop_back();
    const auto* const found =
        std::find_if(kTemplates.begin(), kTemplates.end(),
                     [&](const LibraryTemplate& each) { return each.name == name; });
    if (found == kTemplates.end()) return;
    // Two internals of hash tables have a flag after their default arguments.
    const bool has_flag = name.starts_with("std::__detail::") &&
                          (arguments.back() == "true" || arguments.back() == "false");
    if (has_flag) arguments.pop_back();
    const std::string first = arguments.empty() ? "" : arguments.front();
    while (arguments.size() > found->given && is_default(arguments.back(), first))
        arguments.pop_back();
}

// The name of a type that has one without arguments: "std::string".
std::optional<std::string> alias(std::string_view name, const Arguments& arguments) {
    constexpr std::string_view kBasic = "std::basic_";
    if (name.starts_with(kBasic) && arguments.size() == 1)
        for (const auto& [type, prefix] : kCharacters)
            if (arguments[0] == type)
                return std::string("std::").append(prefix).append(name.substr(kBasic.size()));
    // "__normal_iterator<int*, std::vector<int>>" is an iterator of its container.
    if (name == "__gnu_cxx::__normal_iterator" && arguments.size() == 2) {
        const std::string element = arguments[1] == "std::string" ? "char"
                                    : arguments[1].starts_with("std::vector<")
                                        ? arguments[1].substr(12, arguments[1].size() - 13)
                                        : "";
        if (arguments[0] == element + "*") return arguments[1] + "::iterator";
        if (arguments[0] == element + " const*") return arguments[1] + "::const_iterator";
    }
    return std::nullopt;
}

// Reads a name from left to right, and rewrites the arguments of each template.
class TypeWriter {
  public:
    explicit TypeWriter(std::string_view name) : name_(name) {}

    // No value if brackets do not match.
    std::optional<std::string> write() {
        std::string text = read('\0');
        if (failed_ || at_ != name_.size()) return std::nullopt;
        return text;
    }

  private:
    static constexpr int kMostDepth = 200;

    std::string_view rest() const { return name_.substr(at_); }

    // Reads up to a closing bracket, which stays, or up to the comma after an argument.
    std::string read(char close) {
        std::string text;
        if (++depth_ > kMostDepth) failed_ = true;
        bool after_operator = false;
        while (!failed_ && at_ < name_.size()) {
            const char next = name_[at_];
            const std::size_t length = operator_length(text.empty() ? ' ' : text.back(), rest());
            if (length != 0) {
                text += rest().substr(0, length);
                at_ += length;
                after_operator = true;
                continue;
            }
            if (next == close || (close == '>' && next == ',')) {
                const bool is_arrow = next == '>' && text.ends_with('-');
                if (!is_arrow) break;
            }
            if (const std::size_t left_out = length_left_out(text)) {
                at_ += left_out;
                continue;
            }
            ++at_;
            if (next == '<' && (after_operator || !text.ends_with(')')))
                read_arguments(text);
            else
                read_bracket(next, text);
            after_operator = false;
        }
        --depth_;
        return text;
    }

    // Length of an ABI tag or of an inline namespace, or 0.
    std::size_t length_left_out(std::string_view before) const {
        constexpr std::string_view kTag = "[abi:";
        if (rest().starts_with(kTag)) {
            const std::size_t close = rest().find(']');
            return close == std::string_view::npos ? 0 : close + 1;
        }
        if (!before.ends_with("::")) return 0;
        for (const std::string_view each : kInline)
            if (rest().starts_with(each)) return each.size();
        return 0;
    }

    void read_bracket(char open, std::string& text) {
        text += open;
        const char close = open == '(' ? ')' : open == '[' ? ']' : open == '{' ? '}' : '\0';
        if (close == '\0') return;
        text += read(close);
        take(close, text);
    }

    void take(char close, std::string& text) {
        if (at_ == name_.size() || name_[at_] != close) {
            failed_ = true;
            return;
        }
        ++at_;
        text += close;
    }

    // Reads the arguments after "<", and writes the template. Rust writes "<T as Trait>" also.
    void read_arguments(std::string& text) {
        Arguments arguments;
        for (bool more = true; more && !failed_;) {
            at_ = std::min(name_.find_first_not_of(' ', at_), name_.size());
            std::string argument = read('>');
            argument.erase(argument.find_last_not_of(' ') + 1);
            arguments.push_back(std::move(argument));
            more = at_ < name_.size() && name_[at_] == ',';
            if (more) ++at_;
        }
        if (failed_) return;
        std::size_t begin = text.size();
        while (begin > 0 && (is_in_word(text[begin - 1]) || text[begin - 1] == ':')) --begin;
        const std::string name = text.substr(begin);
        remove_defaults(name, arguments);
        if (const std::optional<std::string> known = alias(name, arguments)) {
            text.resize(begin);
            text += *known;
            ++at_;  // the bracket: without it, read() would not have ended
            return;
        }
        if (arguments.empty()) {
            ++at_;
            return;
        }
        text += '<';
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            if (i != 0) text += ", ";
            text += arguments[i];
        }
        take('>', text);
    }

    std::string_view name_;
    std::size_t at_ = 0;
    int depth_ = 0;
    bool failed_ = false;
};

}  // namespace

std::string plain_types(std::string_view name) {
    // Most names have nothing to change.
    if (name.find_first_of("<[") == std::string_view::npos &&
        name.find("::_") == std::string_view::npos)
        return std::string(name);
    return TypeWriter(name).write().value_or(std::string(name));
}

std::string plain_function(std::string_view name) {
    const std::string types = plain_types(name);
    const std::string_view bare = without_clones(types);
    return without_hashes(without_signature(bare, Lambdas::kNumbered))
        .append(std::string_view(types).substr(bare.size()));
}

}  // namespace assay
