// Sources.

const MOST_OF_LINE = 5;  // groups of a kind

// The counts of each line with its functions, and the rows to show: lines and gaps.
function sourceRows(source, events) {
  const lines = new Map();
  source.lines.forEach((line, i) => {
    const known = lines.get(line) || { counts: new Array(events).fill(0), functions: [] };
    for (let event = 0; event < events; ++event) known.counts[event] += source.counts[event][i];
    known.functions.push(source.functions[i]);
    lines.set(line, known);
  });
  const rows = [];
  const shown = new Set();
  if (lines.has(0)) rows.push({ line: 0, text: "(unknown line)", ...lines.get(0) });
  let next = 1;
  for (const [first, texts] of source.pieces || []) {
    if (first > next) rows.push({ gap: true, text: `lines ${next} to ${first - 1} have no counts` });
    texts.forEach((text, i) => {
      rows.push({ line: first + i, text, ...lines.get(first + i) });
      shown.add(first + i);
    });
    next = first + texts.length;
  }
  for (const [line, counted] of [...lines].sort((a, b) => a[0] - b[0])) {
    if (line === 0 || shown.has(line)) continue;
    rows.push({ line, text: source.pieces ? "(past the end of the file)" : "", ...counted });
  }
  return rows;
}

// The files, those with the most of the event first, and what each has of it.
function sourceOrder(data, event) {
  const sums = data.sources.map((source) =>
    source.counts[event].reduce((sum, count) => sum + count, 0));
  return { sums, files: sums.map((_, i) => i).sort((a, b) => sums[b] - sums[a]) };
}

// The cursor, at the place that was asked for or else the hottest row, and a step to the next row by
// heat.
function useHotRows(rows, event, place) {
  const [cursor, setCursor] = useState(0);
  const hottest = useMemo(() =>
    rows.map((_, i) => i).filter((i) => rows[i].counts && rows[i].counts[event] > 0)
      .sort((a, b) => rows[b].counts[event] - rows[a].counts[event]), [rows, event]);
  useEffect(() => {
    const wanted = rows.findIndex((row) => row.line === place.line && !row.gap);
    setCursor(place.line !== null && wanted >= 0 ? wanted : hottest[0] || 0);
  }, [rows, place.line, place.time]);
  const step = (by) => {
    const rank = hottest.indexOf(cursor);
    const next = rank < 0 ? 0 : rank + by;
    if (next >= 0 && next < hottest.length) setCursor(hottest[next]);
  };
  useKeys((e) => {
    if (e.key === "n") step(1);
    if (e.key === "p") step(-1);
  });
  return { cursor, setCursor, step, most: hottest.length ? rows[hottest[0]].counts[event] : 1 };
}

function SourceTools({ data, event, order, index, go, searchRef, step, all, setAll }) {
  return html`<div class="tools">
      <select aria-label="Source file" ref=${searchRef} value=${index} style=${{ flex: "1 1 260px" }}
          onChange=${(e) => go({ place: { source: Number(e.target.value), line: null, time: Date.now() } })}>
        ${order.files.map((i) => html`<option value=${i}>${percent(order.sums[i],
          data.events[event].total).padStart(8, "\u2007")}  ${data.sources[i].name}</option>`)}</select>
      <button onClick=${() => step(-1)}>◀ Hotter</button>
      <button onClick=${() => step(1)}>Cooler ▶</button>
      <label class="field"><input type="checkbox" checked=${all}
        onChange=${(e) => setAll(e.target.checked)} /> All events</label>
    </div>`;
}

// Whose the counts of a line are, by kind, the most important first.
function LineGroups({ data, event, file, line, go }) {
  const { groups } = data;
  const found = useMemo(() => groupsOfLines(groups, event, file), [event, file]);
  const here = found.get(line) || [];
  const name = (i) => (groups.parent[i] ? groups.name[groups.parent[i] - 1] + ": " : "") + groups.name[i];
  const kinds = groups.kinds.map((kind) => ({ kind: kind.name,
    rows: here.filter(([group]) => kindOf(groups, group) === kind.name) })).filter(({ rows }) => rows.length);
  return html`<div class="status" role="status"><b>${fileName(file)}:${line || "?"}</b>
    ${kinds.length === 0 && html`<span class="soft">no ${data.events[event].name} by ${
      groups.kinds.map((kind) => kind.name).join(", ")}</span>`}
    ${kinds.map(({ kind, rows }) => html`<div><span class="soft">by ${kind}: </span>${
      rows.slice(0, MOST_OF_LINE).map(([group, count], i) => html`${i > 0 ? ", " : ""}<button class="linkish"
        onClick=${() => go({ tab: "groups", event, group })}>${name(group)}</button> ${whole(count)}`)}${
      rows.length > MOST_OF_LINE ? ", ..." : ""}</div>`)}</div>`;
}

function Source({ data, event, place, go, searchRef }) {
  const [all, setAll] = useState(false);
  const order = useMemo(() => sourceOrder(data, event), [event]);
  // The first that there is something of.
  const usual = order.files.find((i) => data.sources[i].pieces);
  const index = place.source !== null ? place.source : usual === undefined ? order.files[0] : usual;
  const source = data.sources[index];
  const rows = useMemo(() => sourceRows(source, data.events.length), [index]);
  const { cursor, setCursor, step, most } = useHotRows(rows, event, place);
  const narrow = innerWidth <= 640;
  const columns = all ? [event, ...data.events.map((_, i) => i).filter((i) => i !== event)] : [event];
  const countWidth = narrow ? 92 : 168;
  const longest = rows.reduce((length, row) => Math.max(length, row.text.length), 40);
  const template = `repeat(${columns.length}, ${countWidth}px) 56px minmax(0, 1fr)`;
  const width = `calc(${columns.length * countWidth + 56}px + ${longest + 3}ch)`;
  const head = html`<div class="head" role="row" style=${{ gridTemplateColumns: template, width }}>
    ${columns.map((i) => html`<span role="columnheader" title=${data.events[i].description}>${data.events[i].name}</span>`)}
    <span role="columnheader">Line</span>
    <span role="columnheader">${source.path && source.path !== source.name ? `Source, found at ${source.path}` : "Source"}</span></div>`;
  const functionsOf = (row) => row.functions
    ? [...new Set(row.functions)].map((i) => data.functions.name[i]).filter(Boolean).join(", ") : "";
  const row = (at) => {
    const line = rows[at];
    const style = { top: at * 21 + "px", gridTemplateColumns: template, width: `max(100%, ${width})` };
    if (line.gap)
      return html`<div key=${at} class="row gap" role="row" style=${style}>
        <span style=${{ gridColumn: "1 / -1" }}>${narrow ? "" : "        "}⋯ ${line.text}</span></div>`;
    const heat = line.counts ? Math.sqrt(line.counts[event] / most) * 0.55 : 0;
    return html`<div key=${at} id=${`source-${at}`} role="row" aria-rowindex=${at + 1}
        class=${"row" + (at === cursor ? " cursor" : "")} title=${functionsOf(line)}
        onClick=${() => setCursor(at)}
        style=${heat ? { ...style, background: `rgba(var(--heat), ${heat})` } : style}>
      ${columns.map((i) => html`<span class="count" role="gridcell">${line.counts && line.counts[i]
        ? whole(line.counts[i]) + (narrow || all ? "" : "  " + percent(line.counts[i], data.events[i].total).padStart(7)) : ""}</span>`)}
      <span class="number" role="rowheader">${line.line || "?"}</span>
      <span class="text" role="gridcell">${line.text || (source.pieces ? "" : functionsOf(line))}</span>
    </div>`;
  };
  return html`<${SourceTools} data=${data} event=${event} order=${order} index=${index}
      go=${go} searchRef=${searchRef} step=${step} all=${all} setAll=${setAll} />
    ${source.warning && html`<p class="warning" role="alert">${source.warning}</p>`}
    ${!source.pieces && html`<p class="soft">The source is not in this report: ${source.name === "???"
      ? "there is no debug information for this code." : source.leftOut
      ? "nothing says that it is a source. The maker of the report can include it by --include=DIR, where it is below DIR, or --source-extensions=EXT, where its name ends in .EXT."
      : source.found ? "it could not be read, or there are too many." : "it was not found when the report was made; --include=DIR tries the ends of its name in DIR."}</p>`}
    <${VirtualList} count=${rows.length} height=${21} headHeight=${28} head=${head} row=${row}
      kind="source" label=${"Source of " + source.name} role="grid" cursor=${cursor}
      setCursor=${setCursor} width=${width} />
    ${data.groups && rows.length > 0 && html`<${LineGroups} data=${data} event=${event}
      file=${source.name} line=${(rows[cursor] || rows[0]).line} go=${go} />`}`;
}
