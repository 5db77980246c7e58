// What has been compared, in the formats of assay diff.
#pragma once

#include "tools/diff/comparison.h"
#include "tools/output/formats.h"
#include "tools/output/output.h"

#include <span>
#include <string_view>

namespace assay::diff {

// For people, at a terminal.
void write_text(const Options& options, const Comparison& comparison, Output& output);
void write_text(const Options& options, const Programs& programs, Output& output);

// By diff-schema.json of the documentation.
void write_json(const Options& options, const Comparison& comparison, Sink& sink);
void write_json(const Options& options, const Programs& programs, Sink& sink);

// GitHub's and GitLab's: a table, and folded ones. At most so long that either takes it.
void write_markdown(const Options& options, const Programs& programs, Sink& sink);

// A page that needs nothing else, with the sources of both sides.
void write_html(const Options& options, Programs& programs, Sink& sink);

// As cg_diff writes them: one line of each function, of line 0.
void write_events_file(const Options& options, const Comparison& comparison);

// How the page of assay diff looks; made from page.css and the style of reports by embed.py.

// In pieces that follow one another.
extern const std::span<const std::string_view> kStyle;

}  // namespace assay::diff
