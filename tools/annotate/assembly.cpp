#include "tools/annotate/assembly.h"

#include "tools/code/disassembler.h"
#include "tools/code/object_code.h"

#include <memory>

namespace assay::annotate {

Assembly assembly_of(const FunctionProfile& profile) {
    Assembly assembly;
    const Disassembler disassembler(Syntax::kAtt);
    std::map<std::uint32_t, std::unique_ptr<ObjectCode>> code;
    for (const std::vector<SourceInstruction>& instructions : profile.instructions())
        for (const SourceInstruction& at : instructions) {
            std::unique_ptr<ObjectCode>& object = code[at.object];
            if (!object) {
                object = std::make_unique<ObjectCode>(profile.objects()[at.object], "");
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
