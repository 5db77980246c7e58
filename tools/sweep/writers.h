// The table of a sweep, in each format.
#pragma once

#include "tools/output/sink.h"
#include "tools/sweep/plan.h"
#include "tools/sweep/results.h"

#include <string>

namespace assay::sweep {

// A row for each point: the values of the swept options, then events and figures.
std::string text_table(const Plan& plan, const Results& results);
void write_csv(const Plan& plan, const Results& results, Sink& sink);
// By sweep-schema.json of the documentation.
void write_json(const Plan& plan, const Results& results, Sink& sink);
// A page with plots, which needs nothing else.
void write_html(const Plan& plan, const Results& results, Sink& sink);

}  // namespace assay::sweep
