// Phases.

const phaseColor = (i) => `hsl(${(i * 137.5 + 210) % 360} 55% ${i % 2 ? 46 : 60}%)`;

function Phases({ data }) {
  const { instructions, phases, points, labelled } = data.phases;
  const count = instructions.length;
  const leftOut = phases.filter((phase) => phase === points.length).length;
  const color = (phase) => (phase < points.length ? phaseColor(phase) : "var(--soft)");
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
      right. ${points.length === 0
        ? "Name SimPoint's choice with --simpoints to see which resemble each other." : labelled
        ? "Intervals of one colour are one phase; a mark is the one that stands for it."
        : `Intervals have the colour of the simulation point, at a mark, that they resemble most. SimPoint
           may have put some into another phase, and weighed phases so: --labels says where.`}</p>
    <svg class="phase-strip" viewBox="0 0 1000 84" preserveAspectRatio="none" role="img"
        aria-label=${`${points.length} phases`}>
      ${strip.map(({ phase, begin, end }) => html`<rect x=${(begin / buckets) * 1000} y="22"
        width=${((end - begin) / buckets) * 1000} height="56" shape-rendering="crispEdges"
        fill=${color(phase)} />`)}
      ${points.map((point) => html`<path d=${`M${x(point.interval) - 6} 4 h12 l-6 14 z`} fill="currentColor">
        <title>interval ${point.interval}</title></path>`)}
    </svg>
    <div class="scroll-x"><table class="plain"><thead><tr><th scope="col">Phase</th><th scope="col" class="num">Simulation point</th>
      <th scope="col" class="num">Intervals</th><th scope="col" class="num">Weight</th></tr></thead>
    <tbody>${points.map((point, i) => html`<tr><td><span class="legend"><span><i style=${{ background: phaseColor(i) }}></i>${point.cluster}</span></span></td>
      <td class="num">${whole(point.interval)}</td><td class="num">${whole(phases.filter((p) => p === i).length)}</td>
      <td class="num">${percent(point.weight, 1)}</td></tr>`)}
      ${leftOut > 0 && html`<tr><td><span class="legend"><span>
        <i style=${{ background: "var(--soft)" }}></i>others</span></span></td>
      <td class="num">none</td><td class="num">${whole(leftOut)}</td><td class="num"></td></tr>`}
    </tbody></table></div></section>`;
}
