// Output of assay annotate as JSON. docs/reference/annotate-schema.json describes it.
#pragma once

#include "tools/annotate/calls.h"
#include "tools/annotate/functions.h"
#include "tools/annotate/groups.h"
#include "tools/annotate/sources.h"
#include "tools/output/output.h"

#include <vector>

namespace assay::annotate {

struct Content {
    const Profile& profile;
    const InlinedCalls& inlined;
    const SourceChoice& choice;
    const Assembly& assembly;
    const CallTable* calls;  // null unless --calls is given
    const TreeTable* tree;   // null unless --tree is given
    const GroupTable* groups;
};

void write_json(const Options& options, const Content& content, const Columns& columns,
                const std::vector<SortColumn>& sort, Sink& sink);

}  // namespace assay::annotate
