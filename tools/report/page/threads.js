// Threads, processes and programs: what each has of the counts, and its functions.

const KINDS_OF_THREADS = ["process", "program", "rank", "thread"];
const MOST_OF_THREAD = 40;  // functions, at first

const kindsOf = (groups, areThreads) => (groups ? groups.kinds : [])
  .filter(({ name }) => KINDS_OF_THREADS.includes(name) === areThreads);
const isOfThreads = (groups, group) => KINDS_OF_THREADS.includes(kindOf(groups, group));

// The counts of functions that are a group's own, by event; of all functions of the report.
function functionsOfGroup(data, group) {
  const { functions } = data.groups;
  const counts = data.events.map(() => new Array(data.functions.name.length).fill(0));
  functions.group.forEach((owner, i) => {
    if (owner !== group) return;
    counts.forEach((column, event) => { column[functions.function[i]] += functions.counts[event][i]; });
  });
  return counts;
}

// Without what is in groups in it: processes that it has started.
const ownCount = (groups, inner, event, group) => groups.counts[event][group] -
  inner[group].filter((i) => groups.kind[i] === groups.kind[group])
    .reduce((sum, i) => sum + groups.counts[event][i], 0);

// Of a kind, each with its depth in those that have started it; the largest first.
function threadTree(groups, inner, kind, event) {
  const rows = [];
  const add = (list, depth) => [...list].sort((a, b) => groups.counts[event][b] - groups.counts[event][a])
    .forEach((group) => {
      rows.push({ group, depth });
      add(inner[group].filter((i) => groups.kind[i] === kind), depth + 1);
    });
  add(outerGroups(groups, kind), 0);
  return rows;
}

function ThreadFunctions({ data, event, title, group, own, openFunction, go }) {
  const [most, setMost] = useState(MOST_OF_THREAD);
  const counts = useMemo(() => functionsOfGroup(data, group)[event], [group, event]);
  const order = useMemo(() => counts.map((_, i) => i).filter((i) => counts[i] > 0)
    .sort((a, b) => counts[b] - counts[a]), [counts]);
  const all = data.functions.counts[event];
  const name = data.events[event].name;
  return html`<section class="panel"><h2>Functions of ${title}</h2>
    ${order.length > 0 && html`<p><button onClick=${() => go({ tab: "functions", part: group })}>Search and sort them, with all events</button></p>`}
    <div class="scroll-x"><table class="plain counts of-threads">
      <thead>${order.length > 0 && html`<tr><th scope="col" class="num">${name}</th><th scope="col" class="num">of it</th>
        <th scope="col" class="num" title="of what the function has in all">of function</th>
        <th scope="col" class="wide">Function</th></tr>`}</thead>
      <tbody>${order.slice(0, most).map((i) => html`<tr><td class="num">${whole(counts[i])}</td>
        <td class="num soft">${percent(counts[i], own)}</td>
        <td class="num soft">${percent(counts[i], all[i])}</td>
        <td class="wide"><button class="linkish two-lines" title=${`${data.functions.file[i]}: ${data.functions.name[i]}`}
          onClick=${() => openFunction(i)}>${data.functions.name[i]}</button></td></tr>`)}</tbody></table></div>
    ${order.length > most && html`<p><button onClick=${() => setMost(most + 200)}>Show more of ${whole(order.length)}</button></p>`}
    ${order.length === 0 && html`<p class="soft">${data.groups.functions.group.length
      ? `It has no ${name} of its own.`
      : "The report has no functions of single processes: it was made of too many files. Make one of fewer."}</p>`}
  </section>`;
}

function Threads({ data, event, group, go, openFunction, searchRef }) {
  const { groups } = data;
  const kinds = kindsOf(groups, true);
  const usual = group !== null && isOfThreads(groups, group) ? kindOf(groups, group) : kinds[0].name;
  const [name, setName] = useState(usual);
  const [query, setQuery] = useKept("threads.query", "");
  useEffect(() => setName(usual), [group]);
  const inner = useMemo(() => innerGroups(groups), []);
  const tree = useMemo(() => threadTree(groups, inner, name, event), [name, event]);
  const matches = useMemo(() => matcher(query), [query]);
  const rows = tree.filter((row) => matches(groups.name[row.group]));
  const chosen = group !== null && kindOf(groups, group) === name ? group
    : rows.length ? rows[0].group : null;
  const total = data.events[event].total;
  const hasInner = tree.some((row) => row.depth > 0);
  const isTree = hasInner && innerWidth > 640;
  const own = chosen === null ? 0 : ownCount(groups, inner, event, chosen);
  const summed = outerGroups(groups, name).reduce((sum, i) => sum + groups.counts[event][i], 0);
  const number = chosen === null ? null : groups.attributes[chosen].number;
  const title = chosen === null ? "" : `${name} ${groups.name[chosen]}${number ? `, number ${number}` : ""}`;
  return html`<div class="tools">
      ${kinds.length > 1 && html`<label class="field">By <select value=${name}
        onChange=${(e) => { setName(e.target.value); go({ group: null }); }}>
        ${kinds.map((each) => html`<option value=${each.name}>${each.name}</option>`)}</select></label>`}
      <input type="search" ref=${searchRef} placeholder="Search names" aria-label="Search names"
        value=${query} onInput=${(e) => setQuery(e.target.value)} />
      <span class="soft" role="status">${whole(rows.length)} ${rows.length === 1 ? name : plural(name)}</span></div>
    <div class="columns"><div><section class="panel"><h2>${data.events[event].name} by ${name}</h2>
      <div class="scroll-x"><table class="plain counts">
        <thead>${isTree && rows.length > 0 && html`<tr><th scope="col" class="num">itself</th><th></th>
          <th scope="col" class="num">with those it started</th><th scope="col" class="wide">${name}</th></tr>`}</thead>
        <tbody>${rows.map((row) => {
          const itself = ownCount(groups, inner, event, row.group);
          return html`<tr class=${row.group === chosen ? "chosen" : ""}>
            <td class="num">${whole(itself)}</td><td class="num soft">${percent(itself, total)}</td>
            ${isTree && html`<td class="num soft">${whole(groups.counts[event][row.group])}</td>`}
            <td class="wide"><button class="linkish" style=${{ marginLeft: (query ? 0 : row.depth) * 1.2 + "rem" }}
              aria-pressed=${row.group === chosen} onClick=${() => go({ group: row.group })}>${groups.name[row.group]}</button>
              ${groups.attributes[row.group].number && html`<span class="soft"> number ${groups.attributes[row.group].number}</span>`}
              ${hasInner && !isTree && inner[row.group].length > 0 && html`<div class="soft">${whole(groups.counts[event][row.group])} with those it started</div>`}
              <div class="track"><i style=${{ width: total ? (itself / total) * 100 + "%" : 0 }}></i></div></td></tr>`; })}
          ${total > summed && !query && html`<tr><td class="num">${whole(total - summed)}</td>
            <td class="num soft">${percent(total - summed, total)}</td>${isTree && html`<td></td>`}
            <td class="wide soft">of no known ${name}</td></tr>`}
        </tbody></table></div>
      ${rows.length === 0 && html`<p class="soft">No ${name} is named so.</p>`}</section></div>
      ${chosen !== null && html`<div>
        <${ThreadFunctions} key=${chosen} data=${data} event=${event} title=${title} group=${chosen} own=${own}
          openFunction=${openFunction} go=${go} />
        <section class="panel"><h2>All events of ${title}</h2><div class="scroll-x"><table class="plain counts"><tbody>
          ${data.events.map((each, i) => html`<tr><td class="num">${whole(ownCount(groups, inner, i, chosen))}</td>
            <td class="num soft">${percent(ownCount(groups, inner, i, chosen), each.total)}</td>
            <td class="wide" title=${each.description}>${i === event ? html`<b>${each.name}</b>` : html`<button class="linkish"
              onClick=${() => go({ event: i })}>${each.name}</button>`}</td></tr>`)}</tbody></table></div></section></div>`}
    </div>`;
}
