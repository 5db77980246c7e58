// Sources.

const MOST_OF_LINE = 5;  // groups of a kind

// The files, those with the most of the event first, or that it has changed most in, and what each
// has of it, or how much that has changed.
function sourceOrder(data, event) {
  const sum = (counts) => counts[event].reduce((all, count) => all + count, 0);
  const sums = data.sources.map((source) => sum(source.counts) - (source.old ? sum(source.old.counts) : 0));
  return { sums, files: sums.map((_, i) => i).sort((a, b) => Math.abs(sums[b]) - Math.abs(sums[a])) };
}

// What a row has of an event or, of a difference, how much that has changed.
const weightOf = (row, event) => (row.counts ? row.counts[event] - (row.old ? row.old[event] : 0) : 0);

// The cursor, at the place that was asked for or else the hottest row, and a step to the next row by
// heat.
function useHotRows(rows, event, place) {
  const [cursor, setCursor] = useState(0);
  const weight = (i) => Math.abs(weightOf(rows[i], event));
  const hottest = useMemo(() =>
    rows.map((_, i) => i).filter((i) => weight(i) > 0).sort((a, b) => weight(b) - weight(a)), [rows, event]);
  useEffect(() => {
    const wanted = rows.findIndex((row) =>
      (place.isOld ? row.oldLine : row.line) === place.line && !row.gap);
    const usual = hottest.length ? hottest[0] : Math.max(0, rows.findIndex((row) => row.counts));
    setCursor(place.line !== null && wanted >= 0 ? wanted : usual);
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
  return { cursor, setCursor, step, most: hottest.length ? weight(hottest[0]) : 1 };
}

function SourceTools({ data, event, order, index, go, searchRef, step, all, setAll, assembly, toggle }) {
  const isDifference = data.old.length > 0;
  const { total } = data.events[event];
  const share = (i) => (isDifference ? (total ? signedPercent(order.sums[i] / total) : "") : percent(order.sums[i], total));
  return html`<div class="tools">
      <select aria-label="Source file" ref=${searchRef} value=${index} style=${{ flex: "1 1 260px" }}
          onChange=${(e) => go({ place: { source: Number(e.target.value), line: null, time: Date.now() } })}>
        ${order.files.map((i) => html`<option value=${i}>${share(i).padStart(8, "\u2007")}  ${data.sources[i].name}</option>`)}</select>
      <button onClick=${() => step(-1)}>◀ ${isDifference ? "Larger change" : "Hotter"}</button>
      <button onClick=${() => step(1)}>${isDifference ? "Smaller" : "Cooler"} ▶</button>
      <button aria-pressed=${assembly} onClick=${toggle}>Instructions</button>
      <label class="field"><input type="checkbox" checked=${all}
        onChange=${(e) => setAll(e.target.checked)} /> All events</label>
    </div>`;
}

// Whose the counts of a line are, by kind, the most important first.
function LineGroups({ data, event, file, line, go }) {
  const { groups } = data;
  const found = useMemo(() => groupsOfLines(groups, event, file), [event, file]);
  // An event of instructions has no objects: the first one that has some stands for it.
  const shown = useMemo(() => (found.has(line) ? event
    : data.events.findIndex((_, i) => groupsOfLines(groups, i, file).has(line))), [found, line]);
  const here = shown < 0 ? [] : (shown === event ? found : groupsOfLines(groups, shown, file)).get(line);
  const name = (i) => (groups.parent[i] ? groups.name[groups.parent[i] - 1] + ": " : "") + groups.name[i];
  const kinds = groups.kinds.map((kind) => ({ kind: kind.name,
    rows: here.filter(([group]) => kindOf(groups, group) === kind.name) })).filter(({ rows }) => rows.length);
  return html`<div class="status" role="status"><b>${fileName(file)}:${line || "?"}</b>
    ${kinds.length === 0 && html`<span class="soft">no ${data.events[event].name} by ${
      groups.kinds.map((kind) => kind.name).join(", ")}</span>`}
    ${kinds.map(({ kind, rows }) => html`<div><span class="soft">${shown === event ? "" : data.events[shown].name + " "}by ${kind}: </span>${
      rows.slice(0, MOST_OF_LINE).map(([group, count], i) => html`${i > 0 ? ", " : ""}<button class="linkish"
        onClick=${() => go({ tab: isOfThreads(groups, group) ? "threads" : "groups", event: shown, group })}>${name(group)}</button> ${whole(count)}`)}${
      rows.length > MOST_OF_LINE ? ", ..." : ""}</div>`)}</div>`;
}

// What the cursor's line counted before and after, and what it is called there.
function LineChange({ data, event, row }) {
  if (!row || row.gap) return null;
  const now = row.counts ? row.counts[event] : 0, before = row.old ? row.old[event] : 0;
  const where = row.line === row.oldLine || row.oldLine === null ? `line ${row.line || "?"}${row.oldLine === null ? ", which is new" : ""}`
    : row.line === null ? `line ${row.oldLine} of the old version`
    : `line ${row.line}, which was line ${row.oldLine}`;
  return html`<div class="status" role="status"><b>${where}</b> ${data.events[event].name}: ${whole(before)} → ${whole(now)}
    ${" "}<span class=${worseOrBetter(now - before)}>${now === before ? "unchanged" : `${signed(now - before)} (${change(now, before)})`}</span></div>`;
}

function notThere(version) {
  if (version.name === "???") return "there is no debug information for this code.";
  if (version.leftOut)
    return "nothing says that it is a source. The maker of the report can include it by --include=DIR, where it is below DIR, or --source-extensions=EXT, where its name ends in .EXT.";
  if (version.found) return "it could not be read, or there are too many.";
  return "it was not found when the report was made; --include=DIR tries the ends of its name in DIR.";
}

// Which of the texts are there, and what is not quite right with them.
function SourceNotes({ source, isDifference }) {
  const { old } = source;
  return html`${source.warning && html`<p class="warning" role="alert">${source.warning}</p>`}
    ${old && old.warning && old.warning !== source.warning && html`<p class="warning" role="alert">${old.warning}${
      source.oldPieces ? "" : " Where the source of the old profile is, --old-map=OLD=NEW says."}</p>`}
    ${!source.pieces && (!isDifference || source.isThere) && html`<p class="soft">The source is not in this report: ${notThere(source)}</p>`}
    ${isDifference && !source.isThere && html`<p class="soft">Only the old profile has counts of this file.</p>`}
    ${isDifference && !old.isThere && html`<p class="soft">Only the new profile has counts of this file.</p>`}
    ${isDifference && old.isThere && source.isThere && source.pieces && old.path === undefined && html`<p class="soft">The
      source of the old profile is not in this report: ${notThere(old)} Its counts stand at the lines of the same numbers.</p>`}
    ${source.pairs && html`<p class="soft">The source has changed: lines of ${old.path} that are gone are marked −, lines of ${
      source.path} that are new +.</p>`}`;
}

const WIDE = 1000;  // of a window: room for two texts, or for a text and instructions

// The cells of a row's counts: those of the event, with what the line calls first, or of all.
function countCells({ data, columns, row, narrow, all, inclusive }) {
  const [event] = columns;
  const sum = row.counts ? row.counts[event] + (row.callees ? row.callees[event] : 0) : 0;
  const total = data.events[event].total;
  const first = html`<span class="count" role="gridcell">${sum ? whole(sum) + "  " + percent(sum, total).padStart(7) : ""}</span>`;
  return html`${inclusive && first}${ownCells({ data, columns, row, narrow, all })}`;
}

function ownCells({ data, columns, row, narrow, all }) {
  return columns.map((i) => html`<span class="count" role="gridcell">${row.counts && row.counts[i]
    ? whole(row.counts[i]) + (narrow || all ? "" : "  " + percent(row.counts[i], data.events[i].total).padStart(7)) : ""}</span>`);
}

function changeCells({ columns, row, narrow, all }) {
  const count = (counts, i) => html`<span class="count" role="gridcell">${counts && counts[i] ? whole(counts[i]) : ""}</span>`;
  return columns.map((i) => {
    const difference = weightOf(row, i);
    return html`${!narrow && !all && html`${count(row.old, i)}${count(row.counts, i)}`}
      <span class="count" role="gridcell">${difference ? signed(difference)
        : row.counts && (row.counts[i] || row.old[i]) ? "=" : ""}</span>`;
  });
}

function columnHeads({ data, columns, isDifference, narrow, all, inclusive }) {
  const help = "with what the line calls and what is inlined there";
  return html`${inclusive && html`<span role="columnheader" title=${help}>${data.events[columns[0]].name} incl.</span>`}${
    ownHeads({ data, columns, isDifference, narrow, all })}`;
}

function ownHeads({ data, columns, isDifference, narrow, all }) {
  return columns.map((i) => {
    const { name, description } = data.events[i];
    const head = (text) => html`<span role="columnheader" title=${description}>${text}</span>`;
    if (!isDifference) return head(name);
    return html`${!narrow && !all && html`${head(name + " before")}${head("after")}`}${head(all || narrow ? name + " change" : "change")}`;
  });
}

// The text of a row; of a difference with the mark of a line that one version does not have. Beside
// one another: both texts.
function textCells({ row, sides, fallback }) {
  const mark = (sign) => html`<span class=${"mark " + (sign === "+" ? "is-new" : sign === "−" ? "is-gone" : "")}>${sign}</span>`;
  const text = (content, sign) => html`<span class="text" role="gridcell" title=${sides ? content : undefined}>${
    sign !== undefined && mark(sign)}${content}</span>`;
  const number = (line) => html`<span class="number" role="rowheader">${line === null || line === undefined ? "" : line || "?"}</span>`;
  if (!sides) {
    const isOld = row.line === null;
    return html`${number(isOld ? row.oldLine : row.line)}${text((isOld ? row.oldText : row.text) || row.text || fallback,
      row.isMarked ? (row.same ? " " : isOld ? "−" : "+") : undefined)}`;
  }
  return html`${number(row.oldLine)}${text(row.oldText || "", row.same || row.oldLine === null ? " " : "−")}
    ${number(row.line)}${text(row.text || "", row.same || row.line === null ? " " : "+")}`;
}

function Source({ data, event, place, assembly, go, searchRef }) {
  const isDifference = data.old.length > 0;
  const [all, setAll] = useState(false);
  const order = useMemo(() => sourceOrder(data, event), [event]);
  // The first that there is something of.
  const usual = order.files.find((i) => data.sources[i].pieces || data.sources[i].oldPieces);
  const index = place.source !== null ? place.source : usual === undefined ? order.files[0] : usual;
  const source = data.sources[index];
  const narrow = innerWidth <= 640;
  const sides = isDifference && !!source.pairs && innerWidth > WIDE && !assembly;
  const rows = useMemo(() => {
    const both = sourceRows(source, data.events.length, isDifference);
    if (!source.pairs || sides) return both;
    return oneBelowTheOther(both).map((row) => ({ ...row, isMarked: true }));
  }, [index, sides]);
  const { cursor, setCursor, step, most } = useHotRows(rows, event, place);
  // A click shows the instructions of a line, unless somebody has closed them.
  const [isClosed, setClosed] = useKept("source.closed", false);
  const toggle = () => {
    setClosed(assembly);
    go({ assembly: !assembly });
  };
  const choose = (at) => {
    setCursor(at);
    if (!isClosed && !assembly && data.assembly && innerWidth > WIDE && rows[at].counts) go({ assembly: true });
  };
  useKeys((e) => { if (e.key === "a") toggle(); });
  const columns = all ? [event, ...data.events.map((_, i) => i).filter((i) => i !== event)] : [event];
  const countWidth = narrow ? 92 : isDifference ? 118 : assembly ? 152 : 168;
  const inclusive = !!source.callees && !narrow && !all && !(assembly && innerWidth < 1600);
  const countColumns = columns.length * (isDifference && !narrow && !all ? 3 : 1) + (inclusive ? 1 : 0);
  const longest = rows.reduce((length, row) => Math.max(length, (row.text || row.oldText || "").length), 40);
  const counts = `repeat(${countColumns}, ${countWidth}px)`;
  const template = sides ? `${counts} 56px minmax(0, 1fr) 56px minmax(0, 1fr)` : `${counts} 56px minmax(0, 1fr)`;
  const width = sides ? `max(100%, ${countColumns * countWidth + 720}px)`
    : `calc(${countColumns * countWidth + 56}px + ${longest + 5}ch)`;
  const title = (version, name) => (version.path && version.path !== version.name ? `${name}, found at ${version.path}` : name);
  const head = html`<div class="head" role="row" style=${{ gridTemplateColumns: template, width }}>
    ${columnHeads({ data, columns, isDifference, narrow, all, inclusive })}
    ${sides && html`<span role="columnheader">Line</span><span role="columnheader" class="left">Before: ${source.old.path}</span>`}
    <span role="columnheader">Line</span>
    <span role="columnheader" class="left">${sides ? `After: ${source.path}` : title(source, "Source")}</span></div>`;
  const functionsOf = (row) => row.functions
    ? [...new Set(row.functions)].map((i) => data.functions.name[i]).filter(Boolean).join(", ") : "";
  const row = (at) => {
    const line = rows[at];
    const style = { top: at * 21 + "px", gridTemplateColumns: template, width: `max(100%, ${width})` };
    if (line.gap)
      return html`<div key=${at} class="row gap" role="row" style=${style}>
        <span style=${{ gridColumn: "1 / -1" }}>${narrow ? "" : "        "}⋯ ${line.text}</span></div>`;
    const weight = weightOf(line, event);
    const heat = Math.sqrt(Math.abs(weight) / most) * 0.55;
    return html`<div key=${at} id=${`source-${at}`} role="row" aria-rowindex=${at + 1}
        class=${"row" + (at === cursor ? " cursor" : "")} title=${functionsOf(line)}
        onClick=${() => choose(at)}
        style=${heat ? { ...style, background: heatColor(isDifference ? weight : null, heat) } : style}>
      ${isDifference ? changeCells({ columns, row: line, narrow, all })
        : countCells({ data, columns, row: line, narrow, all, inclusive })}
      ${textCells({ row: line, sides, fallback: source.pieces ? "" : functionsOf(line) })}
    </div>`;
  };
  const chosen = rows[cursor] || rows[0];
  const chooseLine = (line) => {
    const found = rows.findIndex((each) => each.line === line && !each.gap);
    if (found >= 0) setCursor(found);
  };
  return html`<${SourceTools} data=${data} event=${event} order=${order} index=${index} assembly=${assembly}
      toggle=${toggle} go=${go} searchRef=${searchRef} step=${step} all=${all} setAll=${setAll} />
    <${SourceNotes} source=${source} isDifference=${isDifference} />
    <div class=${"beside" + (assembly ? " with-assembly" : "")}>
      <${VirtualList} count=${rows.length} height=${21} headHeight=${28} head=${head} row=${row}
        kind="source" label=${"Source of " + source.name} role="grid" cursor=${cursor}
        setCursor=${setCursor} width=${width} />
      ${assembly && html`<${AssemblyPane} data=${data} event=${event} columns=${columns} source=${source}
        row=${chosen} chooseLine=${chooseLine} />`}</div>
    ${isDifference && html`<${LineChange} data=${data} event=${event} row=${chosen} />`}
    <${LineFunctions} data=${data} event=${event} row=${chosen} go=${go} />
    ${data.groups && rows.length > 0 && html`<${LineGroups} data=${data} event=${event}
      file=${source.name} line=${chosen.line} go=${go} />`}`;
}
