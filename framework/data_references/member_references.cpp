#include "framework/data_references/member_references.h"

#include <algorithm>

namespace assay::data_references {
namespace {

using native::MemoryReference;

// Those of pushes, pops, calls and returns.
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

std::vector<MemberReference> MemberReferences::find(std::span<const std::uint64_t> addresses) {
    std::vector<MemberReference> found(addresses.size());
    if (entries_ == nullptr) return found;
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
        found[i] = refers ? at->reference : MemberReference{MemberReference::Kind::kNoMemory, 0};
    }
    return found;
}

std::vector<MemberReferences::At> MemberReferences::find_in(const Dwarf_Die& function) {
    const VariableLocations variables(function, types_);
    const FunctionCode code = read_code(function, *file_, decoder_, variables.never_returned_to());
    std::vector<At> found;
    RegisterTypes(code, variables, *entries_, types_)
        .find(
            [&](const native::Instruction& instruction, const std::array<DataTarget, 2>& targets) {
                found.push_back({instruction.pc, reference_of(instruction, targets)});
            });
    return found;
}

MemberReference MemberReferences::reference_of(const native::Instruction& instruction,
                                               const std::array<DataTarget, 2>& targets) {
    const native::Form& form = *instruction.form;
    const MemberReference first = reference_of(targets[0]);
    if (form.reference_count == 1 || is_implicit(form.references[1])) return first;
    const MemberReference second = reference_of(targets[1]);
    if (is_implicit(form.references[0])) return second;
    const bool same = first.kind == second.kind && first.node == second.node;
    return same ? first : MemberReference{MemberReference::Kind::kUnknown, 0};
}

MemberReference MemberReferences::reference_of(const DataTarget& target) {
    if (target.kind == DataTarget::Kind::kStack) return {MemberReference::Kind::kStack, 0};
    if (target.kind == DataTarget::Kind::kObject)
        if (const auto place = types_.place(target.type, target.offset, target.bytes))
            return {MemberReference::Kind::kTyped, tree_.add(*place, types_)};
    return {MemberReference::Kind::kUnknown, 0};
}

}  // namespace assay::data_references
