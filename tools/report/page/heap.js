// The heap over time: bytes in use by allocation site, at the peak, and never freed.

const MOST_SITES = 50;  // at first

// The series that the run with --objects writes, one for each process.
const heapSeries = (data) => data.series.filter((each) =>
  each.name === "heap" && !each.profiler && each.axes[1] && each.axes[1].name === "all");

// The sites of a profile as rows: what they had when the heap was largest, at most, and at the end.
function heapSites(groups) {
  if (!groups) return [];
  const number = (i, key) => numberIn(groups.attributes[i], key) || 0;
  return groups.name.map((_, i) => i).filter((i) =>
    groups.kind[i] === "object" && groups.attributes[i].class === "heap").map((i) => ({
    index: i, atPeak: number(i, "at-peak"), peak: number(i, "peak"), left: number(i, "left"),
    blocks: number(i, "blocks"), bytes: number(i, "bytes") }));
}

// The sites of a column of the series, which has those of one name, the largest first.
const sitesOfColumn = (sites, groups, name) => sites.filter((site) => groups.name[site.index] === name)
  .sort((a, b) => b.peak - a.peak);

// Stacks the columns of a series: for each column the sums below and with it. What no column has
// lies on top.
function stackedColumns(numbers) {
  const all = numbers[1], bands = [];
  let below = all.map(() => 0);
  for (const column of numbers.slice(2)) {
    const top = column.map((n, i) => below[i] + n);
    bands.push({ below, top });
    below = top;
  }
  bands.push({ below, top: all.map((n, i) => Math.max(n, below[i])) });
  return bands;
}

// A curve that keeps each value up to the next point.
function steps(xs, ys, px, py) {
  let path = `M${px(xs[0]).toFixed(1)} ${py(ys[0]).toFixed(1)}`;
  for (let i = 1; i < xs.length; ++i) path += `H${px(xs[i]).toFixed(1)}V${py(ys[i]).toFixed(1)}`;
  return path;
}

// The area between two such curves.
function band(xs, { below, top }, px, py) {
  let path = steps(xs, top, px, py);
  for (let i = xs.length - 1; i >= 0; --i)
    path += `V${py(below[i]).toFixed(1)}H${px(xs[i]).toFixed(1)}`;
  return path + "Z";
}

function HeapChart({ series, bands, at, setAt, valueText }) {
  const area = useRef();
  const { width } = useSize(area);
  const height = width < 500 ? 240 : 320;
  const left = 66, right = 22, top = 10, bottom = 26;
  const [xs, all] = series.numbers;
  const across = useMemo(() => axisOf(xs, false, series.axes[0].unit, 68, Math.max(50, width - left - right)), [xs, width]);
  const up = useMemo(() => axisOf(all, false, "bytes", 42, height - top - bottom), [all, height]);
  const px = (n) => left + across.at(n), py = (n) => height - bottom - up.at(n);
  const paths = useMemo(() => bands.map((each) => band(xs, each, px, py)), [bands, across, up]);
  const peak = all.indexOf(Math.max(...all));
  const onPointerMove = (e) => {
    const x = e.clientX - area.current.getBoundingClientRect().left;
    setAt(xs.reduce((best, n, i) => (Math.abs(px(n) - x) < Math.abs(px(xs[best]) - x) ? i : best), 0));
  };
  const onKeyDown = (e) => {
    const last = xs.length - 1;
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, PageUp: at + 10, PageDown: at - 10, Home: 0, End: last }[e.key];
    if (next === undefined) return;
    setAt(Math.min(last, Math.max(0, next)));
    e.preventDefault();
  };
  return html`<div class="plot" ref=${area} tabindex="0" role="slider" aria-label="Heap over time"
      aria-orientation="horizontal" aria-valuemin="1" aria-valuemax=${xs.length} aria-valuenow=${at + 1}
      aria-valuetext=${valueText} onKeyDown=${onKeyDown} onPointerMove=${onPointerMove} onPointerDown=${onPointerMove}>
    <svg width=${width} height=${height} aria-hidden="true">
      ${up.ticks.map((n) => html`<g class="tick"><path d=${`M${left} ${py(n)}H${width - right}`} />
        <text x=${left - 6} y=${py(n) + 4} text-anchor="end">${shortNumber(n, "bytes")}</text></g>`)}
      ${across.ticks.map((n) => html`<g class="tick"><path d=${`M${px(n)} ${height - bottom}v5`} />
        <text x=${px(n)} y=${height - bottom + 18} text-anchor="middle">${shortNumber(n, "")}</text></g>`)}
      ${paths.map((path, i) => html`<path class=${"area area-" + areaOf(bands, i)} d=${path} />`)}
      <path class="curve total" d=${steps(xs, all, px, py)} />
      <path class="cursor peak" d=${`M${px(xs[peak])} ${top}V${height - bottom}`} />
      <path class="cursor" d=${`M${px(xs[at])} ${top}V${height - bottom}`} />
      <circle r="4" class="point line-0" cx=${px(xs[at])} cy=${py(all[at])} />
    </svg></div>`;
}

// The colour of a band; the last one is of all other sites.
const areaOf = (bands, i) => (i === bands.length - 1 ? "rest" : i);

const SITE_COLUMNS = [["atPeak", "At the peak", "bytes in use when the heap was largest"],
  ["peak", "Own peak", "the most bytes of this site at a time"], ["left", "Never freed", "bytes never freed"],
  ["bytes", "Allocated", "bytes of all blocks"], ["blocks", "Blocks", "number of blocks"]];

// Those that called the function after which a site is named.
function callersOfSite(groups, i) {
  const named = groups.callers[i].indexOf(groups.name[i].replace(/ \([^()]*\)$/, ""));
  return groups.callers[i].slice(Math.max(1, named) + 1);
}

function HeapSites({ data, sites, colors, go }) {
  const { groups } = data;
  const [by, setBy] = useKept("heap.by", "atPeak");
  const [most, setMost] = useState(MOST_SITES);
  const rows = useMemo(() => sites.filter((site) => site[by] > 0).sort((a, b) => b[by] - a[by]), [by]);
  return html`<section class="panel"><h2>Allocation sites</h2><div class="scroll-x"><table class="plain counts sites">
    <thead><tr><th scope="col" class="wide">Site</th>${SITE_COLUMNS.map(([key, title, help]) => html`<th scope="col" class="num" aria-sort=${key === by ? "descending" : "none"}>
      <button class="linkish" title=${help} onClick=${() => setBy(key)}>${key === by ? "▼\u00a0" : ""}${title}</button></th>`)}</tr></thead>
    <tbody>${rows.slice(0, most).map((site) => html`<tr><td class="wide">${colors.has(site.index) && html`<i class=${"swatch area-" + colors.get(site.index)}></i>`}<button class="linkish"
        onClick=${() => go({ tab: "groups", group: site.index })}>${groups.name[site.index]}</button>
        <div class="soft two-lines">${callersOfSite(groups, site.index).map((name) => "← " + name).join(" ")}</div></td>
      ${SITE_COLUMNS.map(([key]) => html`<td class=${"num" + (site[key] ? key === "left" ? " worse" : "" : " soft")}
        title=${whole(site[key])}>${key === "blocks" ? whole(site[key]) : shortNumber(site[key], "bytes")}</td>`)}</tr>`)}</tbody></table></div>
    ${rows.length === 0 && html`<p class="soft">${by === "left" ? "Every block was freed." : "No site has any."}</p>`}
    ${rows.length > most && html`<p><button onClick=${() => setMost(most + 500)}>Show more</button></p>`}
  </section>`;
}

function Heap({ data, go }) {
  const all = heapSeries(data);
  const [chosen, setChosen] = useKept("heap.chosen", 0);
  const series = all[chosen];
  const [xs, totals] = series.numbers;
  const peak = totals.indexOf(Math.max(...totals));
  const [moved, setAt] = useState(null);
  const at = moved === null || moved >= xs.length ? peak : moved;
  const bands = useMemo(() => stackedColumns(series.numbers), [series]);
  const sites = useMemo(() => heapSites(data.groups), []);
  const names = series.axes.slice(2).map(({ name }) => name);
  const ofColumns = useMemo(() => names.map((name) => sitesOfColumn(sites, data.groups, name)), [series]);
  const columns = ofColumns.map((found) => (found.length ? found[0].index : -1));
  const colors = new Map(ofColumns.flatMap((found, i) => found.map((site) => [site.index, i])));
  const valueOf = (i) => (i < names.length ? series.numbers[i + 2][at] : bands[i].top[at] - bands[i].below[at]);
  const left = sites.reduce((sum, site) => sum + site.left, 0);
  const bytes = (n) => shortNumber(n, "bytes");
  const text = `${bytes(totals[at])} after ${whole(xs[at])} instructions`;
  return html`<section class="panel plots"><h2>Heap over time</h2>
    ${all.length > 1 && html`<p><label class="field">Of <select value=${chosen} onChange=${(e) => { setAt(null); setChosen(Number(e.target.value)); }}>
      ${all.map((each, i) => html`<option value=${i}>${seriesLabel(each)}</option>`)}</select></label></p>`}
    <p>At most <b>${bytes(totals[peak])}</b> in use, after ${whole(xs[peak])} instructions.
      ${" "}${left ? html`<b class="worse">${bytes(left)}</b> never freed.` : "Every block was freed."}</p>
    <${HeapChart} series=${series} bands=${bands} at=${at} setAt=${setAt} valueText=${text} />
    <div class="plot-x soft">time, in instructions of the process</div>
    <div class="status" role="status"><b>${text}${at === peak ? ", the peak" : ""}</b></div>
    <ul class="sites-legend">${bands.map((_, i) => (i < names.length || valueOf(i) > 0 || i === bands.length - 1) && html`<li>
      <i class=${"swatch area-" + areaOf(bands, i)}></i><span class="num">${bytes(valueOf(i))}</span>
      ${i >= names.length ? html`<span class="soft">other sites</span>` : columns[i] < 0 ? html`<span>${names[i]}</span>`
        : html`<button class="linkish two-lines" title=${names[i]} onClick=${() => go({ tab: "groups", group: columns[i] })}>${names[i]}</button>`}</li>`)}</ul>
    <${SeriesTable} kind=${[series]} labels=${[seriesLabel(series)]} /></section>
    ${sites.length > 0 && html`<${HeapSites} data=${data} sites=${sites} colors=${colors} go=${go} />`}`;
}
