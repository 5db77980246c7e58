// Calls: a function with its callers and callees.

// As many as a list to choose from can have.
const MOST_CHOICES = 500;

// Of the calls whose `from` end is the function: the other end, the number and the counts, the
// largest first.
function callsOf(calls, event, from, to, index) {
  const rows = [];
  calls[from].forEach((end, i) => {
    if (end === index)
      rows.push({ index: calls[to][i], number: calls.number[i], count: calls.counts[event][i] });
  });
  return rows.sort((a, b) => b.count - a.count);
}

function CallRows({ data, event, title, rows, none, choose }) {
  const { name, file } = data.calls;
  const outside = name.length - 1;
  return html`<section class="panel"><h2>${title}</h2><div class="scroll-x"><table class="plain counts">
    <tbody>${rows.map((row) => html`<tr><td class="num">${whole(row.count)}</td>
      <td class="num soft">${percent(row.count, data.events[event].total)}</td>
      <td class="wide">${row.index === outside ? name[outside] : html`<button class="linkish function"
        title=${`${file[row.index]}: ${name[row.index]}`}
        onClick=${() => choose(row.index)}>${name[row.index]}</button>`}
        ${row.number > 0 && html` <span class="soft">${whole(row.number)} ×</span>`}</td></tr>`)}</tbody>
  </table></div>${rows.length === 0 && html`<p class="soft">${none}</p>`}</section>`;
}

function Calls({ data, event, openFunctionNamed, searchRef }) {
  const { calls } = data;
  const [query, setQuery] = useKept("calls.query", "");
  const [chosen, setChosen] = useKept("calls.chosen", null);
  const inclusive = calls.inclusive[event];
  const choices = useMemo(() => {
    const matches = matcher(query);
    const found = [];
    for (let i = 0; i + 1 < calls.name.length; ++i)
      if (matches(calls.name[i] + " " + calls.file[i])) found.push(i);
    return found.sort((a, b) => inclusive[b] - inclusive[a]).slice(0, MOST_CHOICES);
  }, [event, query]);
  const index = chosen !== null && (!query || choices.includes(chosen)) ? chosen : choices[0];
  const total = data.events[event].total;
  const choose = (i) => { setQuery(""); setChosen(i); };
  const tools = html`<div class="tools">
      <input type="search" ref=${searchRef} placeholder="Search functions and files"
        aria-label="Search functions and files" value=${query}
        onInput=${(e) => setQuery(e.target.value)} />
      <select aria-label="Function" value=${index} style=${{ flex: "1 1 260px" }}
          onChange=${(e) => setChosen(Number(e.target.value))}>
        ${(choices.includes(index) || index === undefined ? choices : [index, ...choices]).map((i) =>
          html`<option value=${i}>${percent(inclusive[i], total).padStart(8, "\u2007")}  ${calls.name[i]}</option>`)}
      </select></div>`;
  if (index === undefined) return html`${tools}<p class="soft">There is no such function.</p>`;
  return html`${tools}
    <section class="panel"><h2>${calls.name[index]}</h2><table class="plain counts"><tbody>
      <tr><td class="num">${whole(inclusive[index])}</td>
        <td class="num soft">${percent(inclusive[index], total)}</td><td class="wide">with all that it calls</td></tr>
      <tr><td class="num">${whole(calls.exclusive[event][index])}</td>
        <td class="num soft">${percent(calls.exclusive[event][index], total)}</td>
        <td class="wide">itself, in <button class="linkish" title=${calls.file[index]}
          onClick=${() => openFunctionNamed(calls.name[index])}>${fileName(calls.file[index])}</button></td></tr>
    </tbody></table></section>
    <div class="columns"><div><${CallRows} data=${data} event=${event} title="Callers" choose=${choose}
        rows=${callsOf(calls, event, "callee", "caller", index)} none="None is known." /></div>
      <div><${CallRows} data=${data} event=${event} title="Callees" choose=${choose}
        rows=${callsOf(calls, event, "caller", "callee", index)} none="It calls nothing that counts." /></div></div>`;
}
