// Flame graph.

function hue(name) {
  let hash = 0;
  for (let i = 0; i < name.length; ++i) hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
  return 18 + (hash % 38);
}

// As Gregg's differential flame graphs: red has grown, blue has shrunk, the more the stronger.
function changeColor(difference, largest) {
  if (difference === 0) return "hsl(0 0% 88%)";
  const strength = Math.sqrt(Math.abs(difference) / largest);
  return `hsl(${difference > 0 ? 8 : 212} 85% ${88 - 30 * strength}%)`;
}

// The frames from `focus` on that are wide enough, outermost first, and above it those that it is in.
function flameLayout(flame, children, counts, focus, width) {
  const frames = [];
  const above = [];
  for (let i = focus; i !== 0; i = flame.parent[i]) above.unshift(flame.parent[i]);
  above.forEach((index, depth) => frames.push({ index, depth, left: 0, width, above: true }));
  const total = counts[focus] || 1;
  const walk = [{ index: focus, depth: above.length, left: 0, width }];
  while (walk.length) {
    const frame = walk.pop();
    frames.push(frame);
    let left = frame.left;
    for (const child of children[frame.index]) {
      const size = (counts[child] / total) * width;
      if (size >= 1) walk.push({ index: child, depth: frame.depth + 1, left, width: size });
      left += size;
    }
  }
  return frames;
}

// Of each frame the frames in it that have counts, the largest first.
function flameChildren(flame, counts) {
  const lists = flame.parent.map(() => []);
  for (let i = 1; i < flame.parent.length; ++i)
    if (counts[i] > 0) lists[flame.parent[i]].push(i);
  for (const list of lists) list.sort((a, b) => counts[b] - counts[a]);
  return lists;
}

// What frames that match have together: the outermost only, for what is in one is part of it.
function matchedCounts(flame, children, counts, matches) {
  let sum = 0;
  const walk = [0];
  while (walk.length) {
    const i = walk.pop();
    if (i !== 0 && matches(flame.name[i])) sum += counts[i];
    else walk.push(...children[i]);
  }
  return sum;
}

const frameName = (flame, i) => (i === 0 ? "all" : flame.name[i] +
  (flame.handler[i] ? " (signal handler)" : flame.inlined[i] ? " (inlined)" : ""));

// Where the cursor goes by a key that moves it: undefined if there is no such frame.
function flameTargets(flame, children, cursor) {
  const siblings = cursor === 0 ? [0] : children[flame.parent[cursor]];
  const at = siblings.indexOf(cursor);
  return { ArrowUp: flame.parent[cursor], ArrowDown: children[cursor][0],
           ArrowLeft: siblings[at - 1], ArrowRight: siblings[at + 1], Home: 0 };
}

// No component: there are thousands, and each move of the mouse shows them again.
function flameFrame({ frame, name, label, color, isCursor, faded, setCursor, zoom }) {
  const narrow = frame.width < 24;
  return html`<div key=${frame.index} id=${`frame-${frame.index}`} role="treeitem" aria-level=${frame.depth + 1}
      aria-label=${`${name}, ${label}`}
      class=${"frame" + (isCursor ? " cursor" : "") + (frame.above ? " above" : "") +
        (narrow ? " narrow" : "") + (faded ? " faded" : "")}
      style=${{ left: frame.left + 4 + "px", width: Math.max(0.5, frame.width - 1) + "px",
        top: frame.depth * 20 + 4 + "px",
        background: color }}
      title=${`${name}: ${label}`}
      onMouseEnter=${() => setCursor(frame.index)} onClick=${() => zoom(frame.index)}>${
        narrow ? "" : name}</div>`;
}

function FlameGraph({ data, event, openFunctionNamed, searchRef, go }) {
  const { flame } = data;
  const column = Math.max(0, flame.events.indexOf(event));
  const shown = flame.events[column];
  const after = flame.counts[column];
  const before = flame.old ? flame.old[column] : null;
  const [widths, setWidths] = useKept("flame.widths", "after");
  const counts = before && widths === "before" ? before : after;
  const total = counts[0];
  const [focus, setFocus] = useKept("flame.focus", 0);
  const [cursor, setCursor] = useKept("flame.cursor", 0);
  const [query, setQuery] = useKept("flame.query", "");
  const area = useRef();
  const size = useSize(area);
  const children = useMemo(() => flameChildren(flame, counts), [counts]);
  useChange(() => {
    if (counts[focus] === 0) setFocus(0);
    if (counts[cursor] === 0) setCursor(0);
  }, [counts]);
  const frames = useMemo(() => flameLayout(flame, children, counts, focus, size.width - 8),
                         [children, focus, size.width]);
  const matches = useMemo(() => (query.trim() ? matcher(query) : null), [query]);
  const matched = useMemo(() => (matches ? matchedCounts(flame, children, counts, matches) : 0),
                          [matches, children]);
  const name = (i) => frameName(flame, i);
  const largest = useMemo(() => before && after.reduce((most, count, i) =>
    i === 0 ? most : Math.max(most, Math.abs(count - before[i])), 1), [column]);
  const color = (i) => (before ? changeColor(after[i] - before[i], largest)
    : `hsl(${hue(name(i))} 85% ${i === 0 ? 80 : 68}%)`);
  const changed = (i) => (after[i] === before[i] ? "unchanged"
    : `changed by ${signed(after[i] - before[i])} (${change(after[i], before[i])})`);
  const label = (i) => `${whole(counts[i])} (${percent(counts[i], total)})` +
    (before ? `, ${changed(i)}` : "");
  const own = (i) => counts[i] - children[i].reduce((sum, child) => sum + counts[child], 0);
  const zoom = (i) => { setFocus(i); setCursor(i); };
  const onKeyDown = (e) => {
    const targets = flameTargets(flame, children, cursor);
    if (e.key in targets) {
      if (targets[e.key] !== undefined) setCursor(targets[e.key]);
    } else if (e.key === "Enter") zoom(cursor);
    else if (e.key === "Escape" || e.key === "Backspace") zoom(flame.parent[focus]);
    else return;
    e.preventDefault();
  };
  useEffect(() => {
    const element = area.current.querySelector(".cursor");
    if (element) element.scrollIntoView({ block: "nearest" });
  }, [cursor, frames]);
  const depth = frames.reduce((most, frame) => Math.max(most, frame.depth), 0);
  return html`<div class="tools">
      <input type="search" ref=${searchRef} value=${query} placeholder="Highlight functions"
        aria-label="Highlight functions" onInput=${(e) => setQuery(e.target.value)} />
      <button disabled=${focus === 0} onClick=${() => zoom(0)}>Reset zoom</button>
      ${cursor !== 0 && html`<button onClick=${() => openFunctionNamed(flame.name[cursor])}>Show source</button>`}
      ${before && html`<button aria-pressed=${widths === "before"}
        onClick=${() => setWidths(widths === "before" ? "after" : "before")}>Widths: ${widths}</button>
        <span class="soft">red: more, blue: less than before</span>`}
      ${matches && html`<span role="status">${percent(matched, total)} matched</span>`}
    </div>
    ${shown !== event && html`<p class="soft">${data.events[event].name} is not counted by call stack;
      this is ${flame.events.map((i, n) => html`${n > 0 ? ", " : ""}${i === shown ? data.events[i].name
        : html`<button class="linkish" onClick=${() => go({ event: i })}>${data.events[i].name}</button>`}`)}.</p>`}
    ${!flame.byStack[column] && html`<p class="soft">${data.events[shown].name} is not counted by call
      stack: each function stands alone, with what was inlined into it.</p>`}
    ${total === 0 && html`<p class="soft">No ${data.events[shown].name} was counted${
      before ? ` ${widths === "before" ? "before" : "after"} the change` : ""}.</p>`}
    <div class="panel flame" ref=${area} tabindex="0" role="tree" onKeyDown=${onKeyDown}
        aria-label=${"Flame graph of " + data.events[shown].name} aria-activedescendant=${`frame-${cursor}`}>
      <div style=${{ height: (depth + 1) * 20 + 8 + "px" }}></div>
      ${frames.map((frame) => flameFrame({ frame, name: name(frame.index),
        label: label(frame.index), color: color(frame.index), isCursor: frame.index === cursor,
        faded: matches && !matches(name(frame.index)), setCursor, zoom }))}
    </div>
    <div class="status" role="status"><b>${name(cursor)}</b> ${whole(counts[cursor])} ${data.events[shown].name}
      ${" "}(${percent(counts[cursor], total)}), of which itself ${whole(own(cursor))} (${percent(own(cursor), total)})${
        before && html`; ${changed(cursor)}`}</div>
    ${focus !== 0 && html`<${FrameLines} data=${data} event=${shown} name=${flame.name[focus]} go=${go} />`}`;
}
