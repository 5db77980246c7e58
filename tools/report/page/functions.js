// Functions.

// `counts`: of all, or of a thread or process, which has only some of the functions.
function sortedFunctions(data, counts, isPart, query, sort) {
  const { name, file, old, former } = data.functions;
  const matches = matcher(query);
  const rows = [];
  for (let i = 0; i < name.length; ++i) {
    if (isPart && counts.every((column) => !column[i])) continue;
    if (matches(name[i] + " " + file[i] + " " + (former ? former[i] : ""))) rows.push(i);
  }
  const key = {
    name: () => 0,
    count: (i) => counts[sort.event][i],
    old: (i) => old[sort.event][i],
    change: (i) => Math.abs(counts[sort.event][i] - old[sort.event][i]),
  }[sort.by];
  const byName = (a, b) => (name[a] < name[b] ? -1 : name[a] > name[b] ? 1 : 0);
  rows.sort((a, b) => sort.up * (key(a) - key(b)) ||
                      (sort.by === "name" ? sort.up * byName(a, b) : byName(a, b)));
  return rows;
}

function functionColumns(data, event) {
  const others = data.events.map((_, i) => i).filter((i) => i !== event);
  if (!data.old.length)
    return [event, ...others].map((i) => ({ by: "count", event: i, title: data.events[i].name }));
  return [
    { by: "change", event, title: data.events[event].name + " change" },
    { by: "old", event, title: "before" }, { by: "count", event, title: "after" },
    ...others.map((i) => ({ by: "change", event: i, title: data.events[i].name + " change" })),
  ];
}

function FunctionCell({ data, counts, totals, column, index }) {
  const { old } = data.functions;
  const event = data.events[column.event];
  const now = counts[column.event][index];
  const before = old ? old[column.event][index] : 0;
  if (column.by === "change") {
    const difference = now - before;
    return html`<div role="gridcell"
        class=${"cell " + (difference ? worseOrBetter(difference) : "zero")}>
      ${signed(difference)}<small>${difference ? change(now, before) : ""}</small></div>`;
  }
  const value = column.by === "old" ? before : now;
  const total = column.by === "old" ? event.old : totals[column.event];
  const share = total ? (value / total) * 100 : 0;
  return html`<div role="gridcell" class=${"cell" + (value ? "" : " zero")} style=${{
      backgroundImage: `linear-gradient(to left, var(--bar) ${share}%, transparent ${share}%)` }}>
    ${whole(value)}<small>${value ? percent(value, total) : ""}</small></div>`;
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
  const counts = useMemo(() => (isPart ? functionsOfGroup(data, part) : data.functions.counts), [part]);
  const totals = useMemo(() => (isPart ? data.events.map((_, i) => ownCount(data.groups, innerGroups(data.groups), i, part))
    : data.events.map((each) => each.total)), [part]);
  const old = data.old.length > 0;
  const [query, setQuery] = useState("");
  const [sort, setSort] = useState({ by: old ? "change" : "count", event, up: -1 });
  const [cursor, setCursor] = useState(0);
  useEffect(() => setSort({ by: old ? "change" : "count", event, up: -1 }), [event]);
  useEffect(() => setCursor(0), [query, sort, part]);
  const rows = useMemo(() => sortedFunctions(data, counts, isPart, query, sort), [query, sort, part]);
  const columns = functionColumns(data, event);
  const narrow = innerWidth <= 640;
  const template = `${narrow ? 175 : 360}px repeat(${columns.length}, ${narrow ? 118 : 132}px)`;
  const width = (narrow ? 175 : 360) + columns.length * (narrow ? 118 : 132);
  const chosen = (by, of) => sort.by === by && (by === "name" || sort.event === of);
  const ariaSort = (by, of) =>
    chosen(by, of) ? (sort.up > 0 ? "ascending" : "descending") : "none";
  const sortBy = (by, of) => () =>
    setSort({ by, event: of, up: chosen(by, of) ? -sort.up : by === "name" ? 1 : -1 });
  const arrow = (by, of) => (chosen(by, of) ? (sort.up > 0 ? " ▲" : " ▼") : "");
  const head = html`<div class="head" role="row" style=${{ gridTemplateColumns: template }}>
    <div class="first" role="columnheader" aria-sort=${ariaSort("name")}>
      <button onClick=${sortBy("name", 0)}>Function${arrow("name")}</button></div>
    ${columns.map((column) => html`<div role="columnheader"
        aria-sort=${ariaSort(column.by, column.event)}>
      <button title=${data.events[column.event].description}
        onClick=${sortBy(column.by, column.event)}>${column.title}${arrow(column.by, column.event)}</button>
    </div>`)}</div>`;
  const row = (at) => {
    const i = rows[at];
    return html`<div key=${at} id=${`functions-${at}`} role="row" aria-rowindex=${at + 1}
        class=${"row" + (at === cursor ? " cursor" : "")} onClick=${() => { setCursor(at); openFunction(i); }}
        style=${{ top: at * 44 + "px", gridTemplateColumns: template, width: width + "px" }}>
      <div class="name" role="rowheader" title=${`${data.functions.file[i]}: ${data.functions.name[i]}`}>
        <b>${data.functions.name[i]}</b><span><bdi>${data.functions.former && data.functions.former[i]
          ? `was ${data.functions.former[i]}; ` : ""}${data.functions.file[i]}</bdi></span></div>
      ${columns.map((column) => html`<${FunctionCell} data=${data} counts=${counts} totals=${totals} column=${column} index=${i} />`)}
    </div>`;
  };
  return html`<div class="tools">
      <input type="search" ref=${searchRef} placeholder="Search functions and files"
        aria-label="Search functions and files" value=${query}
        onInput=${(e) => setQuery(e.target.value)} />
      <${PartChoice} data=${data} part=${part} go=${go} />
      <span class="soft" role="status">${whole(rows.length)} functions${data.functions.leftOut
        ? `; ${whole(data.functions.leftOut)} with the lowest counts are left out` : ""}</span>
    </div>
    ${rows.length === 0 && html`<p class="soft">${query ? "No function matches."
      : isPart ? "It has executed none of the functions in this report." : "The profile has no functions."}</p>`}
    <${VirtualList} count=${rows.length} height=${44} headHeight=${36} head=${head} row=${row}
      kind="functions" label="Functions" role="grid" cursor=${cursor} setCursor=${setCursor}
      width=${width + "px"} open=${(at) => openFunction(rows[at])} />`;
}
