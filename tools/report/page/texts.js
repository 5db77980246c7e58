// Numbers and texts as all views show them, and what all are made with.

const { h, render } = preact;
const { useState, useMemo, useRef, useEffect, useLayoutEffect } = preactHooks;
const html = htm.bind(h);

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
const shortened = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
const fileName = (path) => path.slice(path.lastIndexOf("/") + 1);
// Heat of a count; of a change, in the colour of its sign.
const heatColor = (change, heat) =>
  `rgba(var(${change === null ? "--heat" : change > 0 ? "--grown" : "--shrunk"}), ${heat})`;
const worseOrBetter = (n) => (n > 0 ? "worse" : n < 0 ? "better" : "");

// All words of `query` occur in `text`, in any case.
function matcher(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return (text) => {
    const lower = text.toLowerCase();
    return words.every((word) => lower.includes(word));
  };
}
