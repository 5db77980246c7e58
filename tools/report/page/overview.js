// Overview: what counts most, the totals, and how the profile was made.

function Hottest({ data, event, openFunction }) {
  const { events } = data;
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
  return html`<section class="panel"><h2>${old ? "What changed most" : "Where it goes"}: ${events[event].name}</h2>
    ${events[event].description && html`<p class="soft">${events[event].description}</p>`}
    <ol class="bars">${hottest.map((i) => html`<li>
      <div class="label"><button class="linkish function"
          title=${`${data.functions.file[i]}: ${data.functions.name[i]}`}
          onClick=${() => openFunction(i)}>${data.functions.name[i]}</button>
        <span class=${"num " + (old ? worseOrBetter(counts[i] - before[i]) : "")}>${old
          ? signed(counts[i] - before[i]) : percent(counts[i], total)}</span></div>
      <div class=${"track " + (!old ? "" : counts[i] > before[i] ? "grown" : "shrunk")}><i style=${{ width: (weight(i) / largest) * 100 + "%" }}></i></div>
    </li>`)}</ol>
    ${hottest.length === 0 && html`<p class="soft">Nothing${old ? " has changed" : ""}.</p>`}
  </section>`;
}

function Figures({ data }) {
  const old = data.old.length > 0;
  return html`<section class="panel"><h2>Figures</h2><table class="plain">
    <tbody>${data.derived.map((each) => html`<tr><td>${each.name}</td>
      ${old && html`<td class="num soft">${figure(each.old, each.unit)}</td>`}
      <td class="num">${figure(each.value, each.unit)}</td></tr>`)}</tbody></table></section>`;
}

function Making({ data }) {
  const old = data.old.length > 0;
  return html`<section class="panel"><h2>How it was made</h2><table class="plain made"><tbody>
    ${data.commands.map((text) => html`<tr><td>Command</td><td><code>${text}</code></td></tr>`)}
    ${data.old.map((text) => html`<tr><td>Before</td><td>${text}</td></tr>`)}
    ${data.files.map((text) => html`<tr><td>${old ? "After" : "File"}</td><td>${text}</td></tr>`)}
    ${data.descriptions.map(([name, text]) => html`<tr><td>${name}</td><td>${text}</td></tr>`)}
  </tbody></table></section>`;
}

function Keys() {
  return html`<section class="panel"><h2>Keyboard</h2><div class="keys">
    <span><kbd>1</kbd> ... <kbd>9</kbd> <kbd>0</kbd></span><span>choose a view</span>
    <span><kbd>[</kbd> <kbd>]</kbd></span><span>previous or next event</span>
    <span><kbd>/</kbd></span><span>search</span>
    <span><kbd>Tab</kbd></span><span>into the list, and on</span>
    <span><kbd>↑</kbd> <kbd>↓</kbd> <kbd>Enter</kbd></span><span>in lists: move, open</span>
    <span><kbd>a</kbd></span><span>in sources: instructions beside them, or not</span>
    <span><kbd>n</kbd> <kbd>p</kbd></span><span>in sources: next cooler or hotter line</span>
    <span><kbd>←</kbd> <kbd>→</kbd> <kbd>Esc</kbd></span><span>in the flame graph: beside, back</span>
  </div></section>`;
}

function Totals({ data, event, go }) {
  const { events } = data;
  const old = data.old.length > 0;
  return html`<section class="panel"><h2>Totals</h2><div class="scroll-x"><table class="plain">
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
    </tr>`)}</tbody></table></div></section>`;
}

function Overview({ data, event, go, openFunction }) {
  return html`${data.summary && html`<${Summary} data=${data} go=${go} />`}
    <div class="columns"><div>
      <${Hottest} data=${data} event=${event} openFunction=${openFunction} />
      ${data.derived.length > 0 && html`<${Figures} data=${data} />`}
      <${Making} data=${data} />
      <${Keys} />
    </div><div><${Totals} data=${data} event=${event} go=${go} /></div>
  </div>`;
}
