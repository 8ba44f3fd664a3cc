// SPDX-License-Identifier: Apache-2.0
// Charts as SVG elements. All text goes into text nodes, so whatever a member
// sends stays text.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// About `count` round numbers, 1, 2 or 5 times a power of ten apart, that
// enclose the range.
function ticks(least, most, count) {
  const range = most - least;
  if (!(range > 0) || !isFinite(range)) return [least, least + 1];
  const power = 10 ** Math.floor(Math.log10(range / count));
  const spacing = [1, 2, 5, 10].map((factor) => factor * power)
      .find((wide) => wide >= range / count * (1 - 1e-9));
  const first = Math.floor(least / spacing + 1e-9);
  const last = Math.ceil(most / spacing - 1e-9);
  const all = [];
  for (let i = first; i <= last; ++i) all.push(i * spacing);
  return all;
}

function numberText(value) {
  if (value === null || value === undefined) return "not a number";
  if (value !== 0 && Math.abs(value) < 1e-3) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

// Splits points at values that are not a number, since a line has a gap there.
function pieces(points) {
  const all = [[]];
  for (const point of points) {
    if (point[1] === null) all.push([]);
    else all[all.length - 1].push(point);
  }
  return all.filter((piece) => piece.length > 0);
}

// One diverged step must not flatten all others: values above four times the
// first one are drawn at the chart's edge.
function rangeOf(series, limited) {
  const values = series.flatMap((one) => one.points.map((point) => point[1]))
      .filter((value) => value !== null);
  let least = Math.min(...values), most = Math.max(...values);
  if (limited) {
    least = Math.min(0, least);
    most = Math.min(most, 4 * Math.max(values[0], 1e-6));
  }
  if (most > least) return [least, most];
  const beside = Math.abs(least) / 10 || 1;
  return [least - beside, least + beside];
}

// A sentence for each series, for people who cannot see the chart.
function describe(series) {
  return series.map((one) => {
    const known = one.points.filter((point) => point[1] !== null);
    if (known.length === 0) return `${one.name}: no finite value.`;
    const first = known[0], last = known[known.length - 1];
    const low = known.reduce((a, b) => b[1] < a[1] ? b : a);
    const high = known.reduce((a, b) => b[1] > a[1] ? b : a);
    return `${one.name}: ${numberText(first[1])} at step ${first[0]}, ` +
        `${numberText(last[1])} at step ${last[0]}; lowest ` +
        `${numberText(low[1])} at step ${low[0]}, highest ` +
        `${numberText(high[1])} at step ${high[0]}.`;
  }).join(" ");
}

function axes(root, place, steps, values) {
  for (const step of steps) {
    const x = place.x(step);
    if (x > place.right + 1 || x < place.left - 1) continue;
    root.append(
        svg("line", {class: "grid", x1: x, y1: place.top, x2: x, y2: place.bottom}),
        svg("text", {class: "tick", x, y: place.bottom + 16, "text-anchor": "middle"},
            String(step)));
  }
  for (const value of values) {
    const y = place.y(value);
    root.append(
        svg("line", {class: "grid", x1: place.left, y1: y, x2: place.right, y2: y}),
        svg("text", {class: "tick", x: place.left - 6, y: y + 4, "text-anchor": "end"},
            numberText(value)));
  }
  root.append(svg("text", {class: "tick", x: place.right, y: place.bottom + 32,
                           "text-anchor": "end"}, "step"));
}

function placement(width, steps, values) {
  const place = {left: 52, right: width - 20, top: 8, bottom: 200};
  const [first, last] = steps, low = values[0], high = values[values.length - 1];
  place.x = (step) => place.left +
      (place.right - place.left) * (step - first) / Math.max(1, last - first);
  place.y = (value) => place.bottom - (place.bottom - place.top) *
      Math.min(1, Math.max(0, (value - low) / (high - low)));
  return place;
}

function drawSeries(root, place, one) {
  for (const piece of pieces(one.points)) {
    const points = piece.map(
        ([step, value]) => `${place.x(step).toFixed(1)},${place.y(value).toFixed(1)}`);
    root.append(svg("polyline", {class: `line line-${one.style}`, points: points.join(" ")}));
    // An evaluation is a point in time; a line of many points shows none.
    if (piece.length > 40) continue;
    for (const [step, value] of piece) {
      root.append(svg("circle", {class: `dot dot-${one.style}`, r: 2.5,
                                 cx: place.x(step), cy: place.y(value)}));
    }
  }
}

function legend(series) {
  const list = document.createElement("ul");
  list.className = "legend";
  for (const one of series) {
    const item = document.createElement("li");
    item.append(
        svg("svg", {viewBox: "0 0 32 12", "aria-hidden": "true"},
            svg("polyline", {class: `line line-${one.style}`, points: "0,6 32,6"})),
        one.name);
    list.append(item);
  }
  return list;
}

// Fills `container` with a chart of {name, style, points: [[step, value], ...]}.
// range: the first and the last step. `limited`: the scale begins at 0 and is
// limited as in rangeOf.
function drawChart(container, title, series, range, limited, empty) {
  const shown = series.filter((one) => pieces(one.points).length > 0);
  if (shown.length === 0) {
    const note = document.createElement("p");
    note.textContent = empty;
    container.replaceChildren(note);
    return;
  }
  const width = Math.max(240, container.clientWidth);
  const values = ticks(...rangeOf(shown, limited), 5);
  const place = placement(width, range, values);
  const root = svg("svg", {viewBox: `0 0 ${width} 240`, role: "img", "aria-label":
                           `${title}. ${describe(shown)}`});
  axes(root, place, ticks(...range, width < 500 ? 4 : 8), values);
  for (const one of shown) drawSeries(root, place, one);
  container.replaceChildren(root, legend(shown));
}

// A bar of parts, {style, share}, whose shares add up to at most 1.
function drawBar(parts) {
  const root = svg("svg", {viewBox: "0 0 1000 14", preserveAspectRatio: "none",
                           "aria-hidden": "true"});
  let x = 0;
  for (const part of parts) {
    root.append(svg("rect", {class: `fill-${part.style}`, x: 1000 * x, y: 0, height: 14,
                             width: 1000 * part.share}));
    x += part.share;
  }
  return root;
}
