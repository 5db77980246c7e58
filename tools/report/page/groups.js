// Whose the counts are: data objects, types with their members, threads, and the lines of each.

const MOST_GROUPS = 50;  // at first
const MOST_LINES = 30;   // of a group
const MOST_STRIPS = 16;  // cache lines of a type
const MOST_MEMBERS = 500;
const MOST_DEPTH = 16;   // of groups in one another

const plural = (name) => name + (name.endsWith("s") ? "es" : "s");
const groupsTitle = (kinds) => kinds.map(({ name }, i) =>
  plural(i === 0 ? name[0].toUpperCase() + name.slice(1) : name)).join(", ");

// Of each group, those in it.
function innerGroups(groups) {
  const inner = groups.name.map(() => []);
  groups.parent.forEach((parent, i) => { if (parent) inner[parent - 1].push(i); });
  return inner;
}

// With itself.
function allWithin(inner, group) {
  const all = new Set([group]);
  for (const each of all) inner[each].forEach((i) => all.add(i));
  return all;
}

// Those of a kind that are in no other one of it.
const outerGroups = (groups, kind) => groups.name.map((_, i) => i).filter((i) =>
  groups.kind[i] === kind && !(groups.parent[i] && groups.kind[groups.parent[i] - 1] === kind));

// The kind that a group is listed under.
function kindOf(groups, group) {
  let at = group;
  while (groups.parent[at]) at = groups.parent[at] - 1;
  return groups.kind[at];
}

const numberIn = (attributes, key) =>
  (/^\d+$/.test(attributes[key] || "") ? Number(attributes[key]) : null);
const bytesText = (bytes) => `${whole(bytes)} byte${bytes === 1 ? "" : "s"}`;

// "heap, 1,000 blocks of 88 bytes", "struct, 88 bytes".
function groupText(attributes) {
  const number = (key) => numberIn(attributes, key);
  const size = number("size"), blocks = number("blocks"), bytes = number("bytes");
  const parts = [attributes.class || attributes.kind, attributes.type];
  if (blocks !== null && !(blocks === 1 && size !== null))
    parts.push(`${whole(blocks)} block${blocks === 1 ? "" : "s"}` +
      (size !== null ? ` of ${bytesText(size)}` : ""));
  if (size !== null ? blocks === null || blocks === 1 : bytes !== null)
    parts.push(bytesText(size !== null ? size : bytes));
  return parts.filter(Boolean).join(", ");
}

// Their lines, added up where several are of one line, the most important first.
function linesOfGroups(lines, chosen, event) {
  const sums = new Map();
  lines.group.forEach((group, i) => {
    const count = lines.counts[event][i];
    if (!count || !chosen.has(group)) return;
    const key = `${lines.file[i]} ${lines.function[i]} ${lines.line[i]}`;
    if (!sums.has(key))
      sums.set(key, { file: lines.texts[lines.file[i]], line: lines.line[i],
                      name: lines.texts[lines.function[i]], count: 0 });
    sums.get(key).count += count;
  });
  return [...sums.values()].sort((a, b) => b.count - a.count);
}

// Which groups the lines of a file touch: by line the groups, in the order of their counts.
function groupsOfLines(groups, event, file) {
  const { lines } = groups;
  const found = new Map();
  const text = lines.texts.indexOf(file);
  lines.file.forEach((each, i) => {
    const count = lines.counts[event][i];
    if (each !== text || !count) return;
    if (!found.has(lines.line[i])) found.set(lines.line[i], new Map());
    const sums = found.get(lines.line[i]);
    sums.set(lines.group[i], (sums.get(lines.group[i]) || 0) + count);
  });
  return new Map([...found].map(([line, sums]) => [line, [...sums].sort((a, b) => b[1] - a[1])]));
}

const isLaidOut = (groups, list) =>
  list.length > 0 && list.every((i) => numberIn(groups.attributes[i], "offset") !== null);

// What is in a group, as rows: by their places, with what lies between them and where cache lines
// begin, if they have places; else the most important first.
function innerRows(groups, inner, event, group, lineSize) {
  const rows = [];
  const number = (i, key) => numberIn(groups.attributes[i], key);
  const add = (outer, depth) => {
    const laidOut = isLaidOut(groups, inner[outer]);
    const order = laidOut ? (i) => number(i, "offset") : (i) => -groups.counts[event][i];
    const begin = number(outer, "offset") || 0;
    let end = begin;
    const addHole = (to) => {
      if (laidOut && end < to) rows.push({ text: "(no counts)", offset: end, size: to - end, depth });
    };
    for (const i of [...inner[outer]].sort((a, b) => order(a) - order(b) || a - b)) {
      if (laidOut) {
        const offset = number(i, "offset");
        const line = Math.floor(offset / lineSize);
        addHole(offset);
        if (depth === 0 && line > Math.floor(Math.max(0, end - 1) / lineSize)) rows.push({ line });
        end = Math.max(end, offset + (number(i, "size") || 0));
      }
      rows.push({ index: i, text: groups.name[i], offset: number(i, "offset"),
                  size: number(i, "size"), depth });
      if (depth < MOST_DEPTH) add(i, depth + 1);
    }
    if (laidOut && number(outer, "size") !== null) addHole(begin + number(outer, "size"));
  };
  add(group, 0);
  return rows;
}

// Of each byte of a type up to `most`, what the innermost members that it belongs to count, with
// their names.
function countsOfBytes(groups, inner, event, group, most) {
  const number = (i, key) => numberIn(groups.attributes[i], key);
  if (!isLaidOut(groups, inner[group])) return [];
  const bytes = Array.from({ length: Math.min(most, number(group, "size") || 0) },
                           () => ({ count: 0, members: [] }));
  const add = (i, path, depth) => {
    const name = path + groups.name[i], count = groups.counts[event][i];
    if (depth < MOST_DEPTH && isLaidOut(groups, inner[i]))
      return inner[i].forEach((each) => add(each, name + ".", depth + 1));
    const begin = number(i, "offset");
    for (const byte of bytes.slice(begin, begin + (number(i, "size") || 0))) {
      byte.count += count;
      byte.members.push(`${name}: ${whole(count)}`);
    }
  };
  inner[group].forEach((i) => add(i, "", 0));
  return bytes;
}

function CacheLineStrips({ bytes, lineSize }) {
  const most = bytes.reduce((largest, byte) => Math.max(largest, byte.count), 1);
  const strips = [];
  for (let at = 0; at < bytes.length; at += lineSize) strips.push(bytes.slice(at, at + lineSize));
  return strips.map((strip, line) => html`<div class="strip bytes layout" role="img"
      aria-label=${`cache line ${line} of the type`}>
    ${Array.from({ length: lineSize }, (_, i) => html`<i class=${strip[i] ? "" : "outside"}
      title=${strip[i] ? `byte ${line * lineSize + i}: ${strip[i].members.join(", ") || "nothing"}` : ""}
      style=${strip[i] && strip[i].count
        ? { background: `rgba(var(--heat), ${Math.sqrt(strip[i].count / most)})` } : {}}></i>`)}</div>`);
}

function Inner({ data, event, inner, group, choose }) {
  const { groups } = data;
  const total = data.events[event].total;
  const lineSize = lineBytes(data);
  const rows = innerRows(groups, inner, event, group, lineSize);
  if (rows.length === 0) return null;
  const laidOut = isLaidOut(groups, inner[group]);
  const bytes = countsOfBytes(groups, inner, event, group, MOST_STRIPS * lineSize);
  return html`<section class="panel"><h2>${laidOut ? "Layout" : "What is in it"}</h2>
    ${bytes.length > 0 && html`<p class="soft">Byte by byte, the redder the more; a strip is a cache
      line of ${lineSize} bytes, if the type begins where one does.</p>`}
    <${CacheLineStrips} bytes=${bytes} lineSize=${lineSize} />
    <div class="scroll-x"><table class="plain counts">
      <thead><tr>${laidOut && html`<th scope="col" class="num">Offset</th><th scope="col" class="num">Size</th>`}
        <th scope="col" class="wide">Name</th><th scope="col" class="num">${data.events[event].name}</th><th></th></tr></thead>
      <tbody>${rows.slice(0, MOST_MEMBERS).map((row) => row.line !== undefined
        ? html`<tr class="ruler"><td colspan=${laidOut ? 5 : 3}>cache line ${row.line}</td></tr>`
        : html`<tr>${laidOut && html`<td class="num soft">${row.offset}</td><td class="num soft">${row.size}</td>`}
          <td class="wide" style=${{ paddingLeft: row.depth * 1.2 + 0.5 + "rem" }}>${row.index === undefined
            ? html`<span class="soft">${row.text}</span>`
            : html`<button class="linkish" onClick=${() => choose(row.index)}>${row.text}</button>
              ${" "}<span class="soft">${laidOut ? [groups.attributes[row.index].type,
                groups.attributes[row.index].bits && "bits " + groups.attributes[row.index].bits]
                .filter(Boolean).join(", ") : groupText(groups.attributes[row.index])}</span>`}</td>
          <td class="num">${row.index !== undefined ? whole(groups.counts[event][row.index]) : ""}</td>
          <td class="num soft">${row.index !== undefined
            ? percent(groups.counts[event][row.index], total) : ""}</td></tr>`)}</tbody></table></div>
    ${rows.length > MOST_MEMBERS && html`<p class="soft">and ${whole(rows.length - MOST_MEMBERS)} more</p>`}
  </section>`;
}

// What is known of it, in words.
const ATTRIBUTES = { class: "Class", size: "Size", offset: "Offset", blocks: "Blocks",
  bytes: "Together", peak: "At most at a time", left: "Never freed", "at-peak": "When the heap was largest",
  first: "First allocated, in instructions", last: "Last freed, in instructions",
  lifetimes: "Lifetimes together, in instructions", touched: "From first to last reference, of those", type: "Type", kind: "Kind", bits: "Bits", file: "File",
  line: "Line", number: "Number" };

function attributeText(key, text) {
  if (!/^\d+$/.test(text)) return text;
  return ["size", "bytes", "peak", "left", "at-peak"].includes(key) ? bytesText(Number(text)) : whole(Number(text));
}

function About({ data, events, group, choose, openFunctionNamed }) {
  const { groups } = data;
  const attributes = groups.attributes[group], callers = groups.callers[group];
  const parent = groups.parent[group] - 1;
  return html`<section class="panel"><h2>${groups.name[group]}</h2>
    ${parent >= 0 && html`<p class="soft">in <button class="linkish"
      onClick=${() => choose(parent)}>${groups.name[parent]}</button></p>`}
    <div class="scroll-x"><table class="plain counts"><tbody>
      ${events.map((i) => html`<tr><td class="num">${whole(groups.counts[i][group])}</td>
        <td class="num soft">${percent(groups.counts[i][group], data.events[i].total)}</td>
        <td class="wide" title=${data.events[i].description}>${data.events[i].name}</td></tr>`)}
    </tbody></table></div>
    <table class="plain made"><tbody>${Object.entries(attributes).map(([key, text]) =>
      html`<tr><td>${ATTRIBUTES[key] || key}</td><td>${attributeText(key, text)}</td></tr>`)}
      ${callers.length > 0 && html`<tr><td>Allocated by</td><td>${callers.map((name, i) =>
        html`${i > 0 && html`<span class="soft"> ← </span>`}<button class="linkish"
          onClick=${() => openFunctionNamed(name)}>${name}</button>`)}</td></tr>`}
    </tbody></table></section>`;
}

function GroupLines({ data, event, inner, group, go }) {
  const { lines } = data.groups;
  const rows = useMemo(() => linesOfGroups(lines, allWithin(inner, group), event), [group, event]);
  const sourceOf = (row) => data.sources.findIndex((source) => source.name === row.file);
  return html`<section class="panel"><h2>Lines that touch it</h2>
    <div class="scroll-x"><table class="plain counts"><tbody>${rows.slice(0, MOST_LINES).map((row) => html`<tr>
      <td class="num">${whole(row.count)}</td>
      <td class="num soft">${percent(row.count, data.events[event].total)}</td>
      <td class="wide"><button class="linkish" title=${row.file} disabled=${sourceOf(row) < 0} onClick=${() =>
        go({ tab: "source", event, place: { source: sourceOf(row), line: row.line, time: Date.now() } })}>${
        fileName(row.file)}:${row.line || "?"}</button> <span class="soft">${row.name}</span></td></tr>`)}
    </tbody></table></div>
    ${rows.length === 0 && html`<p class="soft">None is in this report.</p>`}
    ${rows.length > MOST_LINES && html`<p class="soft">and ${whole(rows.length - MOST_LINES)} more</p>`}
    ${lines.leftOut > 0 && html`<p class="soft">Lines with the lowest counts are left out.</p>`}
  </section>`;
}

function GroupList({ data, event, kind, rows, group, choose }) {
  const { groups } = data;
  const [most, setMost] = useState(MOST_GROUPS);
  const total = data.events[event].total;
  const rest = total - kind.counts[event];
  const row = (count, name) => html`<tr><td class="num">${whole(count)}</td>
    <td class="num soft">${percent(count, total)}</td><td class="wide">${name}</td></tr>`;
  return html`<section class="panel"><h2>${data.events[event].name} by ${kind.name}</h2>
    <div class="scroll-x"><table class="plain counts"><tbody>${rows.slice(0, most).map((i) => html`
      <tr class=${i === group ? "chosen" : ""}><td class="num">${whole(groups.counts[event][i])}</td>
        <td class="num soft">${percent(groups.counts[event][i], total)}</td>
        <td class="wide"><button class="linkish" aria-pressed=${i === group}
            onClick=${() => choose(i)}>${groups.name[i]}</button>
          <div class="soft">${groupText(groups.attributes[i])}</div></td></tr>`)}
      ${rest > 0 && row(rest, "(none)")}</tbody></table></div>
    ${rows.length === 0 && html`<p class="soft">No ${kind.name} matches, or has any of it.</p>`}
    ${rows.length > most && html`<p><button onClick=${() => setMost(most + 500)}>Show more</button></p>`}
  </section>`;
}

function Groups({ data, event, group, go, openFunctionNamed, searchRef }) {
  const { groups } = data;
  const [query, setQuery] = useKept("groups.query", "");
  const kinds = kindsOf(groups, false);
  const usual = group !== null && !isOfThreads(groups, group) ? kindOf(groups, group) : kinds[0].name;
  const [name, setName] = useState(usual);
  const kind = groups.kinds.find((each) => each.name === name);
  const counted = kind.counts.map((_, i) => i).filter((i) => kind.counts[i] > 0);
  const shown = counted.includes(event) || counted.length === 0 ? event : counted[0];
  const inner = useMemo(() => innerGroups(groups), []);
  const rows = useMemo(() => {
    const matches = matcher(query);
    return outerGroups(groups, name).filter((i) =>
      (groups.counts[shown][i] > 0 || counted.length === 0) &&
        matches([groups.name[i], groupText(groups.attributes[i]), ...groups.callers[i]].join(" ")))
      .sort((a, b) => groups.counts[shown][b] - groups.counts[shown][a]);
  }, [query, name, shown]);
  const isListed = group !== null && kindOf(groups, group) === name;
  const index = isListed ? group : rows[0];
  const choose = (i) => go({ group: i });
  return html`<div class="tools">
      ${kinds.length > 1 && html`<label class="field">By <select value=${name}
        onChange=${(e) => { setName(e.target.value); go({ group: null }); }}>
        ${kinds.map((each) => html`<option value=${each.name}>${each.name}</option>`)}</select></label>`}
      <input type="search" ref=${searchRef} placeholder="Search names" aria-label="Search names"
        value=${query} onInput=${(e) => setQuery(e.target.value)} />
      <span class="soft" role="status">${whole(rows.length)} ${rows.length === 1 ? name : plural(name)}${groups.leftOut
        ? `; ${whole(groups.leftOut)} with the lowest counts are left out` : ""}</span></div>
    ${shown !== event && html`<p class="soft">${data.events[event].name} is not counted by ${name};
      this is ${counted.map((i, n) => html`${n > 0 ? ", " : ""}${i === shown ? data.events[i].name
        : html`<button class="linkish" onClick=${() => go({ event: i })}>${data.events[i].name}</button>`}`)}.</p>`}
    <div class="columns"><div><${GroupList} data=${data} event=${shown} kind=${kind} rows=${rows}
        group=${index} choose=${choose} /></div>
      ${index !== undefined && html`<div>
        <${About} data=${data} events=${counted} group=${index} choose=${choose}
          openFunctionNamed=${openFunctionNamed} />
        <${Inner} data=${data} event=${shown} inner=${inner} group=${index} choose=${choose} />
        <${GroupLines} data=${data} event=${shown} inner=${inner} group=${index} go=${go} /></div>`}
    </div>`;
}
