// Cache lines: how much of what was fetched was used.

// From wasted to used; the lightness changes too, for those who do not tell the hues apart.
const usedColor = (share) => `hsl(${12 + share * 130} 60% ${72 - share * 36}%)`;

// The used-bytes profiler's lists of values of each function, added up: of its lines, which bytes were
// used in how many, and how many bytes of how many. Instructions that fetch little have none.
function linePatterns(data) {
  const patterns = new Map();
  for (const { list, file, function: name, total, values } of data.values) {
    const kind = { "used_bytes.offsets": "offsets", "used_bytes.bytes": "bytes" }[list];
    if (!kind) continue;
    const key = file + "\n" + name;
    if (!patterns.has(key)) patterns.set(key, { lines: 0, offsets: new Map(), bytes: new Map() });
    const pattern = patterns.get(key);
    if (kind === "bytes") pattern.lines += total;
    for (const [value, count] of values) {
      const number = Number(value);
      pattern[kind].set(number, (pattern[kind].get(number) || 0) + count);
    }
  }
  return patterns;
}

// How many bytes a line has, from what the profile says of the cache.
function lineBytes(data) {
  const described = (name) => data.descriptions.find((each) => each[0] === name);
  const cache = described("cache") || described("D1 cache");
  const sizes = cache ? cache[1].match(/\d+(?= B)/g) : null;
  return sizes && sizes.length > 1 ? Number(sizes[1]) : 64;
}

function LineStrip({ pattern, share, bytes }) {
  if (!pattern || !pattern.lines)
    return html`<div class="strip"><i style=${{ width: share * 100 + "%" }}></i></div>`;
  const step = Math.max(1, bytes / 64);
  const cells = Array.from({ length: bytes / step }, (_, i) =>
    (pattern.offsets.get(i * step) || 0) / pattern.lines);
  const counts = [...pattern.bytes].sort((a, b) => b[1] - a[1]).slice(0, 4);
  return html`<div class="strip bytes" role="img"
      aria-label=${`bytes used in most lines: ${cells.filter((each) => each > 0.5).length * step}`}>
      ${cells.map((each, i) => html`<i title=${`byte ${i * step}: used in ${percent(each, 1)} of the lines`}
        style=${{ background: usedColor(each) }}></i>`)}</div>
    <small class="soft">${counts.map(([number, lines], i) =>
      (i ? ", " : "") + `${number} bytes in ${percent(lines, pattern.lines)}`)}${
      pattern.bytes.size > counts.length ? ", ..." : ""} of the lines</small>`;
}

function CacheLines({ data, readEvent, usedEvent, openFunction, go }) {
  const read = data.functions.counts[readEvent];
  const used = data.functions.counts[usedEvent];
  const total = data.events[readEvent].total;
  const hottest = useMemo(() => read.map((_, i) => i).filter((i) => read[i] > 0)
    .sort((a, b) => read[b] - read[a]).slice(0, 25), []);
  const patterns = useMemo(() => linePatterns(data), []);
  const bytes = useMemo(() => lineBytes(data), []);
  const cells = useMemo(() => heatCells(data, readEvent, usedEvent), []);
  return html`<div class="columns"><section class="panel">
      <h2>Memory that was fetched, by source line</h2>
      <p class="soft">Each square is 1/${cells.length} of the ${whole(total)} bytes fetched into the cache; those
        that a line fetched stand together, the largest first. Its colour says how much of them was used before
        it left the cache.</p>
      <div class="legend"><span>none<i class="ramp" style=${{ background:
        `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map(usedColor).join(", ")})` }}></i>all of it used</span></div>
      <div class="heatmap" role="img" style=${{ marginTop: ".7rem" }}
        aria-label=${`${percent(data.events[usedEvent].total, total)} of the bytes fetched were used`}>
        ${cells.map((cell) => html`<i title=${`${cell.name}: ${percent(cell.share, 1)} used`}
          style=${{ background: usedColor(cell.share), cursor: cell.source === null ? "" : "pointer" }}
          onClick=${() => cell.source !== null && go({ tab: "source", event: readEvent,
            place: { source: cell.source, line: cell.line, time: Date.now() } })}></i>`)}</div>
    </section><section class="panel">
      <h2>An average cache line of each function</h2>
      ${patterns.size > 0 && html`<p class="soft">Byte by byte, in the colours of the squares: in how many of the
        lines that the function fetched it was used. Below, how many bytes of a line were.</p>`}
      <div class="legend"><span><i style=${{ background: "var(--used)" }}></i>used</span>
        <span><i style=${{ background: "var(--waste)" }}></i>fetched for nothing</span></div>
      <div class="cacheline" style=${{ marginTop: ".7rem" }}>${hottest.map((i) => html`<div>
        <div class="label"><button class="linkish function" title=${data.functions.name[i]}
            onClick=${() => openFunction(i)}>${data.functions.name[i]}</button>
          <span class="num">${whole(read[i])} bytes, ${percent(used[i], read[i])} used</span></div>
        <${LineStrip} share=${used[i] / read[i]} bytes=${bytes}
          pattern=${patterns.get(data.functions.file[i] + "\n" + data.functions.name[i])} /></div>`)}</div>
    </section></div>`;
}

function heatCells(data, readEvent, usedEvent) {
  const lines = [];
  data.sources.forEach((source, at) => source.lines.forEach((line, i) => {
    const read = source.counts[readEvent][i];
    if (read > 0) lines.push({ read, share: source.counts[usedEvent][i] / read, source: at, line,
      name: `${fileName(source.name)}:${line} ${data.functions.name[source.functions[i]] || ""}` });
  }));
  lines.sort((a, b) => b.read - a.read);
  const total = data.events[readEvent].total || 1;
  const count = 480;
  const cells = [];
  let sum = 0;
  for (const line of lines) {
    sum += line.read;
    while (cells.length < Math.round((sum / total) * count)) cells.push(line);
  }
  return cells;
}
