// What the report does in the browser: embeds the drawings, and searches the ops. Names are only ever set as
// text, never as markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const MOST_RESULTS = 60, MOST_GROUPS = 40, ROOM = 25;
  const NARROW = 600, LETTER = 6.4;  // pixels

  function model(name) {
    for (const drawing of Bokeh.documents) {
      const found = drawing.get_model_by_name(name);
      if (found !== null) return found;
    }
    return null;
  }

  function style() {
    const page = getComputedStyle(document.documentElement);
    const [ink, soft, line] = ["--ink", "--soft", "--line"].map((name) => page.getPropertyValue(name).trim());
    for (const {target} of data.charts) {
      const chart = model(target);
      for (const part of [...chart.left, ...chart.right, ...chart.above, ...chart.below, ...chart.center]) {
        if (part.type.endsWith("Axis")) {
          part.setv({
            major_label_text_color: ink, axis_label_text_color: soft, axis_line_color: line,
            major_tick_line_color: line,
          });
        } else if (part.type === "Legend") {
          part.setv({label_text_color: ink, orientation: innerWidth < NARROW ? "vertical" : "horizontal"});
        } else if (part.type === "Grid" && part.grid_line_color !== null) {
          part.setv({grid_line_color: line, grid_line_alpha: 0.7});
        }
      }
    }
    for (const name of ["chosen", "critical", "critical-path"]) {
      const drawn = model(name);
      if (drawn !== null && drawn.glyph !== undefined) drawn.glyph.setv({line_color: ink});
    }
  }

  function element(tag, text, parent, className) {
    const made = document.createElement(tag);
    if (text !== null) made.textContent = text;
    if (className !== undefined) made.className = className;
    parent.append(made);
    return made;
  }

  function searchable(graph) {
    const nodes = source("graph", "x", "title"), chart = model("graph");
    const marked = model("matches").data_source, chosen = model("chosen").data_source;
    const input = document.getElementById("search"), found = document.getElementById("found");
    const results = document.getElementById("results"), details = document.getElementById("details");
    const whole = {
      width: chart.x_range.end - chart.x_range.start, height: chart.y_range.end - chart.y_range.start,
    };
    const groupsOf = new Map();
    graph.node.forEach((node, g) => {
      if (!groupsOf.has(node)) groupsOf.set(node, []);
      groupsOf.get(node).push(g);
    });
    const ops = [];
    graph.names.forEach((name, g) => {
      ops.push({name, g, key: name.toLowerCase()});
      for (const member of graph.members[g]) ops.push({name: member, g, key: member.toLowerCase()});
    });

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

    function search() {
      const text = input.value.trim();
      results.replaceChildren();
      results.hidden = text === "";
      if (text === "") {
        found.textContent = "";
        mark(marked, []);
        return;
      }
      const matches = ops.filter(matcher(text));
      mark(marked, [...new Set(matches.map((op) => graph.node[op.g]))]);
      const shown = matches.length > MOST_RESULTS ? `, the first ${MOST_RESULTS} are listed` : "";
      found.textContent = `${matches.length.toLocaleString("en")} of ${ops.length.toLocaleString("en")} ops${shown}`;
      results.hidden = matches.length === 0;
      for (const op of matches.slice(0, MOST_RESULTS)) {
        const button = element("button", null, element("li", null, results));
        button.type = "button";
        element("div", op.name, button);
        element("span", `${graph.types[op.g]} · ${graph.devices[graph.device[op.g]]}`, button);
        button.addEventListener("click", () => { zoom(graph.node[op.g]); show(graph.node[op.g], op.g); });
      }
    }

    function zoom(node) {
      const {x, y} = place(node);
      const width = Math.min(whole.width, 30), height = Math.min(whole.height, 14);
      chart.x_range.setv({start: x - width / 2, end: x + width / 2});
      chart.y_range.setv({start: y - height / 2, end: y + height / 2});
    }

    function costs(g) {
      const most = Math.max(...graph.ms[g]);
      graph.devices.forEach((device, d) => {
        const row = element("div", null, details, "bar"), ms = graph.ms[g][d];
        element("span", device + (d === graph.device[g] ? " (here)" : ""), row);
        element("b", ms < 0 ? "cannot run" : `${ms} ms`, row);
        const bar = element("i", null, row);
        bar.style.width = `${most > 0 && ms > 0 ? 100 * ms / most : 0}%`;
        bar.style.background = graph.colours[d];
      });
    }

    function show(node, g) {
      mark(chosen, [node]);
      details.replaceChildren();
      details.hidden = false;
      if (g === undefined && groupsOf.get(node).length > 1) {
        list(node);
        return;
      }
      if (g === undefined) g = groupsOf.get(node)[0];
      element("h3", graph.names[g], details);
      const inside = graph.subgraph[g] < 0 ? "" : `, subgraph ${graph.subgraph[g]}`;
      element("p", `${graph.types[g]} on ${graph.devices[graph.device[g]]}${inside}`, details);
      costs(g);
      element("p", graph.reasons[g], details);
      if (graph.members[g].length > 0) {
        element("p", `with ${graph.members[g].join(", ")}`, details, "members");
      }
    }

    function list(node) {
      const time = (g) => graph.ms[g][graph.device[g]];
      const groups = [...groupsOf.get(node)].sort((a, b) => time(b) - time(a));
      element("h3", nodes.data.title[node], details);
      const rest = groups.length > MOST_GROUPS ? `, the heaviest ${MOST_GROUPS} of ${groups.length}` : "";
      element("p", `Its groups${rest}:`, details);
      for (const g of groups.slice(0, MOST_GROUPS)) {
        element("p", `${time(g)} ms  ${graph.names[g]} (${graph.types[g]}): ${graph.reasons[g]}`, details);
      }
    }

    let waiting = 0, resizing = 0;
    for (const end of [view.properties.start, view.properties.end]) {
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
    nodes.selected.properties.indices.change.connect(() => {
      if (nodes.selected.indices.length > 0) show(nodes.selected.indices[0]);
    });
    search();
  }

  // Bars are named where the name has room; zooming in makes some.
  function labelled(chart) {
    const drawn = model("labels");
    if (drawn === null) return;
    const texts = drawn.data_source, view = chart.x_range;
    function fit() {
      const perUnit = (chart.inner_width || 1000) / (view.end - view.start);
      const {left, right, whole} = texts.data;
      const label = Array.from(whole, (text, i) => {
        return (right[i] - left[i]) * perUnit >= LETTER * (text.length + 1) ? text : "";
      });
      texts.data = {...texts.data, label};
    }
    let waiting = 0;
    for (const property of [view.properties.start, view.properties.end, chart.properties.inner_width]) {
      property.change.connect(() => {
        clearTimeout(waiting);
        waiting = setTimeout(fit, 80);
      });
    }
    fit();
  }

  function source(chart, ...columns) {
    for (const renderer of model(chart).renderers) {
      const candidate = renderer.data_source;
      if (candidate !== undefined && columns.every((name) => name in candidate.data)) return candidate;
    }
    return null;
  }

  async function start() {
    for (const {item, target} of data.charts) await Bokeh.embed.embed_item(item, target);
    style();
    if (model("schedule") !== null) labelled(model("schedule"));
    dark.addEventListener("change", style);
    if (data.graph !== undefined) searchable(data.graph);
    document.documentElement.dataset.state = "ready";
  }

  start().catch((error) => {
    document.documentElement.dataset.state = "failed";
    console.error(error);
  });
})();
