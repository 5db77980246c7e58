"use strict";
// The page of assay report: shows the data that the page carries. See tools/report/data.cpp for
// what they are, and docs/report.md for how the page is used.
(() => {
  const { h, render } = preact;
  const { useState, useMemo, useRef, useEffect, useLayoutEffect } = preactHooks;
  const html = htm.bind(h);

  // --- Numbers and texts

  const whole = (n) => n.toLocaleString("en-US");
  const signed = (n) => (n > 0 ? "+" : "") + whole(n);
  const percent = (part, total) =>
    total === 0 ? "" : ((part / total) * 100).toFixed(part / total < 0.0995 ? 2 : 1) + " %";
  const change = (now, before) =>
    before === 0 ? (now === 0 ? "" : "new") : signedPercent((now - before) / before);
  const signedPercent = (x) => (x > 0 ? "+" : "") + (x * 100).toFixed(1) + " %";
  const figure = (value, unit) => {
    if (value === null) return "none";
    if (unit === "%") return (value * 100).toFixed(2) + " %";
    return (Number.isInteger(value) ? whole(value) : value.toFixed(3)) + (unit ? " " + unit : "");
  };
  const fileName = (path) => path.slice(path.lastIndexOf("/") + 1);
  const worseOrBetter = (n) => (n > 0 ? "worse" : n < 0 ? "better" : "");

  // All words of `query` occur in `text`, in any case.
  function matcher(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    return (text) => {
      const lower = text.toLowerCase();
      return words.every((word) => lower.includes(word));
    };
  }

  // --- Lists of which only the rows in view exist

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

  // --- Overview

  function Overview({ data, event, go, openFunction }) {
    const { events, derived } = data;
    const old = data.old.length > 0;
    const total = events[event].total;
    const counts = data.functions.counts[event];
    const before = old ? data.functions.old[event] : null;
    const weight = (i) => (old ? Math.abs(counts[i] - before[i]) : counts[i]);
    const hottest = useMemo(() => {
      const all = counts.map((_, i) => i).filter((i) => weight(i) > 0);
      return all.sort((a, b) => weight(b) - weight(a)).slice(0, 12);
    }, [event]);
    const largest = hottest.length ? weight(hottest[0]) : 1;
    return html`<div class="columns"><div>
      <section class="panel"><h2>${old ? "What changed most" : "Where it goes"}: ${events[event].name}</h2>
        ${events[event].description && html`<p class="soft">${events[event].description}</p>`}
        <ol class="bars">${hottest.map((i) => html`<li>
          <div class="label"><button class="linkish" title=${data.functions.file[i]}
              onClick=${() => openFunction(i)}>${data.functions.name[i]}</button>
            <span class=${"num " + (old ? worseOrBetter(counts[i] - before[i]) : "")}>${old
              ? signed(counts[i] - before[i]) : percent(counts[i], total)}</span></div>
          <div class="track"><i style=${{ width: (weight(i) / largest) * 100 + "%" }}></i></div>
        </li>`)}</ol>
        ${hottest.length === 0 && html`<p class="soft">Nothing${old ? " has changed" : ""}.</p>`}
      </section>
      ${derived.length > 0 && html`<section class="panel"><h2>Figures</h2><table class="plain">
        <tbody>${derived.map((each) => html`<tr><td>${each.name}</td>
          ${old && html`<td class="num soft">${figure(each.old, each.unit)}</td>`}
          <td class="num">${figure(each.value, each.unit)}</td></tr>`)}</tbody></table></section>`}
      <section class="panel"><h2>How it was made</h2><table class="plain made"><tbody>
        ${data.commands.map((text) => html`<tr><td>Command</td><td><code>${text}</code></td></tr>`)}
        ${data.old.map((text) => html`<tr><td>Before</td><td>${text}</td></tr>`)}
        ${data.files.map((text) => html`<tr><td>${old ? "After" : "File"}</td><td>${text}</td></tr>`)}
        ${data.descriptions.map(([name, text]) => html`<tr><td>${name}</td><td>${text}</td></tr>`)}
      </tbody></table></section>
      <section class="panel"><h2>Keyboard</h2><div class="keys">
        <span><kbd>1</kbd> ... <kbd>7</kbd></span><span>choose a view</span>
        <span><kbd>[</kbd> <kbd>]</kbd></span><span>previous or next event</span>
        <span><kbd>/</kbd></span><span>search</span>
        <span><kbd>Tab</kbd></span><span>into the list, and on</span>
        <span><kbd>↑</kbd> <kbd>↓</kbd> <kbd>Enter</kbd></span><span>in lists: move, open</span>
        <span><kbd>n</kbd> <kbd>p</kbd></span><span>in sources: next cooler or hotter line</span>
        <span><kbd>←</kbd> <kbd>→</kbd> <kbd>Esc</kbd></span><span>in the flame graph: beside, back</span>
      </div></section>
      </div><div>
      <section class="panel"><h2>Totals</h2><div class="scroll-x"><table class="plain">
        <thead><tr><th scope="col">Event</th>${old && html`<th scope="col" class="num">Before</th>`}
          <th scope="col" class="num">${old ? "After" : "Count"}</th>
          ${old && html`<th scope="col" class="num">Change</th>`}</tr></thead>
        <tbody>${events.map((each, i) => html`<tr class=${i === event ? "chosen" : ""}>
          <td><button class="linkish" onClick=${() => go({ event: i })}>${each.name}</button>
            <div class="soft">${each.description}</div></td>
          ${old && html`<td class="num">${whole(each.old)}</td>`}
          <td class="num">${whole(each.total)}</td>
          ${old && html`<td class=${"num " + worseOrBetter(each.total - each.old)}>
            ${signed(each.total - each.old)}<div>${change(each.total, each.old)}</div></td>`}
        </tr>`)}</tbody></table></div></section>
      </div>
    </div>`;
  }

  // --- Functions

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

  // --- Sources

  // The counts of each line with its functions, and the rows to show: lines and gaps.
  function sourceRows(source, events) {
    const lines = new Map();
    source.lines.forEach((line, i) => {
      const known = lines.get(line) || { counts: new Array(events).fill(0), functions: [] };
      for (let event = 0; event < events; ++event) known.counts[event] += source.counts[event][i];
      known.functions.push(source.functions[i]);
      lines.set(line, known);
    });
    const rows = [];
    const shown = new Set();
    if (lines.has(0)) rows.push({ line: 0, text: "(unknown line)", ...lines.get(0) });
    let next = 1;
    for (const [first, texts] of source.pieces || []) {
      if (first > next) rows.push({ gap: true, text: `lines ${next} to ${first - 1} have no counts` });
      texts.forEach((text, i) => {
        rows.push({ line: first + i, text, ...lines.get(first + i) });
        shown.add(first + i);
      });
      next = first + texts.length;
    }
    for (const [line, counted] of [...lines].sort((a, b) => a[0] - b[0])) {
      if (line === 0 || shown.has(line)) continue;
      rows.push({ line, text: source.pieces ? "(past the end of the file)" : "", ...counted });
    }
    return rows;
  }

  function Source({ data, event, place, go, searchRef }) {
    const [all, setAll] = useState(false);
    const [cursor, setCursor] = useState(0);
    const order = useMemo(() => {
      const sums = data.sources.map((source) =>
        source.counts[event].reduce((sum, count) => sum + count, 0));
      return { sums, files: sums.map((_, i) => i).sort((a, b) => sums[b] - sums[a]) };
    }, [event]);
    const index = place.source === null ? order.files[0] : place.source;
    const source = data.sources[index];
    const rows = useMemo(() => sourceRows(source, data.events.length), [index]);
    const hottest = useMemo(() =>
      rows.map((_, i) => i).filter((i) => rows[i].counts && rows[i].counts[event] > 0)
        .sort((a, b) => rows[b].counts[event] - rows[a].counts[event]), [rows, event]);
    useEffect(() => {
      const wanted = rows.findIndex((row) => row.line === place.line && !row.gap);
      setCursor(place.line !== null && wanted >= 0 ? wanted : hottest[0] || 0);
    }, [rows, place.line, place.time]);
    const step = (by) => {
      const rank = hottest.indexOf(cursor);
      const next = rank < 0 ? 0 : rank + by;
      if (next >= 0 && next < hottest.length) setCursor(hottest[next]);
    };
    useEffect(() => {
      const onKey = (e) => {
        if (e.target.closest("input, select") || e.ctrlKey || e.metaKey || e.altKey) return;
        if (e.key === "n") step(1);
        if (e.key === "p") step(-1);
      };
      addEventListener("keydown", onKey);
      return () => removeEventListener("keydown", onKey);
    });
    const narrow = innerWidth <= 640;
    const columns = all ? [event, ...data.events.map((_, i) => i).filter((i) => i !== event)] : [event];
    const most = hottest.length ? rows[hottest[0]].counts[event] : 1;
    const countWidth = narrow ? 92 : 168;
    const longest = rows.reduce((length, row) => Math.max(length, row.text.length), 40);
    const template = `repeat(${columns.length}, ${countWidth}px) 56px minmax(0, 1fr)`;
    const width = `calc(${columns.length * countWidth + 56}px + ${longest + 3}ch)`;
    const head = html`<div class="head" role="row" style=${{ gridTemplateColumns: template, width }}>
      ${columns.map((i) => html`<span role="columnheader" title=${data.events[i].description}>${data.events[i].name}</span>`)}
      <span role="columnheader">Line</span>
      <span role="columnheader">${source.path && source.path !== source.name ? `Source, found at ${source.path}` : "Source"}</span></div>`;
    const functionsOf = (row) => row.functions
      ? [...new Set(row.functions)].map((i) => data.functions.name[i]).filter(Boolean).join(", ") : "";
    const row = (at) => {
      const line = rows[at];
      const style = { top: at * 21 + "px", gridTemplateColumns: template, width: `max(100%, ${width})` };
      if (line.gap)
        return html`<div key=${at} class="row gap" role="row" style=${style}>
          <span style=${{ gridColumn: "1 / -1" }}>${narrow ? "" : "        "}⋯ ${line.text}</span></div>`;
      const heat = line.counts ? Math.sqrt(line.counts[event] / most) * 0.55 : 0;
      return html`<div key=${at} id=${`source-${at}`} role="row" aria-rowindex=${at + 1}
          class=${"row" + (at === cursor ? " cursor" : "")} title=${functionsOf(line)}
          onClick=${() => setCursor(at)}
          style=${heat ? { ...style, background: `rgba(var(--heat), ${heat})` } : style}>
        ${columns.map((i) => html`<span class="count" role="gridcell">${line.counts && line.counts[i]
          ? whole(line.counts[i]) + (narrow || all ? "" : "  " + percent(line.counts[i], data.events[i].total).padStart(7)) : ""}</span>`)}
        <span class="number" role="rowheader">${line.line || "?"}</span>
        <span class="text" role="gridcell">${line.text || (source.pieces ? "" : functionsOf(line))}</span>
      </div>`;
    };
    return html`<div class="tools">
        <select aria-label="Source file" ref=${searchRef} value=${index} style=${{ flex: "1 1 260px" }}
            onChange=${(e) => go({ place: { source: Number(e.target.value), line: null, time: Date.now() } })}>
          ${order.files.map((i) => html`<option value=${i}>${percent(order.sums[i],
            data.events[event].total).padStart(8, "\u2007")}  ${data.sources[i].name}</option>`)}</select>
        <button onClick=${() => step(-1)}>◀ Hotter</button>
        <button onClick=${() => step(1)}>Cooler ▶</button>
        <label class="field"><input type="checkbox" checked=${all}
          onChange=${(e) => setAll(e.target.checked)} /> All events</label>
      </div>
      ${!source.pieces && html`<p class="soft">The source is not in this report: ${source.name === "???"
        ? "there is no debug information for this code." : "it was not found when the report was made; --include=DIR looks below DIR."}</p>`}
      <${VirtualList} count=${rows.length} height=${21} headHeight=${28} head=${head} row=${row}
        kind="source" label=${"Source of " + source.name} role="grid" cursor=${cursor}
        setCursor=${setCursor} width=${width} />`;
  }

  // --- Flame graph

  function hue(name) {
    let hash = 0;
    for (let i = 0; i < name.length; ++i) hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
    return 18 + (hash % 38);
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

  function FlameGraph({ data, event, openFunctionNamed, searchRef, go }) {
    const { flame } = data;
    const column = Math.max(0, flame.events.indexOf(event));
    const shown = flame.events[column];
    const counts = flame.counts[column];
    const total = counts[0];
    const [focus, setFocus] = useState(0);
    const [cursor, setCursor] = useState(0);
    const [query, setQuery] = useState("");
    const area = useRef();
    const size = useSize(area);
    const children = useMemo(() => {
      const lists = flame.parent.map(() => []);
      for (let i = 1; i < flame.parent.length; ++i)
        if (counts[i] > 0) lists[flame.parent[i]].push(i);
      for (const list of lists) list.sort((a, b) => counts[b] - counts[a]);
      return lists;
    }, [column]);
    useEffect(() => { setFocus(0); setCursor(0); }, [column]);
    const frames = useMemo(() => flameLayout(flame, children, counts, focus, size.width - 8),
                           [children, focus, size.width]);
    const matches = useMemo(() => (query.trim() ? matcher(query) : null), [query]);
    const matched = useMemo(() => {
      if (!matches) return 0;
      let sum = 0;  // of outermost matches only: what is in one is part of it
      const walk = [0];
      while (walk.length) {
        const i = walk.pop();
        if (i !== 0 && matches(flame.name[i])) sum += counts[i];
        else walk.push(...children[i]);
      }
      return sum;
    }, [matches, children]);
    const name = (i) => (i === 0 ? "all" : flame.name[i] +
      (flame.handler[i] ? " (signal handler)" : flame.inlined[i] ? " (inlined)" : ""));
    const own = (i) => counts[i] - children[i].reduce((sum, child) => sum + counts[child], 0);
    const zoom = (i) => { setFocus(i); setCursor(i); };
    const onKeyDown = (e) => {
      const siblings = cursor === 0 ? [0] : children[flame.parent[cursor]];
      const at = siblings.indexOf(cursor);
      const targets = {
        ArrowUp: flame.parent[cursor], ArrowDown: children[cursor][0],
        ArrowLeft: siblings[at - 1], ArrowRight: siblings[at + 1], Home: 0,
      };
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
        ${matches && html`<span role="status">${percent(matched, total)} matched</span>`}
      </div>
      ${shown !== event && html`<p class="soft">${data.events[event].name} is not counted by call stack;
        this is ${flame.events.map((i, n) => html`${n > 0 ? ", " : ""}${i === shown ? data.events[i].name
          : html`<button class="linkish" onClick=${() => go({ event: i })}>${data.events[i].name}</button>`}`)}.</p>`}
      <div class="panel flame" ref=${area} tabindex="0" role="tree" onKeyDown=${onKeyDown}
          aria-label=${"Flame graph of " + data.events[shown].name} aria-activedescendant=${`frame-${cursor}`}>
        <div style=${{ height: (depth + 1) * 20 + 8 + "px" }}></div>
        ${frames.map((frame) => html`<div key=${frame.index} id=${`frame-${frame.index}`} role="treeitem"
            aria-level=${frame.depth + 1} aria-label=${`${name(frame.index)}, ${percent(counts[frame.index], total)}`}
            class=${"frame" + (frame.index === cursor ? " cursor" : "") + (frame.above ? " above" : "") +
              (frame.width < 24 ? " narrow" : "") + (matches && !matches(name(frame.index)) ? " faded" : "")}
            style=${{ left: frame.left + 4 + "px", width: Math.max(0.5, frame.width - 1) + "px",
              top: frame.depth * 20 + 4 + "px",
              background: `hsl(${hue(name(frame.index))} 85% ${frame.index === 0 ? 80 : 68}%)` }}
            title=${`${name(frame.index)}: ${whole(counts[frame.index])} (${percent(counts[frame.index], total)})`}
            onMouseEnter=${() => setCursor(frame.index)} onClick=${() => zoom(frame.index)}>${
              frame.width < 24 ? "" : name(frame.index)}</div>`)}
      </div>
      <div class="status" role="status"><b>${name(cursor)}</b> ${whole(counts[cursor])} ${data.events[shown].name}
        ${" "}(${percent(counts[cursor], total)}), of which itself ${whole(own(cursor))} (${percent(own(cursor), total)})</div>`;
  }

  // --- Cache lines: how much of what was fetched was used

  // From wasted to used; the lightness changes too, for those who do not tell the hues apart.
  const usedColor = (share) => `hsl(${12 + share * 130} 60% ${72 - share * 36}%)`;

  function CacheLines({ data, readEvent, usedEvent, openFunction, go }) {
    const read = data.functions.counts[readEvent];
    const used = data.functions.counts[usedEvent];
    const total = data.events[readEvent].total;
    const hottest = useMemo(() => read.map((_, i) => i).filter((i) => read[i] > 0)
      .sort((a, b) => read[b] - read[a]).slice(0, 25), []);
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
        <div class="legend"><span><i style=${{ background: "var(--used)" }}></i>used</span>
          <span><i style=${{ background: "var(--waste)" }}></i>fetched for nothing</span></div>
        <div class="cacheline" style=${{ marginTop: ".7rem" }}>${hottest.map((i) => html`<div>
          <div class="label"><button class="linkish" onClick=${() => openFunction(i)}>${data.functions.name[i]}</button>
            <span class="num">${whole(read[i])} bytes, ${percent(used[i], read[i])} used</span></div>
          <div class="strip"><i style=${{ width: (used[i] / read[i]) * 100 + "%" }}></i></div></div>`)}</div>
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

  // --- Values

  function Values({ data, searchRef, go }) {
    const [query, setQuery] = useState("");
    const [most, setMost] = useState(40);
    const lists = useMemo(() => {
      const matches = matcher(query);
      return data.values.filter((each) => matches(`${each.list} ${each.function} ${each.file} ${each.address}`));
    }, [query]);
    const sourceOf = (each) => data.sources.findIndex((source) => source.name === each.file);
    return html`<div class="tools"><input type="search" ref=${searchRef} value=${query}
          placeholder="Search lists, functions, files" aria-label="Search lists of values"
          onInput=${(e) => setQuery(e.target.value)} />
        <span class="soft" role="status">${whole(lists.length)} instructions with values</span></div>
      <div class="values">${lists.slice(0, most).map((each) => {
        const at = sourceOf(each);
        return html`<section class="panel"><div class="label">
          <b class="num">${each.function}</b> <button class="linkish" disabled=${at < 0} onClick=${() =>
            go({ tab: "source", place: { source: at, line: each.line, time: Date.now() } })}>${fileName(each.file)}:${each.line}</button>
          <div class="soft">${each.list}: ${whole(each.total)} values at ${each.address} in ${fileName(each.object)}${each.error
            ? `; up to ${whole(each.error)} more of each` : ""}</div></div>
          <ol class="bars">${each.values.slice(0, 12).map(([value, count]) => html`<li><code>${value}${BigInt(value) < 2n ** 53n
            ? ` = ${whole(Number(value))}` : ""}</code>
            <div class="track"><i style=${{ width: (count / each.total) * 100 + "%" }}></i></div>
            <span class="num">${whole(count)} <span class="soft">${percent(count, each.total)}</span></span></li>`)}</ol>
        </section>`; })}</div>
      ${lists.length > most && html`<p><button onClick=${() => setMost(most + 100)}>Show more</button></p>`}`;
  }

  // --- Phases

  const phaseColor = (i) => `hsl(${(i * 137.5 + 210) % 360} 55% ${i % 2 ? 46 : 60}%)`;

  function Phases({ data }) {
    const { instructions, phases, points } = data.phases;
    const count = instructions.length;
    const buckets = Math.min(count, 1000);
    const strip = [];  // runs of intervals that look the same at this width
    for (let i = 0; i < buckets; ++i) {
      const first = Math.floor((i * count) / buckets), end = Math.floor(((i + 1) * count) / buckets);
      const votes = new Map();
      for (let at = first; at < end; ++at)
        votes.set(phases[at], (votes.get(phases[at]) || 0) + 1);
      const phase = [...votes].sort((a, b) => b[1] - a[1])[0][0];
      const last = strip[strip.length - 1];
      if (last && last.phase === phase) last.end = i + 1;
      else strip.push({ phase, begin: i, end: i + 1 });
    }
    const x = (interval) => ((interval + 0.5) / count) * 1000;
    return html`<section class="panel"><h2>Phases of the run</h2>
      <p class="soft">${whole(count)} intervals of about ${whole(Math.max(...instructions.slice(0, 1000)))} instructions, from left to
        right.${points.length ? " Intervals of one colour execute the same code; a mark is the one that SimPoint chose for its phase."
          : " Name SimPoint's choice with --simpoints to see which resemble each other."}</p>
      <svg class="phase-strip" viewBox="0 0 1000 84" preserveAspectRatio="none" role="img"
          aria-label=${`${points.length} phases`}>
        ${strip.map(({ phase, begin, end }) => html`<rect x=${(begin / buckets) * 1000} y="22"
          width=${((end - begin) / buckets) * 1000} height="56" shape-rendering="crispEdges" fill=${phase === undefined ? "var(--soft)" : phaseColor(phase)} />`)}
        ${points.map((point) => html`<path d=${`M${x(point.interval) - 6} 4 h12 l-6 14 z`} fill="currentColor">
          <title>interval ${point.interval}</title></path>`)}
      </svg>
      <div class="scroll-x"><table class="plain"><thead><tr><th scope="col">Phase</th><th scope="col" class="num">Simulation point</th>
        <th scope="col" class="num">Intervals</th><th scope="col" class="num">Weight</th></tr></thead>
      <tbody>${points.map((point, i) => html`<tr><td><span class="legend"><span><i style=${{ background: phaseColor(i) }}></i>${point.cluster}</span></span></td>
        <td class="num">${whole(point.interval)}</td><td class="num">${whole(phases.filter((p) => p === i).length)}</td>
        <td class="num">${percent(point.weight, 1)}</td></tr>`)}</tbody></table></div></section>`;
  }

  // --- The page

  function tabsOf(data) {
    const index = (name) => data.events.findIndex((event) => event.name === name);
    const fetched = index("ReadB") >= 0 && index("UsedB") >= 0;
    return [
      ["overview", "Overview", true], ["functions", "Functions", true],
      ["source", "Source", data.sources.length > 0],
      ["flame", "Flame graph", data.flame.events.length > 0],
      ["lines", "Cache lines", fetched && data.events[index("ReadB")].total > 0],
      ["values", "Values", data.values.length > 0], ["phases", "Phases", data.phases !== null],
    ].filter(([, , available]) => available);
  }

  function stateOfLocation(data, tabs) {
    const [tab, name] = decodeURIComponent(location.hash.slice(1)).split("/");
    const event = data.events.findIndex((each) => each.name === name);
    return { tab: tabs.some(([id]) => id === tab) ? tab : "overview", event: Math.max(0, event),
             place: { source: null, line: null, time: 0 } };
  }

  function App({ data }) {
    const tabs = useMemo(() => tabsOf(data), []);
    const [state, setState] = useState(() => stateOfLocation(data, tabs));
    const { tab, event, place } = state;
    const searchRef = useRef();
    const go = (change) => setState((before) => ({ ...before, ...change }));
    useEffect(() => {
      history.replaceState(null, "", `#${tab}/${data.events[event].name}`);
      document.getElementById("tab-" + tab).scrollIntoView({ block: "nearest", inline: "nearest" });
    }, [tab, event]);

    // The hottest line of a function, in the chosen event or else in any.
    const openFunction = (index) => {
      let best = null;
      data.sources.forEach((source, at) => source.functions.forEach((owner, i) => {
        if (owner !== index) return;
        const weight = source.counts[event][i] + 1e-9 * (source.lines[i] > 0);
        if (!best || weight > best.weight) best = { weight, source: at, line: source.lines[i] };
      }));
      if (best) go({ tab: "source", place: { source: best.source, line: best.line, time: Date.now() } });
    };
    const openFunctionNamed = (name) => {
      const counts = data.functions.counts[event];
      let best = -1;
      data.functions.name.forEach((each, i) => {
        if (each === name && (best < 0 || counts[i] > counts[best])) best = i;
      });
      if (best >= 0) openFunction(best);
    };
    useEffect(() => {
      const onKey = (e) => {
        if (e.target.closest("input, select, textarea") || e.ctrlKey || e.metaKey || e.altKey) return;
        const number = Number(e.key);
        if (number >= 1 && number <= tabs.length) go({ tab: tabs[number - 1][0] });
        else if (e.key === "/" && searchRef.current) searchRef.current.focus();
        else if (e.key === "]") go({ event: (event + 1) % data.events.length });
        else if (e.key === "[") go({ event: (event + data.events.length - 1) % data.events.length });
        else return;
        e.preventDefault();
      };
      addEventListener("keydown", onKey);
      return () => removeEventListener("keydown", onKey);
    });
    const onTabKey = (e) => {
      const at = tabs.findIndex(([id]) => id === tab);
      const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[e.key];
      if (next === undefined) return;
      const id = tabs[(next + tabs.length) % tabs.length][0];
      go({ tab: id });
      document.getElementById("tab-" + id).focus();
      e.preventDefault();
    };
    const index = (name) => data.events.findIndex((each) => each.name === name);
    const views = {
      overview: () => html`<${Overview} data=${data} event=${event} go=${go} openFunction=${openFunction} />`,
      functions: () => html`<${Functions} data=${data} event=${event} openFunction=${openFunction} searchRef=${searchRef} />`,
      source: () => html`<${Source} data=${data} event=${event} place=${place} go=${go} searchRef=${searchRef} />`,
      flame: () => html`<${FlameGraph} data=${data} event=${event} openFunctionNamed=${openFunctionNamed} searchRef=${searchRef} go=${go} />`,
      lines: () => html`<${CacheLines} data=${data} readEvent=${index("ReadB")} usedEvent=${index("UsedB")} openFunction=${openFunction} go=${go} />`,
      values: () => html`<${Values} data=${data} searchRef=${searchRef} go=${go} />`,
      phases: () => html`<${Phases} data=${data} />`,
    };
    const fixed = ["functions", "source", "flame"].includes(tab);
    return html`<header class="top"><div><h1>${data.commands.join("; ")}</h1>
        <div class="soft">${data.old.length ? `${data.old.join(", ")} → ${data.files.join(", ")}` : data.files.join(", ")}</div></div>
        <label class="field">Event <select value=${event} onChange=${(e) => go({ event: Number(e.target.value) })}>
          ${data.events.map((each, i) => html`<option value=${i}>${each.name}${each.description ? ": " + each.description : ""}</option>`)}
        </select></label></header>
      ${data.incomplete.map((reason) => html`<div class="warning" role="alert">Incomplete, not the counts of a whole run: ${reason}</div>`)}
      <nav role="tablist" aria-label="Views" onKeyDown=${onTabKey}>${tabs.map(([id, title]) => html`<button role="tab"
        id=${"tab-" + id} aria-selected=${id === tab} aria-controls="view" tabindex=${id === tab ? 0 : -1}
        onClick=${() => go({ tab: id })}>${title}</button>`)}</nav>
      <main id="view" role="tabpanel" aria-labelledby=${"tab-" + tab} class=${fixed ? "fixed" : ""}>${views[tab]()}</main>`;
  }

  async function start() {
    const root = document.getElementById("app");
    try {
      const text = atob(document.getElementById("data").textContent);
      const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      const data = await new Response(stream).json();
      root.textContent = "";
      render(html`<${App} data=${data} />`, root);
      document.body.dataset.ready = "yes";
    } catch (error) {
      root.textContent = "This report cannot be shown: " + error.message +
        ". It needs a browser of 2023 or later.";
    }
  }
  start();
})();
