// The plots of a sweep: an event or a figure over the values of one option, a line for each
// combination of the others.
'use strict';
(() => {
const sweep = JSON.parse(document.getElementById('data').textContent);
const app = document.getElementById('app');
const columns = [...sweep.events.map(event => ({...event, of: 'counts'})),
                 ...sweep.derived.map(figure => ({...figure, of: 'derived'}))];
const MOST_SERIES = 48;
const SHAPES = ['', '7 4', '2 3', '9 3 2 3'];  // dash patterns, used after all colours
const COLORS = 8;

// --- Elements and texts

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  return fill(made, attributes, children);
}
function drawn(name, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
}
function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes))
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Counts as people read them on an axis: 1.5M.
function short(value, unit) {
  if (unit === '%') return `${+(value * 100).toPrecision(4)} %`;
  for (const [size, letter] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']])
    if (Math.abs(value) >= size) return `${+(value / size).toPrecision(4)}${letter}`;
  return `${+value.toPrecision(4)}`;
}
function whole(value, unit) {
  if (value === undefined || value === null) return '-';
  if (unit === '%') return `${(value * 100).toFixed(2)} %`;
  return Number.isInteger(value) ? value.toLocaleString('en-US') : value.toFixed(3);
}
const valueOf = (point, column) => point.finished ? point[column.of][column.name] : undefined;

// --- Axes

// True if the values are all different sizes, which get a logarithmic axis.
function hasSizes(option) {
  return option.sizes.length > 0 && new Set(option.sizes).size === option.sizes.length;
}
// The varying field of a value: 32K from 32K,8,64.
function fieldOf(option, value) {
  const fields = option.values.map(each => each.split(','));
  const index = fields[0].findIndex((field, i) => fields.some(each => each[i] !== field));
  return option.sizes.length && index >= 0 ? value.split(',')[index] : value;
}
function ticksOf(low, high, logarithmic) {
  const ticks = [];
  if (logarithmic) {
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power)
      for (const digit of high / low > 1e3 ? [1] : [1, 2, 5]) ticks.push(digit * 10 ** power);
    return ticks.filter(tick => tick >= low && tick <= high);
  }
  const rough = (high - low) / 5 || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find(digit => digit * power >= rough) || 10);
  for (let tick = Math.ceil(low / step) * step; tick <= high + step / 1e6; tick += step) ticks.push(tick);
  return ticks;
}

// --- Series

// The finished points, grouped by the values of all options except the one on the axis.
function seriesOf(option, column) {
  const all = new Map();
  const others = sweep.options.filter(each => each !== option);
  for (const point of sweep.points) {
    const value = valueOf(point, column);
    if (value === undefined || value === null) continue;
    const name = others.map(each => `${each.name}=${point.options[each.name]}`).join('  ');
    if (!all.has(name)) all.set(name, []);
    const index = option ? option.values.indexOf(point.options[option.name]) : 0;
    all.get(name).push({point, value, index, size: option && hasSizes(option) ? option.sizes[index] : index});
  }
  return [...all].map(([name, points], i) => ({
    name: name || column.name, points: points.sort((a, b) => a.size - b.size),
    color: `var(--s${i % COLORS})`, dashes: SHAPES[Math.floor(i / COLORS) % SHAPES.length]}));
}

// --- The page

// How much the points differ, from 0 to 1.
function spread(column) {
  const values = sweep.points.map(point => valueOf(point, column)).filter(value => value !== undefined);
  const high = values.reduce((a, b) => Math.max(a, b), 0);
  return high > 0 ? 1 - values.reduce((a, b) => Math.min(a, b), high) / high : 0;
}

const state = {column: [...columns].sort((a, b) => spread(b) - spread(a))[0],
               option: [...sweep.options].sort((a, b) => hasSizes(b) - hasSizes(a))[0] || null,
               logarithmic: false};
const plot = element('div', {class: 'panel'});
const status = element('p', {class: 'status soft', 'aria-live': 'polite'});

function draw() {
  const {column, option} = state;
  if (!column || !option) {
    plot.replaceChildren(element('p', {}, column ? 'No option has several values: there is nothing to plot.'
                                                 : 'No point is finished: there is nothing to plot.'));
    return;
  }
  const all = seriesOf(option, column), shown = all.slice(0, MOST_SERIES);
  const points = shown.flatMap(series => series.points);
  const isNarrow = plot.clientWidth < 600;
  const width = Math.max(280, plot.clientWidth - (isNarrow ? 26 : 34)), height = isNarrow ? 300 : 420;
  const left = 66, right = 16, top = 12, bottom = 44;
  const sizes = hasSizes(option), log = state.logarithmic && points.every(point => point.value > 0);
  const values = points.map(point => point.value);
  const lowest = values.reduce((a, b) => Math.min(a, b), Infinity);
  const highest = values.reduce((a, b) => Math.max(a, b), 0);
  const low = log ? lowest / 1.1 : Math.min(0, lowest), high = (log ? highest * 1.1 : highest * 1.04) || 1;
  const onX = size => sizes ? Math.log2(size) : size;
  const ends = option.values.map((_, i) => onX(sizes ? option.sizes[i] : i));
  const first = Math.min(...ends), last = Math.max(...ends);
  const x = size => left + 14 + (onX(size) - first) / (last - first || 1) * (width - left - right - 28);
  const onY = value => log ? Math.log(value) : value;
  const y = value => height - bottom - (onY(value) - onY(low)) / (onY(high) - onY(low)) * (height - top - bottom);
  const svg = drawn('svg', {class: 'plot', viewBox: `0 0 ${width} ${height}`, role: 'group',
                            'aria-label': `${column.name} by ${option.name}`});
  for (const tick of ticksOf(low, high, log)) {
    svg.append(drawn('line', {class: 'grid', x1: left, x2: width - right, y1: y(tick), y2: y(tick)}),
               drawn('text', {x: left - 8, y: y(tick) + 4, 'text-anchor': 'end'}, short(tick, column.unit)));
  }
  svg.append(drawn('line', {class: 'axis', x1: left, x2: width - right, y1: height - bottom, y2: height - bottom}));
  let free = -Infinity;  // where the next label has room
  const order = option.values.map((value, i) => ({value, at: x(sizes ? option.sizes[i] : i)}));
  for (const {value, at} of order.sort((a, b) => a.at - b.at)) {
    const label = fieldOf(option, value), half = label.length * 3.6 + 4;
    svg.append(drawn('line', {class: 'axis', x1: at, x2: at, y1: height - bottom, y2: height - bottom + 5}));
    const middle = Math.min(at, width - half);
    if (middle - half < free) continue;
    svg.append(drawn('text', {x: middle, y: height - bottom + 20, 'text-anchor': 'middle'}, label));
    free = middle + half;
  }
  svg.append(drawn('text', {x: (left + width) / 2, y: height - 6, 'text-anchor': 'middle'}, option.name));
  for (const series of shown) {
    const line = series.points.map(point => `${x(point.size).toFixed(1)},${y(point.value).toFixed(1)}`);
    svg.append(drawn('polyline', {class: 'series', points: line.join(' '), style: `stroke: ${series.color}`,
                                  'stroke-dasharray': series.dashes}));
    for (const point of series.points) {
      const text = `${column.name} ${whole(point.value, column.unit)}: ` +
        sweep.options.map(each => `${each.name}=${point.point.options[each.name]}`).join(' ');
      const tell = () => { status.textContent = text; };
      svg.append(drawn('circle', {cx: x(point.size), cy: y(point.value), r: isNarrow ? 4 : 4.5, tabindex: 0, role: 'img',
                                  'aria-label': text, style: `fill: ${series.color}`, onmouseenter: tell,
                                  onfocus: tell, onclick: tell}, drawn('title', {}, text)));
    }
  }
  const legend = element('div', {class: 'legend'}, ...shown.map(series => element('span', {},
    drawn('svg', {width: 26, height: 10, 'aria-hidden': 'true'},
          drawn('line', {x1: 0, x2: 26, y1: 5, y2: 5, 'stroke-width': 2.5, 'stroke-dasharray': series.dashes,
                         style: `stroke: ${series.color}`})),
    series.name)));
  status.textContent = column.description || (column.formula ? `${column.name} = ${column.formula}` : '');
  plot.replaceChildren(svg, status, legend);
  if (all.length > shown.length)
    plot.append(element('p', {class: 'soft'}, `${all.length - shown.length} more lines are not drawn; the table has them.`));
}

function choice(label, names, chosen, change) {
  return element('label', {}, label, element('select', {onchange: event => { change(event.target.selectedIndex); draw(); }},
    ...names.map((name, i) => element('option', i === chosen ? {selected: ''} : {}, name))));
}

function tools() {
  const box = element('input', {type: 'checkbox', onchange: event => { state.logarithmic = event.target.checked; draw(); }});
  return element('div', {class: 'tools'},
    choice('Show', columns.map(column => column.name), columns.indexOf(state.column),
           i => { state.column = columns[i]; }),
    choice('over', sweep.options.map(option => option.name), sweep.options.indexOf(state.option),
           i => { state.option = sweep.options[i]; }),
    element('label', {}, box, 'logarithmic'));
}

function table() {
  const head = element('tr', {}, element('th', {}, 'point'),
    ...sweep.options.map(option => element('th', {}, option.name)),
    ...columns.map(column => element('th', {class: 'num'}, column.name)));
  const rows = sweep.points.map(point => element('tr', {}, element('td', {}, `${point.number}`),
    ...sweep.options.map(option => element('td', {class: 'value'}, point.options[option.name])),
    ...columns.map(column => element('td', {class: 'num'}, whole(valueOf(point, column), column.unit)))));
  return element('div', {class: 'panel scroll-x', tabindex: 0, role: 'region', 'aria-label': 'All points'},
                 element('table', {class: 'plain'}, head, ...rows));
}

const missing = sweep.points.filter(point => !point.finished).length;
if (missing) app.append(element('p', {class: 'warning'}, `${missing} of ${sweep.points.length} points are not finished.`));
if (columns.length && sweep.options.length) app.append(tools());
app.append(plot, table());
draw();
addEventListener('resize', draw);
document.body.dataset.ready = 'yes';
})();
