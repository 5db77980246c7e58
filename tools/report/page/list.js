// What views share: keys, sizes, and lists of which only the rows in view exist.

// State of a view that lasts while other views are shown, such as a search.
const keptStates = new Map();
function useKept(name, initial) {
  const [value, setValue] = useState(keptStates.has(name) ? keptStates.get(name) : initial);
  const keep = (next) => {
    keptStates.set(name, next);
    setValue(next);
  };
  return [value, keep];
}

// An effect of changes only, not of the first drawing.
function useChange(effect, inputs) {
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) effect();
    isFirst.current = false;
  }, inputs);
}

// The width of the window.
function useWidth() {
  const [width, setWidth] = useState(innerWidth);
  useEffect(() => {
    const measure = () => setWidth(innerWidth);
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, []);
  return width;
}

// Keys that work wherever the focus is, but not while something is typed.
// `onKey` is that of the last drawing, also for keys that follow one another quickly.
function useKeys(onKey) {
  const latest = useRef();
  latest.current = onKey;
  useEffect(() => {
    const listener = (e) => {
      if (!e.target.closest("input, select, textarea") && !e.ctrlKey && !e.metaKey && !e.altKey)
        latest.current(e);
    };
    addEventListener("keydown", listener);
    return () => removeEventListener("keydown", listener);
  }, []);
}

function useSize(ref) {
  const [size, setSize] = useState({ width: 800, height: 400 });
  useLayoutEffect(() => {
    const measure = () =>
      setSize({ width: ref.current.clientWidth, height: ref.current.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(ref.current);
    measure();
    return () => observer.disconnect();
  }, []);
  return size;
}

function nextCursor(key, cursor, count, page) {
  const last = count - 1;
  const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
  if (key === "Home") return 0;
  if (key === "End") return last;
  return key in moves ? Math.min(last, Math.max(0, cursor + moves[key])) : null;
}

// `row(index)` gives a row; the cursor moves with the keyboard, Enter opens what it is on.
function VirtualList({ count, height, head, headHeight, row, kind, label, cursor, setCursor,
                       open, width, role }) {
  const scroller = useRef();
  const size = useSize(scroller);
  const [top, setTop] = useState(0);
  const page = Math.max(1, Math.floor((size.height - headHeight) / height) - 1);
  useEffect(() => {
    const element = scroller.current;
    const at = cursor * height;
    if (at < element.scrollTop) element.scrollTop = at;
    else if (at + height > element.scrollTop + size.height - headHeight)
      element.scrollTop = Math.max(0, at - (size.height - headHeight) / 2);
  }, [cursor, count]);
  const onKeyDown = (event) => {
    if (event.target !== scroller.current) return;
    const next = nextCursor(event.key, cursor, count, page);
    if (next !== null && count > 0) {
      setCursor(next);
      event.preventDefault();
    } else if (event.key === "Enter" && open && cursor < count) {
      open(cursor);
      event.preventDefault();
    }
  };
  const first = Math.max(0, Math.floor(top / height) - 8);
  const end = Math.min(count, Math.ceil((top + size.height) / height) + 8);
  const rows = [];
  for (let i = first; i < end; ++i) rows.push(row(i));
  return html`<div class=${"panel virtual " + kind} ref=${scroller} tabindex="0" role=${role}
      aria-label=${label} aria-rowcount=${count} onKeyDown=${onKeyDown}
      aria-activedescendant=${count ? `${kind}-${cursor}` : undefined}
      onScroll=${(event) => setTop(event.target.scrollTop)}>
    ${head}
    <div class="spacer" role="presentation"
      style=${{ height: count * height + "px", minWidth: width || "100%" }}>${rows}</div>
  </div>`;
}
