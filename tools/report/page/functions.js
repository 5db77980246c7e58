// Functions.

// `of`: counts of all, or of a thread or process, which has only some of the functions.
function sortedFunctions(data, of, query, sort) {
  const { name, file, former } = data.functions;
  const matches = matcher(query);
  const rows = [];
  for (let i = 0; i < name.length; ++i) {
    if (of.isPart && of.counts.every((column) => !column[i])) continue;
    if (matches(name[i] + " " + file[i] + " " + (former ? former[i] : ""))) rows.push(i);
  }
  const key = sort.by === "name" ? () => 0
    : ["change", "changeWith"].includes(sort.by) ? (i) => Math.abs(functionValue(data, of, sort, i))
    : (i) => functionValue(data, of, sort, i);
  const byName = (a, b) => (name[a] < name[b] ? -1 : name[a] > name[b] ? 1 : 0);
  return rows.sort((a, b) => sort.up * (key(a) - key(b)) ||
                             (sort.by === "name" ? sort.up * byName(a, b) : byName(a, b)));
}

// What a function has in a column: own counts, or those with its callees.
function functionValue(data, of, { by, event }, i) {
  const { old, callees, oldCallees } = data.functions;
  const now = of.counts[event][i];
  switch (by) {
    case "with": return now + callees[event][i];
    case "old": return old[event][i];
    case "change": return now - old[event][i];
    case "changeWith": return now + callees[event][i] - old[event][i] - oldCallees[event][i];
    default: return now;
  }
}

// The chosen event first, with callees also, then the others that have counts.
function functionColumns(data, event, isPart) {
  const others = data.events.map((_, i) => i).filter((i) =>
    i !== event && (data.events[i].total || data.events[i].old));
  const hasCallees = !isPart && !!data.functions.callees;
  const { name } = data.events[event];
  const title = (text) => `${text}: with the functions that it calls or that are inlined into it`;
  if (!data.old.length)
    return [
      ...(hasCallees ? [{ by: "with", event, title: name + " incl.", help: title(name) }] : []),
      ...[event, ...others].map((i) => ({ by: "count", event: i, title: data.events[i].name }))];
  return [
    ...(hasCallees ? [{ by: "changeWith", event, title: name + " incl.", help: title("change of " + name) }] : []),
    { by: "change", event, title: name + " change" },
    { by: "old", event, title: "before" }, { by: "count", event, title: "after" },
    ...others.map((i) => ({ by: "change", event: i, title: data.events[i].name + " change" })),
  ];
}

// Columns are as wide as the window allows. In the narrower ones only shares remain, at last without
// decimals.
function columnStyle(width, columns) {
  const isPhone = width <= 640;
  const first = isPhone ? 175 : width <= 1000 ? 260 : 300;
  const each = isPhone ? 118 : Math.max(24, Math.min(132, Math.floor((width - 44 - first) / columns)));
  return { first, each, style: each >= 100 ? "whole" : each >= 60 ? "short" : each >= 44 ? "share" : "least" };
}

function FunctionCell({ data, of, column, style, index }) {
  const event = data.events[column.event];
  const isOld = column.by === "old", isChange = column.by.startsWith("change");
  const value = functionValue(data, of, column, index);
  const total = isChange || isOld ? event.old : of.totals[column.event];
  const shown = style === "whole" ? whole(value) : shortNumber(Math.abs(value), "");
  const exact = `${event.name}: ${isChange ? signed(value) : whole(value)}`;
  const isShare = style === "share" || style === "least";
  const sign = isChange && value > 0 ? "+" : value < 0 && style !== "whole" ? "-" : "";
  if (isChange) {
    const before = column.by === "change" ? data.functions.old[column.event][index]
      : functionValue(data, of, { by: "old", event: column.event }, index) + data.functions.oldCallees[column.event][index];
    const relative = value ? change(before + value, before) : "";
    return html`<div role="gridcell" title=${exact} class=${"cell " + (value ? worseOrBetter(value) : "zero")}>
      ${isShare && relative ? relative.replace(/\.\d %/, "").replace(/ %/, "") : sign + shown}${
      !isShare && html`<small>${relative}</small>`}</div>`;
  }
  const share = total ? Math.min(100, (value / total) * 100) : 0;
  const text = value ? percent(value, total) : "";
  const number = value ? share.toFixed(style === "share" ? 1 : 0) : "0";
  return html`<div role="gridcell" title=${exact} class=${"cell" + (value ? "" : " zero")}><i
      style=${{ width: share + "%" }}></i>${isShare ? html`<span>${number}</span>`
      : html`<span>${shown}</span><small>${text}</small>`}</div>`;
}

// All of the profile, or one of the threads and processes that it knows.
function PartChoice({ data, part, go }) {
  const { groups } = data;
  if (!groups || !groups.functions.group.length) return null;
  const parts = [...new Set(groups.functions.group)];
  return html`<label class="field">of <select aria-label="Functions of" value=${part === null ? "" : part}
      onChange=${(e) => go({ part: e.target.value === "" ? null : Number(e.target.value) })}>
    <option value="">all</option>${parts.map((i) => html`<option value=${i}>${groups.kind[i]} ${groups.name[i]}</option>`)}
  </select></label>`;
}

function Functions({ data, event, part, go, openFunction, searchRef }) {
  const isPart = part !== null;
  const of = useMemo(() => ({ isPart,
    counts: isPart ? functionsOfGroup(data, part) : data.functions.counts,
    totals: data.events.map((each, i) =>
      (isPart ? ownCount(data.groups, innerGroups(data.groups), i, part) : each.total)) }), [part]);
  const [query, setQuery] = useKept("functions.query", "");
  const [sorted, setSort] = useKept("functions.sort", null);
  // Another event begins with its own order.
  const usual = { by: data.old.length ? "change" : "count", event, up: -1, chosenAt: event };
  const columns = functionColumns(data, event, isPart);
  const sort = sorted && sorted.chosenAt === event && (sorted.by === "name" ||
    columns.some((column) => column.by === sorted.by)) ? sorted : usual;
  const [cursor, setCursor] = useKept("functions.cursor", 0);
  useChange(() => setCursor(0), [query, sort.by, sort.event, sort.up, part]);
  const rows = useMemo(() => sortedFunctions(data, of, query, sort),
                       [query, sort.by, sort.event, sort.up, of]);
  const { first, each, style } = columnStyle(useWidth(), columns.length);
  const columnClass = style === "least" ? "share least" : style;
  const template = `${first}px repeat(${columns.length}, ${each}px)`;
  const width = first + columns.length * each;
  const chosen = (by, of) => sort.by === by && (by === "name" || sort.event === of);
  const ariaSort = (by, of) =>
    chosen(by, of) ? (sort.up > 0 ? "ascending" : "descending") : "none";
  const sortBy = (by, of) => () =>
    setSort({ by, event: of, up: chosen(by, of) ? -sort.up : by === "name" ? 1 : -1, chosenAt: event });
  const arrow = (by, of) => (chosen(by, of) ? (sort.up > 0 ? "▲\u00a0" : "▼\u00a0") : "");
  const headHeight = { whole: 36, short: 46, share: 92, least: 92 }[style];
  const head = html`<div class=${"head " + columnClass} role="row" style=${{ gridTemplateColumns: template, height: headHeight + "px" }}>
    <div class="first" role="columnheader" aria-sort=${ariaSort("name")}>
      <button onClick=${sortBy("name", 0)}>${arrow("name")}Function</button></div>
    ${columns.map((column) => html`<div role="columnheader"
        aria-sort=${ariaSort(column.by, column.event)}>
      <button title=${column.help || `${data.events[column.event].name}: ${data.events[column.event].description}`}
        onClick=${sortBy(column.by, column.event)}>${arrow(column.by, column.event)}${column.title}</button>
    </div>`)}</div>`;
  const row = (at) => {
    const i = rows[at];
    return html`<div key=${at} id=${`functions-${at}`} role="row" aria-rowindex=${at + 1}
        class=${"row " + columnClass + (at === cursor ? " cursor" : "")} onClick=${() => { setCursor(at); openFunction(i); }}
        style=${{ top: at * 44 + "px", gridTemplateColumns: template, width: width + "px" }}>
      <div class="name" role="rowheader" title=${`${data.functions.file[i]}: ${data.functions.name[i]}`}>
        <b>${data.functions.name[i]}</b><span><bdi>${data.functions.former && data.functions.former[i]
          ? `was ${data.functions.former[i]}; ` : ""}${data.functions.file[i]}</bdi></span></div>
      ${columns.map((column) => html`<${FunctionCell} data=${data} of=${of} column=${column} style=${style} index=${i} />`)}
    </div>`;
  };
  return html`<div class="tools">
      <input type="search" ref=${searchRef} placeholder="Search functions and files"
        aria-label="Search functions and files" value=${query}
        onInput=${(e) => setQuery(e.target.value)} />
      <${PartChoice} data=${data} part=${part} go=${go} />
      <span class="soft" role="status">${whole(rows.length)} functions${data.functions.leftOut
        ? `; ${whole(data.functions.leftOut)} with the lowest counts are left out` : ""}</span>
      ${columnClass.startsWith("share") && html`<span class="soft">in percent</span>`}
    </div>
    ${rows.length === 0 && html`<p class="soft">${query ? "No function matches."
      : isPart ? "It has executed none of the functions in this report." : "The profile has no functions."}</p>`}
    <${VirtualList} count=${rows.length} height=${44} headHeight=${headHeight} head=${head} row=${row}
      kind="functions" label="Functions" role="grid" cursor=${cursor} setCursor=${setCursor}
      width=${width + "px"} open=${(at) => openFunction(rows[at])} />`;
}
