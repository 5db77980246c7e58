// Functions.

function sortedFunctions(data, query, sort) {
  const { name, file, counts, old } = data.functions;
  const matches = matcher(query);
  const rows = [];
  for (let i = 0; i < name.length; ++i)
    if (matches(name[i] + " " + file[i])) rows.push(i);
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

function FunctionCell({ data, column, index }) {
  const { counts, old } = data.functions;
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
  const total = column.by === "old" ? event.old : event.total;
  const share = total ? (value / total) * 100 : 0;
  return html`<div role="gridcell" class=${"cell" + (value ? "" : " zero")} style=${{
      backgroundImage: `linear-gradient(to left, var(--bar) ${share}%, transparent ${share}%)` }}>
    ${whole(value)}<small>${value ? percent(value, total) : ""}</small></div>`;
}

function Functions({ data, event, openFunction, searchRef }) {
  const old = data.old.length > 0;
  const [query, setQuery] = useState("");
  const [sort, setSort] = useState({ by: old ? "change" : "count", event, up: -1 });
  const [cursor, setCursor] = useState(0);
  useEffect(() => setSort({ by: old ? "change" : "count", event, up: -1 }), [event]);
  useEffect(() => setCursor(0), [query, sort]);
  const rows = useMemo(() => sortedFunctions(data, query, sort), [query, sort]);
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
        <b>${data.functions.name[i]}</b><span><bdi>${data.functions.file[i]}</bdi></span></div>
      ${columns.map((column) => html`<${FunctionCell} data=${data} column=${column} index=${i} />`)}
    </div>`;
  };
  return html`<div class="tools">
      <input type="search" ref=${searchRef} placeholder="Search functions and files"
        aria-label="Search functions and files" value=${query}
        onInput=${(e) => setQuery(e.target.value)} />
      <span class="soft" role="status">${whole(rows.length)} functions${data.functions.leftOut
        ? `; ${whole(data.functions.leftOut)} with the lowest counts are left out` : ""}</span>
    </div>
    <${VirtualList} count=${rows.length} height=${44} headHeight=${36} head=${head} row=${row}
      kind="functions" label="Functions" role="grid" cursor=${cursor} setCursor=${setCursor}
      width=${width + "px"} open=${(at) => openFunction(rows[at])} />`;
}
