// The table of a sweep, in each format.
#pragma once

#include "tools/output/output.h"
#include "tools/sweep/plan.h"
#include "tools/sweep/results.h"

#include <span>
#include <string>
#include <string_view>

namespace assay::sweep {

// A row for each point: the values of the swept options, then events and figures.
std::string text_table(const Plan& plan, const Results& results);
void write_csv(const Plan& plan, const Results& results, Sink& sink);
// By sweep-schema.json of the documentation.
void write_json(const Plan& plan, const Results& results, Sink& sink);
// A page with plots, which needs nothing else.
void write_html(const Plan& plan, const Results& results, Sink& sink);

// How the page of assay sweep looks and what it does; made from page.css, page.js and the style of
// reports by embed.py.

// In pieces that follow one another.
extern const std::span<const std::string_view> kStyle, kScript;

}  // namespace assay::sweep
