#include "tools/annotate/assembly.h"

#include "tools/disassembler.h"
#include "tools/list/code.h"

#include <memory>

namespace assay::annotate {

Assembly assembly_of(const Profile& profile) {
    Assembly assembly;
    const list::Disassembler disassembler(list::Syntax::kAtt);
    std::map<std::uint32_t, std::unique_ptr<list::Code>> code;
    for (const std::vector<SourceInstruction>& instructions : profile.instructions())
        for (const SourceInstruction& at : instructions) {
            std::unique_ptr<list::Code>& object = code[at.object];
            if (!object) {
                object = std::make_unique<list::Code>(profile.objects()[at.object], "");
                if (!object->problem().empty()) assembly.problems.push_back(object->problem());
            }
            const std::span<const std::uint8_t> bytes = object->bytes(at.address);
            if (!bytes.empty())
                assembly.text.try_emplace({at.object, at.address},
                                          disassembler.print(bytes, at.address).text);
        }
    return assembly;
}

}  // namespace assay::annotate
