// The page of assay report: shows the data that the page carries. See tools/report/data.cpp for what
// they are, and docs/reference/report.md for how the page is used. The files of this folder become one script,
// this one last.

// All views: those that the profile has something for first.
function tabsOf(data) {
  const index = (name) => data.events.findIndex((event) => event.name === name);
  const fetched = index("ReadB") >= 0 && index("UsedB") >= 0;
  const dataKinds = kindsOf(data.groups, false), threadKinds = kindsOf(data.groups, true);
  const tabs = [
    ["overview", "Overview", true], ["functions", "Functions", true],
    ["source", "Source", data.sources.length > 0],
    ["flame", "Flame graph", data.flame.events.length > 0],
    ["calls", "Calls", data.calls !== null],
    ["groups", groupsTitle(dataKinds) || "Objects", dataKinds.length > 0],
    ["heap", "Heap", data.old.length === 0 && heapSeries(data).length > 0],
    ["threads", groupsTitle(threadKinds) || "Threads", threadKinds.length > 0],
    ["lines", "Cache lines", fetched && data.events[index("ReadB")].total > 0],
    ["values", "Values", data.values.length > 0], ["phases", "Phases", data.phases !== null],
    ["plots", "Plots", plottedSeries(data).length > 0],
  ].map(([id, title, hasData]) => ({ id, title, hasData }));
  return [...tabs.filter((tab) => tab.hasData), ...tabs.filter((tab) => !tab.hasData)];
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    return text;  // a % that someone has typed
  }
}

// What an address says: #VIEW/EVENT, in sources and groups with what is shown there.
function stateOfLocation(data, tabs) {
  const [tab, name, what, how] = location.hash.slice(1).split("/").map(decoded);
  const event = data.events.findIndex((each) => each.name === name);
  const state = { tab: tabs.some(({ id }) => id === tab) ? tab : "overview", event: Math.max(0, event),
                  place: { source: null, line: null, time: 0 }, group: null, part: null, assembly: how === "instructions" };
  if (tab === "source" && what) {
    const [, file, old, line] = what.match(/^(.*?)(?::(old)?(\d+))?$/s);
    const source = data.sources.findIndex((each) => each.name === file);
    if (source >= 0) state.place = { source, line: line ? Number(line) : null, isOld: !!old, time: Date.now() };
  }
  const number = data.groups && /^\d+$/.test(what) && Number(what) < data.groups.name.length ? Number(what) : null;
  if (tab === "groups" || tab === "threads") state.group = number;
  if (tab === "functions" && number !== null && isOfThreads(data.groups, number)) state.part = number;
  return state;
}

function locationOfState(data, { tab, event, place, group, part, assembly }) {
  const parts = [tab, data.events[event].name];
  if (tab === "source" && place.source !== null)
    parts.push(data.sources[place.source].name +
      (place.line === null ? "" : (place.isOld ? ":old" : ":") + place.line));
  if (tab === "source" && assembly) parts.push(...(parts.length < 3 ? [""] : []), "instructions");
  if ((tab === "groups" || tab === "threads") && group !== null) parts.push(String(group));
  if (tab === "functions" && part !== null) parts.push(String(part));
  return "#" + parts.map(encodeURIComponent).join("/");
}

// Each view that is chosen is a step in the browser's history, and an address of the report shows
// what it says.
function useHistory(data, tabs, state, setState) {
  const given = useRef(true);  // the state is that of the address, in other words perhaps
  useEffect(() => {
    const follow = () => {
      given.current = true;
      setState(stateOfLocation(data, tabs));
    };
    addEventListener("popstate", follow);
    return () => removeEventListener("popstate", follow);
  }, []);
  useEffect(() => {
    const address = locationOfState(data, state);
    if (given.current) history.replaceState(null, "", address);
    else if (address !== location.hash) history.pushState(null, "", address);
    given.current = false;
  }, [state]);
}

// The place of a function's hottest line, in the chosen event or else in any; null if there is none.
// Of a function that only the old profile has, there.
function hottestLine(data, event, index) {
  let best = null;
  const look = (version, source, isOld) => version.functions.forEach((owner, i) => {
    if (owner !== index) return;
    const weight = version.counts[event][i] + 1e-9 * (version.lines[i] > 0);
    if (!best || weight > best.weight) best = { weight, source, line: version.lines[i], isOld };
  });
  data.sources.forEach((source, at) => look(source, at, false));
  if (!best) data.sources.forEach((source, at) => source.old && look(source.old, at, true));
  return best && { source: best.source, line: best.line, isOld: best.isOld, time: Date.now() };
}

// The hottest function of that name; -1 if there is none.
function hottestNamed(data, event, name) {
  const counts = data.functions.counts[event];
  let best = -1;
  data.functions.name.forEach((each, i) => {
    if (each === name && (best < 0 || counts[i] > counts[best])) best = i;
  });
  return best;
}

function Header({ data, event, go }) {
  const commands = data.commands.join("; ");
  const files = [data.old, data.files].filter((each) => each.length)
    .map((each) => each.join(", ")).join(" → ");
  return html`<header class="top"><div><h1 title=${commands}>${commands}</h1>
      <div class="soft" title=${files}>${files}</div></div>
      <label class="field">Event <select value=${event} onChange=${(e) => go({ event: Number(e.target.value) })}>
        ${data.events.map((each, i) => html`<option value=${i}>${each.name}${each.description ? ": " + each.description : ""}</option>`)}
      </select></label></header>
    ${data.incomplete.map((reason) => html`<div class="warning" role="alert">Incomplete, not the counts of a whole run: ${reason}</div>`)}`;
}

function Tabs({ tabs, tab, go }) {
  const onKeyDown = (e) => {
    const at = tabs.findIndex(({ id }) => id === tab);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[e.key];
    if (next === undefined) return;
    const { id } = tabs[(next + tabs.length) % tabs.length];
    go({ tab: id });
    document.getElementById("tab-" + id).focus();
    e.preventDefault();
  };
  return html`<nav role="tablist" aria-label="Views" onKeyDown=${onKeyDown}>${tabs.map(({ id, title, hasData }) => html`<button role="tab"
    id=${"tab-" + id} class=${hasData ? "" : "missing"} title=${hasData ? "" : "not in this report; says how to get it"} aria-selected=${id === tab} aria-controls="view" tabindex=${id === tab ? 0 : -1}
    onClick=${() => go({ tab: id })}>${title}</button>`)}</nav>`;
}

function App({ data }) {
  const tabs = useMemo(() => tabsOf(data), []);
  const [state, setState] = useState(() => stateOfLocation(data, tabs));
  const { tab, event, place, group, part, assembly } = state;
  const searchRef = useRef();
  const go = (change) => setState((before) => ({ ...before, ...change }));
  // Reads the event that a key before has chosen, though the page may not show it yet.
  const step = (by) => setState((before) => ({ ...before,
    event: (before.event + by + data.events.length) % data.events.length }));
  useHistory(data, tabs, state, setState);
  useEffect(() => {
    document.getElementById("tab-" + tab).scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [tab]);

  const openFunction = (index) => {
    const found = hottestLine(data, event, index);
    if (found) go({ tab: "source", place: found });
  };
  const openFunctionNamed = (name) => {
    const found = hottestNamed(data, event, name);
    if (found >= 0) openFunction(found);
  };
  useKeys((e) => {
    const number = Number(e.key);
    if (number >= 1 && number <= tabs.length) go({ tab: tabs[number - 1].id });
    else if (e.key === "0" && tabs.length > 9) go({ tab: tabs[9].id });
    else if (e.key === "/" && searchRef.current) searchRef.current.focus();
    else if (e.key === "]") step(1);
    else if (e.key === "[") step(-1);
    else return;
    e.preventDefault();
  });
  const index = (name) => data.events.findIndex((each) => each.name === name);
  const views = {
    overview: () => html`<${Overview} data=${data} event=${event} go=${go} openFunction=${openFunction} />`,
    functions: () => html`<${Functions} data=${data} event=${event} part=${part} go=${go} openFunction=${openFunction} searchRef=${searchRef} />`,
    source: () => html`<${Source} data=${data} event=${event} place=${place} assembly=${assembly} go=${go} searchRef=${searchRef} />`,
    flame: () => html`<${FlameGraph} data=${data} event=${event} openFunctionNamed=${openFunctionNamed} searchRef=${searchRef} go=${go} />`,
    calls: () => html`<${Calls} data=${data} event=${event} openFunctionNamed=${openFunctionNamed} searchRef=${searchRef} />`,
    groups: () => html`<${Groups} data=${data} event=${event} group=${group} go=${go} openFunctionNamed=${openFunctionNamed} searchRef=${searchRef} />`,
    threads: () => html`<${Threads} data=${data} event=${event} group=${group} go=${go} openFunction=${openFunction} searchRef=${searchRef} />`,
    lines: () => html`<${CacheLines} data=${data} readEvent=${index("ReadB")} usedEvent=${index("UsedB")} openFunction=${openFunction} go=${go} />`,
    values: () => html`<${Values} data=${data} searchRef=${searchRef} go=${go} />`,
    phases: () => html`<${Phases} data=${data} />`,
    heap: () => html`<${Heap} data=${data} go=${go} />`,
    plots: () => html`<${Plots} data=${data} />`,
  };
  const { title, hasData } = tabs.find(({ id }) => id === tab);
  const fixed = hasData && ["functions", "source", "flame"].includes(tab);
  return html`<${Header} data=${data} event=${event} go=${go} />
    <${Tabs} tabs=${tabs} tab=${tab} go=${go} />
    <main id="view" role="tabpanel" aria-labelledby=${"tab-" + tab} class=${fixed ? "fixed" : ""}>${hasData ? views[tab]() : html`<${Missing} data=${data} tab=${tab} title=${title} />`}</main>`;
}

// Adds to each frame of the flame graph the counts of the frames in it, which follow it.
function unpackFlame(flame) {
  flame.name = flame.name.map((i) => flame.texts[i]);
  for (const counts of [...flame.counts, ...(flame.old || [])])
    for (let i = counts.length - 1; i > 0; --i) counts[flame.parent[i]] += counts[i];
}

async function start() {
  const root = document.getElementById("app");
  try {
    const text = atob(document.getElementById("data").textContent);
    const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const data = await new Response(stream).json();
    unpackFlame(data.flame);
    root.textContent = "";
    render(html`<${App} data=${data} />`, root);
    document.body.dataset.ready = "yes";
  } catch (error) {
    root.textContent = "This report cannot be shown: " + error.message +
      ". It needs a browser of 2023 or later.";
  }
}

start();
