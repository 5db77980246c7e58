#include "framework/symbols/generated_code.h"

#include "framework/support/descriptor.h"
#include "framework/support/log.h"
#include "framework/symbols/frame_store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>
#include <unordered_map>
#include <utility>

namespace assay::symbols {
namespace {

constexpr std::size_t kMostNameBytes = 4096;  // longer names are cut

// Marks a function that reuses addresses of another one. Counts are kept by address, so they
// include both.
constexpr std::string_view kReused = " [address reused]";

// Hexadecimal, with or without 0x, up to the next space.
std::optional<std::uint64_t> take_number(std::string_view& text) {
    if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
    const auto length = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || length == text.size() || text[length] != ' ') return std::nullopt;
    text.remove_prefix(length + 1);
    return number;
}

// Reads fields one after the other.
class Bytes {
  public:
    explicit Bytes(std::string_view bytes) : rest_(bytes) {}

    template <typename T>
    std::optional<T> number() {
        if (rest_.size() < sizeof(T)) return std::nullopt;
        T value;
        std::memcpy(&value, rest_.data(), sizeof value);
        rest_.remove_prefix(sizeof value);
        return value;
    }
    // Up to a zero byte.
    std::optional<std::string_view> string() {
        const std::size_t length = rest_.find('\0');
        if (length == std::string_view::npos) return std::nullopt;
        const std::string_view text = rest_.substr(0, length);
        rest_.remove_prefix(length + 1);
        return text;
    }
    std::optional<std::string_view> take(std::size_t size) {
        if (rest_.size() < size) return std::nullopt;
        const std::string_view taken = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return taken;
    }
    std::size_t left() const { return rest_.size(); }

  private:
    std::string_view rest_;
};

}  // namespace

std::string GeneratedCode::add_perf_map(const std::string& path, std::string_view text) {
    const std::string_view source = keep(path);
    std::size_t bad = 0, number = 0, first_bad = 0;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        // The program may still be writing an incomplete line.
        if (end == std::string_view::npos) break;
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end + 1);
        ++number;
        const auto start = take_number(line);
        const auto size = start ? take_number(line) : std::nullopt;
        if (!size || line.empty() || *size > UINT64_MAX - *start) {
            if (bad++ == 0) first_bad = number;
            continue;
        }
        if (*size == 0) continue;
        functions_.push_back({source, keep(line.substr(0, kMostNameBytes)), {}});
        place(*start, *size, functions_.size() - 1);
    }
    if (bad == 0) return "";
    const std::string first = "line " + std::to_string(first_bad);
    const std::string what = bad == 1 ? first + " is" : std::to_string(bad) + " lines are";
    return what + " not a start, a size and a name" + (bad == 1 ? "" : ", the first is " + first);
}

class GeneratedCode::JitdumpReader {
  public:
    JitdumpReader(GeneratedCode& code, std::string_view source) : code_(code), source_(source) {}

    std::string read(std::string_view bytes) {
        constexpr std::uint32_t kMagic = 0x4A695444, kVersion = 1;
        constexpr std::size_t kFixedBytes = 3 * sizeof(std::uint32_t);
        Bytes file(bytes);
        const auto magic = file.number<std::uint32_t>();
        const auto version = file.number<std::uint32_t>();
        const auto header_bytes = file.number<std::uint32_t>();
        if (!header_bytes || magic != kMagic || version != kVersion ||
            *header_bytes < kFixedBytes || !file.take(*header_bytes - kFixedBytes))
            return "not a jitdump file of version 1 for this machine";
        while (file.left() >= kPrefixBytes) {
            const std::size_t at = bytes.size() - file.left();
            const auto kind = file.number<std::uint32_t>();
            const auto size = file.number<std::uint32_t>();
            (void)file.number<std::uint64_t>();  // the time
            if (*size < kPrefixBytes) return damaged(at);
            const auto body = file.take(*size - kPrefixBytes);
            if (!body || *kind == kClose) break;  // the last record may be incomplete
            if (!take_record(*kind, Bytes(*body))) return damaged(at);
        }
        return "";
    }

  private:
    static constexpr std::size_t kPrefixBytes = 16;
    enum Kind : std::uint32_t { kLoad = 0, kMove = 1, kDebugInfo = 2, kClose = 3 };

    static std::string damaged(std::size_t at) {
        return "the record at byte " + std::to_string(at) +
               " is damaged; it and the rest of the file are left out";
    }

    bool take_record(std::uint32_t kind, Bytes body) {
        switch (kind) {
            case kLoad:
                return take_load(body);
            case kMove:
                return take_move(body);
            case kDebugInfo:
                return take_debug_info(body);
        }
        return true;  // unwinding information, and unknown kinds
    }

    bool take_load(Bytes body) {
        (void)body.number<std::uint64_t>();  // process and thread
        (void)body.number<std::uint64_t>();  // vma: the same as the address for compilers
        const auto address = body.number<std::uint64_t>();
        const auto size = body.number<std::uint64_t>();
        (void)body.number<std::uint64_t>();  // the function's number
        const auto name = size ? body.string() : std::nullopt;
        if (!name || *size > UINT64_MAX - *address) return false;
        std::string_view kept =
            name->empty() ? kUnknown : code_.keep(name->substr(0, kMostNameBytes));
        if (code_.replaces_other(*address, *size, {source_, kept, {}}))
            kept = code_.keep(std::string(kept) + std::string(kReused));
        code_.functions_.push_back({source_, kept, {}});
        if (const auto known = lines_.find(*address); known != lines_.end()) {
            code_.functions_.back().lines = std::move(known->second);
            lines_.erase(known);
        }
        code_.place(*address, *size, code_.functions_.size() - 1);
        return true;
    }

    bool take_move(Bytes body) {
        (void)body.number<std::uint64_t>();  // process and thread
        (void)body.number<std::uint64_t>();  // vma
        const auto from = body.number<std::uint64_t>();
        const auto to = body.number<std::uint64_t>();
        const auto size = body.number<std::uint64_t>();
        if (!size || *size > UINT64_MAX - *to) return false;
        const auto part = code_.part_of(*from);
        if (part != code_.parts_.end() && part->second.function_start == *from)
            code_.place(*to, *size, part->second.function);
        return true;
    }

    // This record precedes the record of its code.
    bool take_debug_info(Bytes body) {
        const auto address = body.number<std::uint64_t>();
        const auto count = body.number<std::uint64_t>();
        if (!count) return false;
        std::vector<Line> lines;
        std::string_view file = kUnknown;
        for (std::uint64_t i = 0; i < *count; ++i) {
            const auto at = body.number<std::uint64_t>();
            const auto number = body.number<std::uint32_t>();
            (void)body.number<std::uint32_t>();  // discriminator
            const auto name = body.string();
            if (!name) return false;
            if (*name != "\xff") file = name->empty() ? kUnknown : code_.keep(*name);
            if (*at >= *address) lines.push_back({*at - *address, file, *number});
        }
        std::stable_sort(lines.begin(), lines.end(),
                         [](const Line& a, const Line& b) { return a.offset < b.offset; });
        without_elf_header(lines);
        lines_[*address] = std::move(lines);
        return true;
    }

    // V8 adds the size of an ELF header, which perf inject once put before the code. The first line
    // is then at 64 instead of 0.
    static void without_elf_header(std::vector<Line>& lines) {
        constexpr std::uint64_t kElfHeaderBytes = 64;
        if (lines.empty() || lines.front().offset != kElfHeaderBytes) return;
        for (Line& line : lines) line.offset -= kElfHeaderBytes;
    }

    GeneratedCode& code_;
    const std::string_view source_;
    std::unordered_map<std::uint64_t, std::vector<Line>> lines_;  // by address of later code
};

std::string GeneratedCode::add_jitdump(const std::string& path, std::string_view bytes) {
    return JitdumpReader(*this, keep(path)).read(bytes);
}

std::optional<GeneratedCode::Place> GeneratedCode::find(std::uint64_t address) const {
    const auto part = part_of(address);
    if (part == parts_.end()) return std::nullopt;
    const Function& function = functions_[part->second.function];
    Place place{function.source, {kUnknown, function.name, 0}};
    const std::uint64_t offset = address - part->second.function_start;
    const auto next =
        std::upper_bound(function.lines.begin(), function.lines.end(), offset,
                         [](std::uint64_t at, const Line& line) { return at < line.offset; });
    if (next != function.lines.begin()) {
        place.frame.file = std::prev(next)->file;
        place.frame.line = std::prev(next)->number;
    }
    return place;
}

void GeneratedCode::place(std::uint64_t start, std::uint64_t size, std::size_t function) {
    if (size == 0) return;
    split(start);
    split(start + size);
    parts_.erase(parts_.lower_bound(start), parts_.lower_bound(start + size));
    parts_.emplace(start, Part{start + size, start, function});
}

bool GeneratedCode::replaces_other(std::uint64_t start, std::uint64_t size,
                                   const Function& by) const {
    auto part = part_of(start);
    if (part == parts_.end()) part = parts_.lower_bound(start);
    for (; part != parts_.end() && part->first < start + size; ++part)
        if (const Function& other = functions_[part->second.function];
            other.source == by.source && other.name != by.name)
            return true;
    return false;
}

void GeneratedCode::split(std::uint64_t address) {
    const auto part = part_of(address);
    if (part == parts_.end() || part->first == address) return;
    const Part upper = part->second;
    parts_.at(part->first).end = address;
    parts_.emplace(address, upper);
}

GeneratedCode::Parts::const_iterator GeneratedCode::part_of(std::uint64_t address) const {
    auto part = parts_.upper_bound(address);
    if (part == parts_.begin()) return parts_.end();
    --part;
    return address < part->second.end ? part : parts_.end();
}

namespace {

// The program may still be writing to the file, so its size can change.
std::optional<std::string> read_file(const std::string& path, std::time_t begin) {
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status {};
    if (file.number() < 0 || fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_mtime < begin || (status.st_uid != geteuid() && status.st_uid != 0))
        return std::nullopt;
    std::string bytes(std::min(static_cast<std::size_t>(status.st_size), GeneratedCode::kMostBytes),
                      '\0');
    std::size_t size = 0;
    while (size < bytes.size()) {
        const ssize_t got = read(file.number(), bytes.data() + size, bytes.size() - size);
        if (got <= 0) break;
        size += static_cast<std::size_t>(got);
    }
    bytes.resize(size);
    return bytes;
}

bool is_jitdump(std::string_view path) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    return name.starts_with("jit-") && name.ends_with(".dump");
}

void remark(const std::string& path, const std::string& problem) {
    if (!problem.empty()) log::remark(fmt::format("{}: {}", path, problem));
}

}  // namespace

GeneratedCode GeneratedCode::of_process(pid_t pid, const std::vector<std::string>& mapped_files,
                                        std::time_t begin) {
    GeneratedCode code;
    const std::string map = fmt::format("/tmp/perf-{}.map", pid);
    if (const auto text = read_file(map, begin)) remark(map, code.add_perf_map(map, *text));
    std::set<std::string> dumps;
    for (const std::string& path : mapped_files) {
        if (!is_jitdump(path) || !dumps.insert(path).second) continue;
        if (const auto bytes = read_file(path, begin)) remark(path, code.add_jitdump(path, *bytes));
    }
    const bool is_java =
        std::any_of(mapped_files.begin(), mapped_files.end(),
                    [](const std::string& path) { return path.ends_with("/libjvm.so"); });
    if (is_java && code.empty())
        log::remark(
            "compiled Java functions have no names; run java 17 or later with "
            "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit to see them");
    return code;
}

}  // namespace assay::symbols
