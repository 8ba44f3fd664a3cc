// SPDX-License-Identifier: Apache-2.0
// Tables and lists that are changed in place, so that focus, selection and
// scrolling stay where they are.

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Makes `parent` have exactly `count` children of this tag.
function sizeTo(parent, tag, count) {
  while (parent.children.length > count) parent.lastElementChild.remove();
  while (parent.children.length < count) parent.append(document.createElement(tag));
}

// columns: {name, className?}; rows: arrays of texts, of {text, className} or of
// {node}. The first cell of each row is its header.
function fillTable(table, columns, rows) {
  const head = table.tHead;
  if (head.rows.length === 0) {
    const row = head.insertRow();
    for (const column of columns) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.className = column.className || "";
      cell.textContent = column.name;
      row.append(cell);
    }
  }
  const body = table.tBodies[0];
  sizeTo(body, "tr", rows.length);
  rows.forEach((cells, r) => fillRow(body.rows[r], columns, cells));
}

function fillRow(row, columns, cells) {
  cells.forEach((cell, c) => {
    if (!row.cells[c]) {
      const made = document.createElement(c === 0 ? "th" : "td");
      if (c === 0) made.scope = "row";
      row.append(made);
    }
    const element = row.cells[c];
    const value = typeof cell === "object" ? cell : {text: String(cell)};
    const name = [columns[c].className, value.className].filter(Boolean).join(" ");
    if (element.className !== name) element.className = name;
    if (value.node) element.replaceChildren(value.node);
    else setText(element, value.text);
  });
}

// pairs: [term, text, className?].
function fillFigures(list, pairs) {
  sizeTo(list, "div", pairs.length);
  pairs.forEach(([term, text, className], i) => {
    const group = list.children[i];
    if (group.children.length === 0) {
      group.append(document.createElement("dt"), document.createElement("dd"));
    }
    if (group.className !== (className || "")) group.className = className || "";
    setText(group.children[0], term);
    setText(group.children[1], text);
  });
}

// A small table of at most `most` points of each series.
function fillCurveTable(container, title, series, most) {
  const steps = [...new Set(series.flatMap((one) => one.points.map((point) => point[0])))]
      .sort((a, b) => a - b);
  const picked = steps.length <= most ? steps : Array.from({length: most},
      (unused, i) => steps[Math.round(i * (steps.length - 1) / (most - 1))]);
  let table = container.querySelector("table");
  if (!table || table.dataset.series !== series.map((one) => one.name).join()) {
    table = document.createElement("table");
    table.dataset.series = series.map((one) => one.name).join();
    table.createCaption().textContent = title;
    table.createTHead();
    table.createTBody();
    container.replaceChildren(table);
  }
  fillTable(table, [{name: "step"}, ...series], picked.map((step) => [
    step, ...series.map((one) => {
      const point = one.points.find((known) => known[0] === step);
      return point ? numberText(point[1]) : "";
    })]));
}

function countText(value) {
  if (!isFinite(value)) return "unknown";
  for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= size) return `${Number((value / size).toPrecision(3))}${letter}`;
  }
  return String(Number(value.toPrecision(3)));
}

function bytesText(value) {
  for (const [size, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (value >= size) return `${(value / size).toFixed(1)} ${unit}`;
  }
  return `${value} B`;
}

function secondsText(seconds) {
  if (!isFinite(seconds) || seconds < 0) return "unknown";
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds), pad = (value) => String(value).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const rest = `${pad(Math.floor(whole / 60) % 60)}:${pad(whole % 60)}`;
  return hours > 0 ? `${hours}:${rest}` : rest;
}

// "14:03:05", or with the date when it was another day.
function timeText(date) {
  const today = date.toDateString() === new Date().toDateString();
  const time = date.toLocaleTimeString("en-GB");
  return today ? time : `${date.toLocaleDateString("en-CA")} ${time}`;
}
