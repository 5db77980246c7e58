#include "framework/data_references/member_references.h"

#include <algorithm>

namespace assay::data_references {
namespace {

using native::MemoryReference;

// True for the stack reference of pushes, pops, calls and returns.
bool is_implicit(const MemoryReference& reference) {
    return !reference.encoded && reference.base == native::RSP;
}

}  // namespace

MemberReferences::MemberReferences(const std::string& object_path, TypeTree& tree,
                                   const std::string& debug_root, const symbols::ImageCache& cache)
    : tree_(tree),
      debug_(object_path, debug_root, cache),
      file_(symbols::ElfFile::open(object_path)) {
    if (debug_.dwarf() != nullptr && file_ != nullptr)
        entries_ = std::make_unique<DebugEntries>(debug_.dwarf(), types_);
}

MemberReferences::~MemberReferences() = default;

template <typename Take>
void MemberReferences::find_each(std::span<const std::uint64_t> addresses, const Take& take) {
    if (entries_ == nullptr) return;
    const void* last = nullptr;
    std::vector<At> known;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        const Dwarf_Die* function = entries_->function_at(addresses[i]);
        if (function == nullptr) continue;
        if (function->addr != last) {
            known = find_in(*function);
            last = function->addr;
        }
        const auto at = std::lower_bound(known.begin(), known.end(), addresses[i],
                                         [](const At& a, std::uint64_t pc) { return a.pc < pc; });
        const bool refers = at != known.end() && at->pc == addresses[i];
        take(i, refers ? &*at : nullptr);
    }
}

std::vector<MemberReference> MemberReferences::find(std::span<const std::uint64_t> addresses) {
    std::vector<MemberReference> found(addresses.size());
    find_each(addresses, [&](std::size_t i, const At* at) {
        found[i] = at != nullptr ? at->reference
                                 : MemberReference{.kind = MemberReference::Kind::kNoMemory};
    });
    return found;
}

std::vector<MemberReferences::Operands> MemberReferences::find_operands(
    std::span<const std::uint64_t> addresses) {
    std::vector<Operands> found(addresses.size());
    find_each(addresses, [&](std::size_t i, const At* at) {
        if (at != nullptr) found[i] = at->operands;
    });
    return found;
}

std::vector<MemberReferences::At> MemberReferences::find_in(const Dwarf_Die& function) {
    const VariableLocations variables(function, types_);
    const FunctionCode code = read_code(function, *file_, decoder_, variables.never_returned_to());
    std::vector<At> found;
    RegisterTypes(code, variables, *entries_, types_)
        .find(
            [&](const native::Instruction& instruction, const std::array<DataTarget, 2>& targets) {
                const Operands operands{reference_of(targets[0]), reference_of(targets[1])};
                found.push_back({instruction.pc, reference_of(instruction, operands), operands});
            });
    return found;
}

MemberReference MemberReferences::reference_of(const native::Instruction& instruction,
                                               const Operands& operands) {
    const native::Form& form = *instruction.form;
    if (form.reference_count == 1 || is_implicit(form.references[1])) return operands[0];
    if (is_implicit(form.references[0])) return operands[1];
    return operands[0].same(operands[1]) ? operands[0]
                                         : MemberReference{.kind = MemberReference::Kind::kUnknown};
}

MemberReference MemberReferences::reference_of(const DataTarget& target) {
    using Kind = MemberReference::Kind;
    if (target.kind == DataTarget::Kind::kStack) return {.kind = Kind::kStack};
    const auto place = target.kind == DataTarget::Kind::kObject
                           ? types_.place(target.type, target.offset, target.bytes)
                           : std::nullopt;
    if (!place) return {.kind = Kind::kUnknown};
    if (all_members_) tree_.add_members(*place, types_);
    return {Kind::kTyped, tree_.add(*place, types_),
            types_.offset_in(*place, target.offset).value_or(MemberReference::kVaries)};
}

}  // namespace assay::data_references
