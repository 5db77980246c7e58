// Values.

// Small numbers are read as they are, addresses and patterns of bits in hexadecimal digits; of what
// is in the program or a library, the name comes first.
function valueText(value, name) {
  const number = BigInt(value);
  if (number < 10n) return String(number);
  const text = number < 2n ** 32n ? `${value} = ${whole(Number(number))}` : value;
  return name ? html`${name} <span class="soft">${text}</span>` : text;
}

function Values({ data, searchRef, go }) {
  const [query, setQuery] = useKept("values.query", "");
  const [most, setMost] = useState(40);
  const lists = useMemo(() => {
    const matches = matcher(query);
    return data.values.filter((each) => each.values.length && matches(
      `${each.list} ${each.function} ${each.file} ${each.address} ${each.values.map(([value, , name]) => name || value).join(" ")}`));
  }, [query]);
  const sourceOf = (each) => data.sources.findIndex((source) => source.name === each.file);
  return html`<div class="tools"><input type="search" ref=${searchRef} value=${query}
        placeholder="Search lists, functions, files, values" aria-label="Search lists of values"
        onInput=${(e) => setQuery(e.target.value)} />
      <span class="soft" role="status">${whole(lists.length)} lists of values of instructions${data.old.length ? ", of the new profile" : ""}${
        data.valuesLeftOut ? `; the ${whole(data.values.length)} most frequent of ${
          whole(data.values.length + data.valuesLeftOut)} are in this report` : ""}</span></div>
    <div class="values">${lists.slice(0, most).map((each) => {
      const at = sourceOf(each);
      return html`<section class="panel"><div class="label">
        <b class="function" title=${each.function}>${each.function}</b>
        ${" "}<button class="linkish" disabled=${at < 0} onClick=${() =>
          go({ tab: "source", place: { source: at, line: each.line, time: Date.now() } })}>${fileName(each.file)}:${each.line}</button>
        <div class="soft">${each.list}: ${whole(each.total)} values at ${each.address} in ${fileName(each.object)}${each.error
          ? `; up to ${whole(each.error)} more of each` : ""}</div></div>
        <ol class="bars">${each.values.slice(0, 12).map(([value, count, name]) => html`<li><code title=${name ? `${name}: ${value}` : value}>${valueText(value, name)}</code>
          <div class="track"><i style=${{ width: (count / each.total) * 100 + "%" }}></i></div>
          <span class="num">${whole(count)} <span class="soft">${percent(count, each.total)}</span></span></li>`)}</ol>
      </section>`; })}</div>
    ${lists.length === 0 && html`<p class="soft">No list matches.</p>`}
    ${lists.length > most && html`<p><button onClick=${() => setMost(most + 100)}>Show more</button></p>`}`;
}
