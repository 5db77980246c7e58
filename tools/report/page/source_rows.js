// The rows of a source file: its lines with their counts, and what stands between those that are in
// the report. Of a difference, a line of the old version beside the one of the new.

// By line: counts by event, and the functions that they are of.
function countedLines(version, events) {
  const lines = new Map();
  version.lines.forEach((line, i) => {
    const known = lines.get(line) || { counts: new Array(events).fill(0), functions: [] };
    for (let event = 0; event < events; ++event) known.counts[event] += version.counts[event][i];
    known.functions.push(version.functions[i]);
    lines.set(line, known);
  });
  const { callees } = version;
  if (callees) callees.lines.forEach((line, i) => {
    const known = lines.get(line) || { counts: new Array(events).fill(0), functions: [] };
    known.callees = callees.counts.map((column) => column[i]);
    lines.set(line, known);
  });
  return lines;
}

function textsOfPieces(pieces) {
  const texts = new Map();
  for (const [first, lines] of pieces || []) lines.forEach((text, i) => texts.set(first + i, text));
  return texts;
}

// Pairs of line numbers, and whether their texts are the same: all lines of both versions that are
// in the report, in their order.
function linePairs(source) {
  if (!source.pairs) {
    const isOld = !source.pieces && source.oldPieces;
    return [...textsOfPieces(source.pieces || source.oldPieces).keys()]
      .map((line) => (isOld ? { line: null, oldLine: line, same: false }
                            : { line, oldLine: line, same: true }));
  }
  const pairs = [];
  for (const [before, now, count, same] of source.pairs)
    for (let i = 0; i < count; ++i)
      pairs.push({ oldLine: before ? before + i : null, line: now ? now + i : null, same: !!same });
  return pairs;
}

function sourceRows(source, events, isDifference) {
  const now = countedLines(source, events);
  const old = isDifference ? countedLines(source.old, events) : new Map();
  const none = new Array(events).fill(0);
  const texts = textsOfPieces(source.pieces), oldTexts = textsOfPieces(source.oldPieces);
  const shown = new Set(), oldShown = new Set();
  const row = (line, oldLine, more) => {
    const here = now.get(line), before = old.get(oldLine);
    if (line !== null) shown.add(line);
    if (oldLine !== null) oldShown.add(oldLine);
    const counted = here || before;
    return { line, oldLine, ...more,
      ...(counted ? { counts: here ? here.counts : none, old: before ? before.counts : none,
        callees: here ? here.callees : undefined,
        functions: [...(here ? here.functions : []), ...(before ? before.functions : [])] } : {}) };
  };
  const rows = [];
  if (now.has(0) || old.has(0)) rows.push(row(0, 0, { text: "(unknown line)", same: true }));
  let last = 0;  // the last line that was shown, of the version that has one
  const gap = (next) => {
    if (next > last + 1) rows.push({ gap: true, text: next === last + 2
      ? `line ${next - 1} has no counts` : `lines ${last + 1} to ${next - 1} have no counts` });
  };
  for (const { line, oldLine, same } of linePairs(source)) {
    const text = texts.get(line), oldText = oldTexts.get(oldLine);
    if (text === undefined && oldText === undefined) continue;
    const number = line === null ? oldLine : line;
    if (line !== null || !source.pieces) { gap(number); last = number; }
    rows.push(row(line, oldLine, { same, text: text !== undefined ? text : same ? oldText : undefined,
                                   oldText: oldText !== undefined ? oldText : same ? text : undefined }));
  }
  const hasText = source.pieces || source.oldPieces;
  const rest = [...now.keys()].filter((line) => !shown.has(line));
  const oldRest = [...old.keys()].filter((line) => !oldShown.has(line) && !rest.includes(line));
  for (const line of rest.sort((a, b) => a - b))
    rows.push(row(line, oldShown.has(line) ? null : line, { same: true, text: hasText ? "(past the end of the file)" : "" }));
  for (const line of oldRest.sort((a, b) => a - b))
    rows.push(row(null, line, { same: false, text: hasText ? "(past the end of the file)" : "" }));
  return rows;
}

// Where lines differ and there is no room beside one another, the old one stands above the new one,
// which has the counts.
function oneBelowTheOther(rows) {
  return rows.flatMap((row) => (row.gap || row.same || row.line === null || row.oldLine === null ? [row]
    : [{ line: null, oldLine: row.oldLine, oldText: row.oldText, same: false }, row]));
}
