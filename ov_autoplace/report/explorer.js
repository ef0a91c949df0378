// The placement: search for ops, the chosen node of the drawing, and the panel beside it.
"use strict";

function explorer(report, drawn) {
  const MOST_RESULTS = 60, MOST_GROUPS = 40, ROOM = 25;
  const nodes = source("graph", "x", "title"), chart = model("graph");
  const marked = model("matches").data_source, chosen = model("chosen").data_source;
  const input = document.getElementById("search"), found = document.getElementById("found");
  const results = document.getElementById("results"), details = document.getElementById("details");
  const whole = {
    x: [chart.x_range.start, chart.x_range.end], y: [chart.y_range.start, chart.y_range.end],
  };
  const groupsOf = new Map();
  drawn.node.forEach((node, g) => {
    if (!groupsOf.has(node)) groupsOf.set(node, []);
    groupsOf.get(node).push(g);
  });
  const ops = [], groupOf = new Map();
  report.names.forEach((name, g) => {
    for (const member of [name, ...report.members[g]]) {
      ops.push({name: member, g, key: member.toLowerCase()});
      groupOf.set(member, g);
    }
  });

  const kernelsOf = new Map();
  for (const kernel of drawn.measured) {
    for (const op of kernel[4]) {
      if (!kernelsOf.has(op)) kernelsOf.set(op, []);
      kernelsOf.get(op).push(kernel);
    }
  }

  // Seen as a whole, a large graph has little room for each node; looked at closely, it has much.
  const fullSize = Array.from(nodes.data.size), view = chart.x_range;
  let shownFactor = 1;
  function resize() {
    const perLayer = (chart.inner_width || 1200) / (view.end - view.start);
    const factor = Math.round(10 * Math.min(1, Math.max(0.3, perLayer / ROOM))) / 10;
    if (factor === shownFactor) return;
    shownFactor = factor;
    nodes.data = {...nodes.data, size: fullSize.map((size) => size * factor)};
  }

  function place(node) {
    return {x: nodes.data.x[node], y: nodes.data.y[node]};
  }

  function mark(target, list) {
    const places = list.map(place);
    target.data = {x: places.map((p) => p.x), y: places.map((p) => p.y)};
  }

  function matcher(text) {
    const wanted = text.toLowerCase();
    if (!/[*?]/.test(wanted)) return (op) => op.key.includes(wanted);
    const pattern = wanted.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, "[^]*").replace(/\?/g, "[^]");
    const wholeName = new RegExp(`^${pattern}$`, "u");
    return (op) => wholeName.test(op.key);
  }

  async function search() {
    const text = input.value.trim();
    const known = text === "" ? null : await modelOps();
    if (text !== input.value.trim()) return;  // typed on meanwhile
    results.replaceChildren();
    results.hidden = text === "";
    if (text === "") {
      found.textContent = "";
      mark(marked, []);
      return;
    }
    const matches = ops.filter(matcher(text));
    mark(marked, [...new Set(matches.map((op) => drawn.node[op.g]))]);
    const shown = matches.length > MOST_RESULTS ? `, the first ${MOST_RESULTS} are listed` : "";
    found.textContent = `${matches.length.toLocaleString("en")} of ${counted(ops.length, "op")}${shown}`;
    results.hidden = matches.length === 0;
    for (const op of matches.slice(0, MOST_RESULTS)) {
      const button = element("button", null, element("li", null, results));
      button.type = "button";
      element("div", op.name, button);
      const kind = kindOf(known, op.name) || report.types[op.g];
      element("span", `${kind} · ${report.devices[report.device[op.g]]}`, button);
      button.addEventListener("click", () => { zoom(drawn.node[op.g]); open(op.name); });
    }
  }

  function zoom(node) {
    const {x, y} = place(node);
    around(x, 30, chart.x_range, whole.x);
    around(y, 14, chart.y_range, whole.y);
  }

  // So much around a place as there is inside of the drawing.
  function around(place, size, range, [start, end]) {
    const shown = Math.min(size, end - start);
    const first = Math.min(Math.max(place - shown / 2, start), end - shown);
    range.setv({start: first, end: first + shown});
  }

  function costs(g) {
    const most = Math.max(...report.ms[g]);
    report.devices.forEach((device, d) => {
      const row = element("div", null, details, "bar"), ms = report.ms[g][d];
      element("span", device + (d === report.device[g] ? " (here)" : ""), row);
      element("b", ms < 0 ? "cannot run" : `${ms} ms`, row);
      const bar = element("i", null, row);
      bar.style.width = `${most > 0 && ms > 0 ? 100 * ms / most : 0}%`;
      bar.style.background = drawn.colours[d];
    });
  }

  // Shows an op, which may be one that no group holds.
  async function open(name) {
    const known = await modelOps(), g = groupOf.get(name);
    empty();
    element("h3", name, details);
    if (g === undefined) {
      element("p", `${kindOf(known, name)}, folded away before devices were chosen`, details);
    } else {
      mark(chosen, [drawn.node[g]]);
      const inside = report.subgraph[g] < 0 ? "" : `, subgraph ${report.subgraph[g]}`;
      const kind = kindOf(known, name) || report.types[g] || "op";
      element("p", `${kind} on ${report.devices[report.device[g]]}${inside}`, details);
    }
    opPanel(details, known, name, open);
    measured(name);
    if (g !== undefined) group(g, name, known);
    details.scrollTop = 0;
    details.scrollIntoView({block: "nearest"});
  }

  // The keyboard goes on in the panel where a button in it was pressed.
  function empty() {
    const hadFocus = details.contains(document.activeElement);
    details.replaceChildren();
    details.hidden = false;
    if (hadFocus) details.focus({preventScroll: true});
  }

  // The kernels that computed the op, with the mean times that their device's profile gives.
  function measured(name) {
    const kernels = kernelsOf.get(name) || [];
    if (kernels.length > 0) heading("Measured in the profiled run", details);
    for (const [kind, kernel, ms, device, members] of kernels) {
      const others = members.length > 1 ? `, together with ${counted(members.length - 1, "other op")}` : "";
      element("p", `${ms} ms on ${device}${others} (${kind}, ${kernel})`, details);
    }
  }

  // What the op's group costs, and who else is in it.
  function group(g, name, known) {
    const others = [report.names[g], ...report.members[g]].filter((member) => member !== name);
    const size = others.length + 1;
    heading(size === 1 ? "Cost, predicted" : `Cost of its group of ${size} ops, predicted`, details);
    costs(g);
    element("p", report.reasons[g], details);
    if (others.length === 0) return;
    heading("Ops of the same group", details);
    const list = element("div", null, details, "members");
    for (const other of others.slice(0, MOST_LISTED)) {
      const button = element("button", null, list, "op");
      button.type = "button";
      element("span", other, button);
      const kind = kindOf(known, other);
      if (kind !== null) element("small", kind, button);
      button.addEventListener("click", () => open(other));
    }
    if (others.length > MOST_LISTED) element("p", `and ${others.length - MOST_LISTED} more`, list);
  }

  function show(node) {
    mark(chosen, [node]);
    const groups = groupsOf.get(node);
    if (groups.length === 1) {
      open(report.names[groups[0]]);
      return;
    }
    empty();
    const time = (g) => report.ms[g][report.device[g]];
    const heaviest = [...groups].sort((a, b) => time(b) - time(a));
    element("h3", nodes.data.title[node], details);
    const rest = groups.length > MOST_GROUPS ? `, the heaviest ${MOST_GROUPS} of ${groups.length}` : "";
    element("p", `Its groups${rest}, with predicted times:`, details);
    for (const g of heaviest.slice(0, MOST_GROUPS)) {
      const button = element("button", null, details, "op");
      button.type = "button";
      element("span", report.names[g], button);
      element("small", `${report.types[g]}, ${time(g)} ms: ${report.reasons[g]}`, button);
      button.addEventListener("click", () => open(report.names[g]));
    }
    details.scrollTop = 0;
    details.scrollIntoView({block: "nearest"});
  }

  let waiting = 0, resizing = 0;
  for (const end of [view.properties.start, view.properties.end, chart.properties.inner_width]) {
    end.change.connect(() => {
      clearTimeout(resizing);
      resizing = setTimeout(resize, 80);
    });
  }
  resize();
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, 120);
  });
  input.addEventListener("keydown", (event) => {
    const first = results.querySelector("button");
    if (event.key === "Enter" && first !== null) first.click();
  });
  nodes.selected.properties.indices.change.connect(() => {
    if (nodes.selected.indices.length > 0) show(nodes.selected.indices[0]);
  });
  search();
}
