// The instructions beside a source.

// Of some functions of a source file, as rows: the instructions in the order of their addresses, and
// above them where another function, file or place of inlining begins.
function assemblyRows(source, data, functions) {
  const rows = [];
  const { assembly } = source;
  if (!assembly) return rows;
  let last = null;
  assembly.line.forEach((line, i) => {
    if (!functions.has(assembly.function[i])) return;
    const at = { index: i, line, end: parseInt(assembly.address[i], 16) + assembly.length[i] };
    const isNew = last === null || assembly.function[i] !== assembly.function[last.index] ||
      assembly.object[i] !== assembly.object[last.index] || assembly.site[i] !== assembly.site[last.index];
    if (isNew) {
      const site = data.assembly.sites[assembly.site[i]];
      const name = data.functions.name[assembly.function[i]];
      rows.push({ title: site ? `${shortened(name, 40)}, inlined in ${site}` : name, whole: site ? `${name}, inlined in ${site}` : name });
    }
    at.gap = !isNew && parseInt(assembly.address[i], 16) !== last.end;
    rows.push(at);
    last = at;
  });
  return rows;
}

// Why there is nothing to show; null if there is something.
function noAssembly(data, source, row, rows) {
  if (!data.assembly)
    return html`<${HowTo} data=${data} options="--dump-instr=yes"
      text="The profile has no counts of instructions. They are there if the program is profiled with" />`;
  if (rows.length) return null;
  if (!row || !row.functions)
    return html`<p class="soft">No instruction of this line was counted. Choose a line that has counts.</p>`;
  if (data.assembly.leftOut)
    return html`<p class="soft">The instructions of this function are not in the report, which has those of the
      hottest functions; ${whole(data.assembly.leftOut)} are left out. assay annotate --asm shows them all.</p>`;
  return html`<p class="soft">The profile has no counts of this line's instructions${
    data.old.length ? " in the new profile" : ""}.</p>`;
}

function AssemblyPane({ data, event, columns, source, row, chooseLine }) {
  const difference = data.old.length > 0;
  const key = row && row.functions ? [...new Set(row.functions)].join() : "";
  const rows = useMemo(() => assemblyRows(source, data, new Set(key.split(",").filter(Boolean).map(Number))),
                       [source, key]);
  const { assembly } = source;
  const line = row ? row.line : null;
  const first = rows.findIndex((each) => each.line === line && each.index !== undefined);
  const [cursor, setCursor] = useState(0);
  useEffect(() => setCursor(Math.max(0, first)), [rows, line]);
  const problems = useMemo(() => {
    const objects = new Set(rows.filter((each) => each.index !== undefined).map((each) => assembly.object[each.index]));
    return data.assembly ? [...objects].map((i) => data.assembly.objects[i].problem).filter(Boolean) : [];
  }, [rows]);
  const nothing = noAssembly(data, source, row, rows);
  if (nothing) return html`<section class="panel assembly-none" aria-label="Instructions"><h2>Instructions</h2>${nothing}</section>`;
  const isComparable = difference && rows.some((each) => each.index !== undefined &&
    data.assembly.objects[assembly.object[each.index]].isSame);
  const narrow = innerWidth <= 640;
  const value = (i, of) => assembly.counts[of][i] - (isComparable ? assembly.old[of][i] : 0);
  const most = rows.reduce((largest, each) =>
    each.index === undefined ? largest : Math.max(largest, Math.abs(value(each.index, event))), 1);
  const longest = rows.reduce((length, each) =>
    Math.max(length, each.title ? each.title.length - 30 : assembly.text[each.index].length), 30);
  const countWidth = narrow ? 88 : 112;
  const template = `repeat(${columns.length}, ${countWidth}px) 48px ${narrow ? 76 : 100}px minmax(0, 1fr)`;
  const width = `calc(${columns.length * countWidth + (narrow ? 124 : 148)}px + ${longest + 3}ch)`;
  const head = html`<div class="head" role="row" style=${{ gridTemplateColumns: template, width, minWidth: "100%" }}>
    ${columns.map((i) => html`<span role="columnheader" title=${data.events[i].description}>${data.events[i].name}${
      isComparable ? " change" : ""}</span>`)}
    <span role="columnheader">Line</span><span role="columnheader">Address</span>
    <span role="columnheader">Instruction</span></div>`;
  const show = (at) => {
    const each = rows[at];
    const style = { top: at * 21 + "px", gridTemplateColumns: template, width: `max(100%, ${width})` };
    if (each.title)
      return html`<div key=${at} class="row title" role="row" style=${style}>
        <span style=${{ gridColumn: "1 / -1" }} title=${each.whole}>${each.title}</span></div>`;
    const i = each.index, count = value(i, event);
    const heat = Math.sqrt(Math.abs(count) / most) * 0.55;
    return html`<div key=${at} id=${`assembly-${at}`} role="row" aria-rowindex=${at + 1}
        class=${"row" + (each.line === line ? " of-line" : "") + (at === cursor ? " cursor" : "") + (each.gap ? " behind-gap" : "")}
        title=${each.gap ? "not right behind the one above" : ""}
        onClick=${() => { setCursor(at); chooseLine(each.line); }}
        style=${heat ? { ...style, background: heatColor(isComparable ? count : null, heat) } : style}>
      ${columns.map((of) => html`<span class="count" role="gridcell">${value(i, of)
        ? (isComparable ? signed : whole)(value(i, of)) : ""}</span>`)}
      <span class="number" role="gridcell">${each.line || "?"}</span>
      <span class="number" role="gridcell">${assembly.address[i]}</span>
      <span class="text" role="gridcell" title=${assembly.text[i]}>${assembly.text[i]}</span></div>`;
  };
  return html`<div class="beside-pane">
    ${problems.map((problem) => html`<p class="warning">Only addresses are shown: ${problem}</p>`)}
    ${difference && !isComparable && html`<p class="soft">Counts of the new profile: the old one is of another build${
      ""}, or has no counts of instructions.</p>`}
    <${VirtualList} count=${rows.length} height=${21} headHeight=${28} head=${head} row=${show}
      kind="assembly" label=${"Instructions of " + source.name} role="grid" cursor=${cursor}
      setCursor=${(at) => setCursor(at)} open=${(at) => rows[at].line && chooseLine(rows[at].line)}
      width=${width} /></div>`;
}
