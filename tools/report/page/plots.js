// Plots: the series that profilers have written, as curves. Series of one kind, such as those of
// several threads, are in one picture; columns of different units in one below the other.

const PLOT_COLORS = 6;  // in report.css; then come broken lines

// 2,500,000 as 2.5M; of bytes 32768 as 32 KiB.
function shortNumber(n, unit) {
  const [base, units] = unit === "bytes" ? [1024, [" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"]]
    : [1000, ["", "k", "M", "G", "T", "P", "E"]];
  let power = 0;
  while (n >= base && power + 1 < units.length) { n /= base; ++power; }
  return Number(n.toPrecision(n >= 1000 ? 4 : 3)) + units[power];
}

// Numbers at round distances, 0 among them, at most about so many; the last is not below `largest`.
// Of bytes, distances are powers of 2.
function linearTicks(largest, most, unit) {
  const rough = Math.max(1, largest / most), power = 10 ** Math.floor(Math.log10(rough));
  const step = unit === "bytes" ? 2 ** Math.ceil(Math.log2(rough))
    : [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  return Array.from({ length: Math.max(1, Math.ceil(largest / step)) + 1 }, (_, i) => i * step);
}

// Powers of 10, of bytes of 2, from the first below the least to the first above the largest.
function logTicks(least, largest, most, unit) {
  const base = unit === "bytes" ? 2 : 10;
  const log = (n) => Math.log(n) / Math.log(base);
  const first = Math.floor(log(least) + 1e-9), last = Math.max(first + 1, Math.ceil(log(largest) - 1e-9));
  const step = Math.ceil((last - first) / most);
  return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, i) => base ** (first + i * step));
}

// Where values are, in pixels: from the first tick, or the least value, to the largest of both.
function axisOf(values, isLog, unit, room, pixels) {
  const most = Math.max(2, Math.floor(pixels / room));
  const positive = isLog ? values.filter((n) => n > 0) : values;
  const largest = positive.reduce((a, b) => Math.max(a, b), isLog ? 1 : 0);
  const least = isLog ? positive.reduce((a, b) => Math.min(a, b), largest) : 0;
  const ticks = isLog ? logTicks(least, largest, most, unit) : linearTicks(largest, most, unit);
  const from = ticks[0], to = Math.max(largest, ticks[ticks.length - 1]);
  const place = isLog ? (n) => Math.log(Math.max(n, from) / from) / Math.log(to / from) : (n) => n / to;
  return { ticks, at: (n) => place(n) * pixels };
}

// What a series is of, where there are several of one kind.
const seriesLabel = (series) => [
  series.version, series.thread ? `thread ${series.thread}` : "",
  series.phase ? `phase ${series.phase}` : "", series.from].filter(Boolean).join(", ") || "all";

const axisText = ({ name, unit }) => (unit && unit !== name ? `${name} (${unit})` : name);

// The curve of the heap has its own view, except in a difference.
const plottedSeries = (data) => (data.old.length ? data.series
  : data.series.filter((each) => !heapSeries(data).includes(each)));

// Series with the same name and axes, in their order.
function kindsOfSeries(all) {
  const kinds = new Map();
  for (const series of all) {
    const key = JSON.stringify([series.profiler, series.name, series.axes, series.log]);
    if (!kinds.has(key)) kinds.set(key, []);
    kinds.get(key).push(series);
  }
  return [...kinds.values()];
}

// The last point at or before x; -1 if there is none.
function pointAt(xs, x) {
  let low = 0, high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// One picture: the columns of a unit. `lines` are { series, column, style, label }, `x` is where the
// cursor is, or null.
function Chart({ lines, xs, x, xAxis, isLog, setX, label, valueText, move }) {
  const area = useRef();
  const { width } = useSize(area);
  const height = width < 500 ? 220 : 300;
  const left = 56, right = 22, top = 10, bottom = 26;
  const unit = lines[0].series.axes[lines[0].column].unit;
  const across = useMemo(() => axisOf(xs, isLog, xAxis.unit, 68, Math.max(50, width - left - right)),
                         [xs, isLog, width]);
  const up = useMemo(() => axisOf(lines.flatMap(({ series, column }) => series.numbers[column]), false, unit,
                                  42, height - top - bottom), [lines, height]);
  const px = (n) => left + across.at(n), py = (n) => height - bottom - up.at(n);
  const paths = useMemo(() => lines.map(({ series, column }) => series.numbers[0].map((n, i) =>
    `${i ? "L" : "M"}${px(n).toFixed(1)} ${py(series.numbers[column][i]).toFixed(1)}`).join("")),
    [lines, across, up]);
  const onPointerMove = (e) => {
    const at = e.clientX - area.current.getBoundingClientRect().left;
    const best = xs.reduce((a, n) => (Math.abs(px(n) - at) < Math.abs(px(a) - at) ? n : a), xs[0]);
    setX(best);
  };
  const at = x === null ? -1 : pointAt(xs, x);
  return html`<div class="plot" ref=${area} tabindex="0" role="slider" aria-label=${label}
      aria-orientation="horizontal" aria-valuemin="1" aria-valuemax=${xs.length} aria-valuenow=${at + 1 || 1}
      aria-valuetext=${x === null ? "no point chosen" : valueText} onKeyDown=${move}
      onPointerMove=${onPointerMove} onPointerDown=${onPointerMove}>
    <svg width=${width} height=${height} aria-hidden="true">
      ${up.ticks.map((n) => html`<g class="tick"><path d=${`M${left} ${py(n)}H${width - right}`} />
        <text x=${left - 6} y=${py(n) + 4} text-anchor="end">${shortNumber(n, unit)}</text></g>`)}
      ${across.ticks.map((n) => html`<g class="tick"><path d=${`M${px(n)} ${height - bottom}v5`} />
        <text x=${px(n)} y=${height - bottom + 18} text-anchor="middle">${shortNumber(n, xAxis.unit)}</text></g>`)}
      ${paths.map((path, i) => html`<path class=${"curve " + lines[i].style} d=${path} />`)}
      ${lines.map(({ series, column, style }) => series.numbers[0].length === 1 && html`<circle r="3"
        class=${"point " + style} cx=${px(series.numbers[0][0])} cy=${py(series.numbers[column][0])} />`)}
      ${x !== null && html`<path class="cursor" d=${`M${px(x)} ${top}V${height - bottom}`} />`}
      ${x !== null && lines.map(({ series, column, style }) => {
        const point = pointAt(series.numbers[0], x);
        return point >= 0 && html`<circle r="4" class=${"point " + style}
          cx=${px(series.numbers[0][point])} cy=${py(series.numbers[column][point])} />`; })}
    </svg></div>`;
}

// All numbers of a series, for who does not see the picture.
function SeriesTable({ kind, labels }) {
  const [isOpen, setOpen] = useState(false);
  const [chosen, setChosen] = useState(0);
  const { axes, numbers } = kind[chosen];
  return html`<details onToggle=${(e) => setOpen(e.target.open)}><summary>Numbers</summary>
    ${isOpen && html`${kind.length > 1 && html`<p><label class="field">Of <select value=${chosen}
        onChange=${(e) => setChosen(Number(e.target.value))}>
        ${labels.map((label, i) => html`<option value=${i}>${label}</option>`)}</select></label></p>`}
      <div class="scroll-x"><table class="plain"><thead><tr>${axes.map((axis) => html`<th scope="col"
        class="num">${axisText(axis)}</th>`)}</tr></thead>
      <tbody>${numbers[0].map((_, i) => html`<tr>${numbers.map((column) => html`<td
        class="num">${whole(column[i])}</td>`)}</tr>`)}</tbody></table></div>`}
  </details>`;
}

// Series of one kind.
function Plot({ kind }) {
  const { name, description, profiler, axes, log } = kind[0];
  const labels = useMemo(() => kind.map(seriesLabel), [kind]);
  const [shown, setShown] = useState(() => kind.map((_, i) => i < PLOT_COLORS));
  const [x, setX] = useState(null);
  const chosen = kind.map((_, i) => i).filter((i) => shown[i]);
  const xs = useMemo(() => [...new Set(chosen.flatMap((i) => kind[i].numbers[0]))].sort((a, b) => a - b), [shown]);
  const units = [...new Set(axes.slice(1).map(({ unit }) => unit))];
  const styleOf = (i, column) => {
    const n = kind.length > 1 ? i : column - 1;
    return `line-${n % PLOT_COLORS} dash-${Math.floor(n / PLOT_COLORS) % 3}`;
  };
  const charts = useMemo(() => units.map((unit) => ({ unit, lines: chosen.flatMap((i) =>
    axes.map((axis, column) => ({ axis, column })).filter(({ axis, column }) => column > 0 && axis.unit === unit)
      .map(({ column }) => ({ series: kind[i], column, style: styleOf(i, column), label: labels[i] }))) })), [shown]);
  const valuesOf = (lines) => lines.map(({ series, column, label }) => {
    const point = x === null ? -1 : pointAt(series.numbers[0], x);
    const what = kind.length > 1 ? `${label}: ` : "";
    return point < 0 ? "" : `${what}${whole(series.numbers[column][point])} ${series.axes[column].name}`;
  }).filter(Boolean).join(", ");
  const xText = () => `${axes[0].name} ${whole(x)}${axes[0].unit === "bytes" ? ` (${shortNumber(x, "bytes")})`
    : axes[0].unit ? " " + axes[0].unit : ""}`;
  const move = (e) => {
    const at = x === null ? -1 : pointAt(xs, x), last = xs.length - 1;
    const next = { ArrowRight: at + 1, ArrowUp: at + 1, ArrowLeft: at - 1, ArrowDown: at - 1,
                   PageUp: at + 10, PageDown: at - 10, Home: 0, End: last }[e.key];
    if (e.key === "Escape") setX(null);
    else if (next !== undefined && xs.length) setX(xs[Math.min(last, Math.max(0, next))]);
    else return;
    e.preventDefault();
  };
  const each = Math.max(...kind.map((series) => series.each));
  return html`<section class="panel plots"><h2>${name}${profiler && html` <span class="soft">${profiler}</span>`}</h2>
    ${description && html`<p class="soft">${description}${each > 1 ? `; a point stands for ${
      kind.every((series) => series.each === each) ? "" : "up to "}${whole(each)} neighbours, with the largest of their numbers` : ""}</p>`}
    ${kind.length > 1 && html`<div class="tools plot-legend" role="group" aria-label="Curves">${labels.map((label, i) =>
      html`<button aria-pressed=${shown[i]} onClick=${() => setShown((before) => before.map((on, at) => (at === i ? !on : on)))}>
        <svg width="22" height="10" aria-hidden="true"><path class=${"curve " + styleOf(i, 1)} d="M1 5H21" /></svg> ${label}</button>`)}</div>`}
    ${xs.length === 0 ? html`<p class="soft">No curve is chosen that has points.</p>` : charts.map(({ unit, lines }) => {
      const columns = axes.slice(1).filter((axis) => axis.unit === unit);
      const values = valuesOf(lines);
      return html`<figure><figcaption>${kind.length === 1 && columns.length > 1
          ? html`<span class="legend">${columns.map((axis) => html`<span><svg width="22" height="10" aria-hidden="true"><path
            class=${"curve " + styleOf(0, axes.indexOf(axis))} d="M1 5H21" /></svg> ${axisText(axis)}</span>`)}</span>`
          : columns.map(axisText).join(", ")}</figcaption>
        <${Chart} lines=${lines} xs=${xs} x=${x} xAxis=${axes[0]} isLog=${log} setX=${setX} move=${move}
          label=${`${name}: ${columns.map(axisText).join(", ")} by ${axisText(axes[0])}`}
          valueText=${x === null ? "" : `${xText()}: ${values}`} />
        <div class="plot-x soft">${axisText(axes[0])}${log ? ", on a logarithmic scale" : ""}</div>
        <div class="status">${x === null ? html`<span class="soft">Point at the curve, or move along it with the arrow keys.</span>`
          : html`<b>${xText()}</b> ${values}`}</div></figure>`; })}
    <${SeriesTable} kind=${kind} labels=${labels} /></section>`;
}

function Plots({ data }) {
  const kinds = useMemo(() => kindsOfSeries(plottedSeries(data)), []);
  return html`${data.seriesLeftOut > 0 && html`<p class="soft">${whole(data.seriesLeftOut)} further series are left out.</p>`}
    ${kinds.map((kind) => html`<${Plot} kind=${kind} />`)}`;
}
