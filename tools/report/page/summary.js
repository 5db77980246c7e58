// What is slow and why, as assay summary prints it, with links to the places.

// The place that a row names, in the sources of the report; null if it is not there.
function placeOfRow(data, row) {
  const source = row.file ? data.sources.findIndex((each) => each.name === row.file) : -1;
  return source < 0 ? null : { source, line: row.line || null, time: Date.now() };
}

const placeText = (row) => (row.file ? fileName(row.file) + (row.line ? ":" + row.line : "") : "");

function SummaryRow({ data, of, row, go }) {
  const place = placeOfRow(data, row);
  const open = place ? () => go({ tab: "source", place })
    : row.group !== null ? () => go({ tab: "groups", group: row.group }) : null;
  const link = (text, title, style) => (open && text
    ? html`<button class=${"linkish " + style} title=${title} onClick=${open}>${text}</button>`
    : html`<span class=${style} title=${title}>${text}</span>`);
  return html`<li class=${of}><span class="num">${row.share.toFixed(1)} %</span>
    ${row.name && link(row.name, row.name, of === "functions" ? "two-lines function" : "two-lines")}
    ${of !== "data" && link(placeText(row), row.file, "two-lines place")}
    ${row.text && html`<span class="why">${of === "lines" ? html`<code class="two-lines">${row.text}</code>` : row.text}</span>`}</li>`;
}

function Summary({ data, go }) {
  const { summary } = data;
  return html`<section class="panel summary" aria-label="Summary">
    <p><b>${whole(summary.total)} ${summary.totalName}</b> <span class="soft">${
      summary.cycles.length ? `= ${summary.meaning}` : summary.meaning}</span></p>
    ${summary.cycles.length > 0 && html`<${Shares} cycles=${summary.cycles} />`}
    ${summary.remarks.map((text) => html`<p>${text}</p>`)}
    ${summary.sections.map((section) => html`<h2>${section.title}</h2>
      ${section.remark && html`<p>${section.remark}</p>`}
      <ol class="findings">${section.rows.map((row) => html`<${SummaryRow} data=${data}
        of=${section.of} row=${row} go=${go} />`)}</ol>`)}
    <h2>Next</h2>
    ${summary.next.map(({ command, purpose }) => html`<p class="next"><code>${command}</code>
      ${" "}<span class="soft">${purpose}</span></p>`)}
  </section>`;
}

// The causes of the cycles, as one bar and in words.
function Shares({ cycles }) {
  return html`<div class="shares" aria-hidden="true">${cycles.map(({ share }, i) => html`<i
      class=${"line-" + i % PLOT_COLORS} style=${{ flex: share }}></i>`)}</div>
    <p class="legend">${cycles.map(({ share, name }, i) => html`<span><i class=${"line-" + i % PLOT_COLORS}></i>${
      share.toFixed(0)} % ${name}</span>`)}</p>`;
}
