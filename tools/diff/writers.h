// Writes comparisons in the formats of assay diff.
#pragma once

#include "tools/diff/comparison.h"
#include "tools/output/formats.h"
#include "tools/output/output.h"

#include <span>
#include <string_view>

namespace assay::diff {

// Text for terminals.
void write_text(const Options& options, const Comparison& comparison, Output& output);
void write_text(const Options& options, const Programs& programs, Output& output);

// JSON as described by diff-schema.json of the documentation.
void write_json(const Options& options, const Comparison& comparison, Sink& sink);
void write_json(const Options& options, const Programs& programs, Sink& sink);

// Markdown of GitHub and GitLab: a table, and folded details. Its length stays below the limits of
// both.
void write_markdown(const Options& options, const Programs& programs, Sink& sink);

// A self-contained page of HTML with the sources of both sides.
void write_html(const Options& options, Programs& programs, Sink& sink);

// An events file as cg_diff writes it: one line per function, with line number 0.
void write_events_file(const Options& options, const Comparison& comparison);

// The style of the page. embed.py makes it from page.css and the style of reports.

// Consecutive pieces of one text.
extern const std::span<const std::string_view> kStyle;

}  // namespace assay::diff
