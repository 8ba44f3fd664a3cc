// SPDX-License-Identifier: Apache-2.0
// Reads status.json and history.json, and shows them.

const STATUS_MS = 2000;     // between two requests for status.json
const HISTORY_MS = 10000;   // the least between two for history.json
const TIMEOUT_MS = 5000;    // of a request
const LONGEST_MS = 8000;    // between two attempts while nobody answers
const HELD_SECONDS = 2;     // a step that takes longer is held up
const RATE_MS = 60000;      // steps per second are of so long
const PARTS = [
  ["data", "data"], ["compute", "forward"], ["push", "communication"],
  ["exchange", "exposed"], ["idle", "backward"], ["wait", "waiting"]];
const PHASES = {
  waiting: "waiting for members", running: "running", stopping: "stopping",
  done: "done", failed: "failed", unknown: "unknown"};

const byId = (id) => document.getElementById(id);
const seen = {status: null, history: null, historyAt: 0, key: "", answered: null,
              failures: 0, paused: false, rates: [], timer: 0, busy: false};

// ---- requests

async function get(path) {
  const response = await fetch(path,
      {cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS)});
  if (!response.ok) throw new Error(`the coordinator answers ${response.status}`);
  return response.json();
}

// Losses, replacements and phases are shown at once; steps and checkpoints wait.
function keyOf(status) {
  return [status.phase, status.workers_lost, status.servers_lost, status.rollbacks,
          ...status.members.map((member) => member.holders)].join();
}

async function update() {
  if (seen.busy) return;
  seen.busy = true;
  clearTimeout(seen.timer);
  try {
    const status = await get("status.json");
    const key = keyOf(status), now = performance.now();
    const late = now - seen.historyAt >= HISTORY_MS && status.step !== seen.status?.step;
    if (!seen.history || seen.failures > 0 || key !== seen.key || late) {
      seen.history = await get("history.json");
      seen.historyAt = now;
      seen.key = key;
      showHistory();
    }
    if (seen.failures > 0 || status.step < (seen.status?.step ?? 0)) seen.rates = [];
    seen.status = status;
    seen.answered = new Date();
    seen.failures = 0;
    showStatus();
  } catch (error) {
    ++seen.failures;
    showSilence(error);
  }
  seen.busy = false;
  schedule();
}

function schedule() {
  clearTimeout(seen.timer);
  if (seen.paused || document.hidden) return;
  seen.timer = setTimeout(update, Math.min(LONGEST_MS, STATUS_MS * (1 + seen.failures)));
}

// ---- what is shown

function showSilence(error) {
  const known = seen.status, over = known && isOver(known);
  const phase = byId("phase"), silence = byId("silence");
  if (over) {
    setText(silence, `The job is ${known.phase}, and its coordinator has ended.`);
  } else {
    const since = seen.answered ? ` since ${timeText(seen.answered)}` : "";
    const why = error.message.startsWith("the coordinator answers") ?
        ` (${error.message})` : "";
    setText(silence, `No answer from the coordinator${since}${why}. ` +
        "Shown is what was known last. The page tries again by itself.");
    setText(phase, "no answer");
    phase.className = "phase phase-silent";
    fillWaits(["Not known: the coordinator does not answer."], "");
  }
  silence.hidden = false;
  setText(byId("message"), over || !seen.answered ? "" :
      `For ${secondsText((new Date() - seen.answered) / 1000)}.`);
  setText(byId("updated"), seen.answered ? `Updated ${timeText(seen.answered)}.` : "");
}

function stepRate(status) {
  const now = performance.now();
  seen.rates.push([now, status.step]);
  while (seen.rates.length > 2 && now - seen.rates[0][0] > RATE_MS) seen.rates.shift();
  const [since, from] = seen.rates[0];
  return now > since ? 1000 * (status.step - from) / (now - since) : 0;
}

function showStatus() {
  const status = seen.status, phase = byId("phase");
  byId("silence").hidden = true;
  setText(byId("name"), status.name || "A job without a name");
  setText(phase, PHASES[status.phase] || status.phase);
  phase.className = `phase phase-${PHASES[status.phase] ? status.phase : "unknown"}`;
  setText(byId("message"), isOver(status) ? status.message : "");
  setText(byId("updated"), `Updated ${timeText(seen.answered)}` +
      (seen.paused ? ", paused." : ", every 2 s."));
  showProgress(status);
  showWaits(status);
  showParts(status);
  showMembers(status);
  showSafety(status);
  markScrolling();
}

// The keyboard scrolls a table that has the focus, so those that are wider than
// their place can have it.
function markScrolling() {
  for (const scroll of document.querySelectorAll(".scroll")) {
    if (scroll.scrollWidth > scroll.clientWidth) scroll.tabIndex = 0;
    else scroll.removeAttribute("tabindex");
  }
}

function showProgress(status) {
  const rate = stepRate(status), bar = byId("bar"), total = status.total_steps;
  let text = "No step has ended yet.";
  if (status.step > 0 || total > 0) {
    const share = total > 0 ? status.step / total : 0;
    text = `Step ${status.step}`;
    if (total > 0) text += ` of ${total} (${Math.floor(100 * share)}%)`;
    if (status.epoch > 0) text += `, epoch ${status.epoch.toFixed(1)}`;
    if (total > 0 && rate > 0 && status.phase === "running") {
      text += `, ${secondsText((total - status.step) / rate)} left`;
    }
    bar.value = share;
    document.title = `${total > 0 ? `${Math.floor(100 * share)}% ` : ""}` +
        `${status.name}: ${PHASES[status.phase] || status.phase}`;
  }
  setText(byId("position"), text);
  // A program that does not count its samples leaves them at one a step.
  const counted = status.members.some((member) =>
    member.role === "worker" && member.last_step && member.last_step.samples > 1);
  const figures = [
    ["Loss", lossText(status)],
    ...(counted ? [["Samples per second", countText(status.samples_per_second)]] : []),
    ["Steps per second", seen.rates.length > 1 ? countText(rate) : "not known yet"],
    ["Learning rate", status.learning_rate === null ? "none yet" :
        numberText(status.learning_rate)],
    ["Strategy", status.strategy]];
  for (const set of ["validation", "test"]) {
    for (const [metric, value] of Object.entries(status[set] || {})) {
      figures.push([`${set} ${metric}`, numberText(value)]);
    }
  }
  fillFigures(byId("figures"), figures);
}

const isOver = (status) => ["done", "failed"].includes(status.phase);
const nameOf = (member) => `${member.role} ${member.index}`;

function stateOf(member) {
  if (member.host === undefined) return "not here";
  return member.finished ? "finished" : member.alive ? "alive" : "lost";
}

// Who waits for whom: sentences, when a step is held up.
function waitsOf(status) {
  const lines = [], held = status.step_wait_seconds;
  const since = `since ${timeText(new Date(seen.answered - 1000 * (held || 0)))}, ` +
      `for ${secondsText(held || 0)}`;
  const reason = status.waits_for || status.message;
  if (reason) {
    lines.push(`The job: ${reason}` + (status.waits_seconds > 0 ?
        `; since ${timeText(new Date(seen.answered - 1000 * status.waits_seconds))}` : ""));
  }
  if (held === null || held < HELD_SECONDS) return lines;
  const workers = status.members.filter((member) => member.role === "worker");
  for (const late of workers) {
    const servers = status.members.filter((member) =>
      member.waiting_for && member.waiting_for_ranks.includes(late.index)).map(nameOf);
    if (servers.length === 0 || late.finished || late.step > status.step) continue;
    lines.push(`${servers.join(", ")} ${servers.length > 1 ? "wait" : "waits"} for ` +
        `${nameOf(late)} (${stateOf(late)}, its last step is ${late.step}, heard ` +
        `${secondsText(late.seconds_since_heartbeat)} ago), ${since}`);
  }
  for (const member of status.members) {
    if (!member.waiting_for || member.finished || member.waiting_for_ranks.length > 0) continue;
    lines.push(`${nameOf(member)} waits for ${member.waiting_for}; no step has ended ${since}`);
  }
  for (const member of status.members) {
    if (!member.alive || !(member.seconds_since_heartbeat >= HELD_SECONDS)) continue;
    lines.push(`${nameOf(member)} has not been heard for ` +
               `${secondsText(member.seconds_since_heartbeat)}`);
  }
  if (lines.length === 0) lines.push(`No step has ended ${since}; nobody says why.`);
  return lines;
}

function fillWaits(lines, className) {
  const list = byId("waits");
  sizeTo(list, "li", lines.length);
  lines.forEach((line, i) => {
    list.children[i].className = className;
    setText(list.children[i], line);
  });
}

function showWaits(status) {
  const lines = waitsOf(status);
  if (isOver(status)) fillWaits([`The job is ${status.phase}.`], "");
  else if (lines.length > 0) fillWaits(lines, "held");
  else {
    fillWaits(["Nobody is held up: the last step ended less than " +
               `${HELD_SECONDS} s ago.`], "");
  }
}

function partsRow(name, step, longest) {
  const digits = longest >= 0.1 ? 1 : longest >= 0.01 ? 2 : 3;
  const text = (seconds) => (1000 * seconds).toFixed(digits);
  const bar = drawBar(PARTS.map(([part, style]) => (
    {style, share: longest > 0 ? step[`${part}_seconds`] / longest : 0})));
  return [name, {node: bar}, text(step.step_seconds),
          ...PARTS.map(([part]) => text(step[`${part}_seconds`]))];
}

function showParts(status) {
  const rows = [], mean = seen.history?.step_parts;
  if (mean?.step_seconds > 0) {
    rows.push([`all, mean of ${seen.history.mean_of_steps}`, mean]);
  }
  for (const member of status.members) {
    if (!member.last_step) continue;
    rows.push([`${nameOf(member)}, step ${member.last_step.step}`, member.last_step]);
  }
  const longest = Math.max(0, ...rows.map((row) => row[1].step_seconds));
  const columns = [{name: "who", className: "text"}, {name: "parts", className: "parts text"},
                   {name: "step"}, ...PARTS.map(([part]) => ({name: part}))];
  fillTable(byId("parts"), columns,
      rows.map(([name, step]) => partsRow(name, step, longest)));
  if (byId("parts-legend").children.length > 0) return;
  for (const [part, style] of PARTS) {
    const item = document.createElement("li");
    item.append(svg("svg", {viewBox: "0 0 32 12"}, svg("rect",
        {class: `fill-${style}`, x: 0, y: 0, width: 32, height: 12})), part);
    byId("parts-legend").append(item);
  }
}

function showMembers(status) {
  const columns = [
    {name: "member", className: "text"}, {name: "state", className: "text"}, {name: "step"},
    {name: "heard"}, {name: "waits for", className: "sentence"}, {name: "peak memory"},
    {name: "sent"}, {name: "received"}, {name: "device", className: "text"},
    {name: "process", className: "text"}, {name: "losses"}];
  fillTable(byId("members"), columns, status.members.map((member) => {
    const state = stateOf(member);
    if (state === "not here") return [nameOf(member), state, ...Array(9).fill("")];
    return [
      nameOf(member), {text: state, className: state === "lost" ? "lost" : ""}, member.step,
      `${secondsText(member.seconds_since_heartbeat)} ago`,
      member.finished ? "" : member.waiting_for, bytesText(member.peak_memory_bytes),
      bytesText(member.bytes_sent), bytesText(member.bytes_received), member.device,
      `${member.host} pid ${member.pid}`,
      member.losses];
  }));
}

function showSafety(status) {
  const checkpoint = status.checkpoint, figures = [];
  if (!checkpoint) figures.push(["Checkpoints", "none while the job runs"]);
  else {
    figures.push(["Newest checkpoint", checkpoint.step > 0 ? `step ${checkpoint.step}` :
        `none yet, one every ${checkpoint.every_steps} steps`]);
    if (checkpoint.step > 0) {
      figures.push(["Its age", secondsText(checkpoint.seconds_since)]);
    }
    figures.push(["Failed checkpoints", String(checkpoint.failures)]);
  }
  figures.push(["Workers lost", String(status.workers_lost)],
               ["Servers lost", String(status.servers_lost)],
               ["Rollbacks", String(status.rollbacks)]);
  const error = checkpoint?.error || status.checkpoint_error;
  if (error) figures.push(["The newest checkpoint failed", error, "wide"]);
  fillFigures(byId("safety"), figures);
}

function showHistory() {
  const history = seen.history;
  setText(byId("version"), `Tributary ${history.version}.`);
  const events = [...history.events].reverse();
  fillTable(byId("events"),
      [{name: "time", className: "text"}, {name: "what", className: "sentence"}],
      events.map((event) => [timeText(new Date(event.micros / 1000)), event.text]));
  showCurves();
}

// A status has no loss if none was reported, or if it is not a number. Only the
// second is in the history.
function lossText(status) {
  const known = status.loss !== null || seen.history?.loss.length > 0;
  return known ? numberText(status.loss) : "none yet";
}

function showCurves() {
  const history = seen.history;
  if (!history) return;
  const isLoss = (one) => one.metric === "loss";
  const series = (one, style) => (
    {name: `${one.set} ${one.metric}`, style, points: one.points});
  const losses = [{name: "training loss", style: 1, points: history.loss},
                  ...history.evaluations.filter(isLoss).map((one, i) => series(one, 2 + i))];
  const tests = history.evaluations.filter((one) => !isLoss(one))
      .map((one, i) => series(one, 1 + i % 7));
  const wide = history.steps_per_point;
  const steps = [...losses, ...tests].flatMap((one) => one.points.map((point) => point[0]));
  const range = [Math.min(...steps), Math.max(...steps)];
  setText(byId("loss-title"), wide > 1 ? `Loss, means of ${wide} steps` : "Loss");
  drawChart(byId("loss-chart"), "Loss over steps", losses, range, true,
            "No step with a loss has ended yet.");
  drawChart(byId("tests-chart"), "Evaluations over steps", tests, range, false,
            "There is no evaluation yet.");
  fillCurveTable(byId("loss-table"), "Loss by step", losses, 12);
  fillCurveTable(byId("tests-table"), "Evaluations by step", tests, 12);
}

// ---- the page

byId("pause").addEventListener("click", () => {
  seen.paused = !seen.paused;
  byId("pause").setAttribute("aria-pressed", String(seen.paused));
  if (seen.paused) {
    clearTimeout(seen.timer);
    setText(byId("updated"), seen.answered ?
        `Updated ${timeText(seen.answered)}, paused.` : "Paused.");
  } else {
    update();
  }
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !seen.paused) update();
});
new ResizeObserver(() => {
  showCurves();
  markScrolling();
}).observe(document.querySelector(".charts"));
update();
