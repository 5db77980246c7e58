// The lines of the function that is chosen in the flame graph, and the way back from a line.

// The lines of a function that have counts, with their texts.
function linesOfFunction(data, event, index) {
  for (const [at, source] of data.sources.entries()) {
    const sums = new Map();
    source.functions.forEach((owner, i) => {
      if (owner === index) sums.set(source.lines[i], (sums.get(source.lines[i]) || 0) + source.counts[event][i]);
    });
    if (!sums.size) continue;
    const texts = textsOfPieces(source.pieces);
    const rows = [...sums].filter(([, count]) => count > 0).sort((a, b) => a[0] - b[0])
      .map(([line, count]) => ({ line, count, text: (texts.get(line) || "").trim() }));
    if (rows.length) return { source: at, rows };
  }
  return null;
}

// Lines count for all callers of their function, because contexts have no lines.
function FrameLines({ data, event, name, go }) {
  const found = useMemo(() => {
    const index = hottestNamed(data, event, name);
    return index < 0 ? null : linesOfFunction(data, event, index);
  }, [name, event]);
  if (!found) return html`<section class="panel frame-lines"><p class="soft">No line of ${name} has counts of ${data.events[event].name}.</p></section>`;
  const most = found.rows.reduce((largest, row) => Math.max(largest, row.count), 1);
  return html`<section class="panel frame-lines" aria-label=${"Lines of " + name}>
    <div class="soft">Lines of <b>${name}</b>, ${fileName(data.sources[found.source].name)}, for all its callers</div>
    <ol>${found.rows.map((row) => html`<li style=${{ background: heatColor(null, Math.sqrt(row.count / most) * 0.55) }}>
      <span class="num">${whole(row.count)}</span><span class="num soft">${percent(row.count, data.events[event].total)}</span>
      <button class="linkish num" title="show it in its source" onClick=${() => go({ tab: "source", event,
        place: { source: found.source, line: row.line, time: Date.now() } })}>${row.line || "?"}</button>
      <code>${row.text}</code></li>`)}</ol></section>`;
}

// Shows a function in the flame graph, at its largest frame.
function showInFlameGraph(data, event, name, go) {
  const column = data.flame.counts[Math.max(0, data.flame.events.indexOf(event))];
  let best = 0;
  data.flame.name.forEach((each, i) => {
    if (i !== 0 && each === name && (best === 0 || column[i] > column[best])) best = i;
  });
  keptStates.set("flame.query", name);
  keptStates.set("flame.focus", 0);
  keptStates.set("flame.cursor", best);
  go({ tab: "flame" });
}

// The functions of a line, which lead to the flame graph.
function LineFunctions({ data, event, row, go }) {
  const known = useMemo(() => new Set(data.flame.events.length ? data.flame.name : []), []);
  if (!row || !row.functions) return null;
  const names = [...new Set(row.functions)].map((i) => data.functions.name[i]).filter(Boolean);
  const shown = names.filter((name) => known.has(name)).slice(0, MOST_OF_LINE);
  if (!shown.length) return null;
  return html`<div class="line-functions two-lines"><span class="soft">in the flame graph: </span>${shown.map((name, i) => html`${i > 0 ? ", " : ""}<button
    class="linkish" onClick=${() => showInFlameGraph(data, event, name, go)}>${name}</button>`)}</div>`;
}
