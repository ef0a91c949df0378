// Embeds the drawings, gives them the colours of the page, and fits their texts.
"use strict";

(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const NARROW = 640, LETTER = 6.4;  // pixels
  const FEW = 3;  // columns
  const LINE = 16, LINES = 3, LEADING = 15;  // letters, lines, and pixels of a line of a row's name

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
          part.setv({label_text_color: ink});
        } else if (part.type === "Grid" && part.grid_line_color !== null) {
          part.setv({grid_line_color: line, grid_line_alpha: 0.7});
        }
      }
    }
    for (const name of ["chosen", "critical", "critical-path"]) {
      const drawn = model(name);
      if (drawn !== null && drawn.glyph !== undefined) drawn.glyph.setv({line_color: ink});
    }
    const gaps = model("gap-labels");
    if (gaps !== null) gaps.glyph.setv({text_color: ink});
  }

  // On a narrow page legends stand in a column, and long names of rows are broken or cut.
  const rowNames = new Map(), heights = new Map();
  function fitWidth() {
    const isNarrow = innerWidth < NARROW;
    for (const {target} of data.charts) {
      const chart = model(target);
      for (const part of chart.above) {
        if (part.type === "Legend") part.setv({orientation: isNarrow ? "vertical" : "horizontal"});
      }
      const axis = chart.left[0];
      if (axis.major_label_overrides.size === 0) continue;
      if (!rowNames.has(target)) rowNames.set(target, new Map(axis.major_label_overrides));
      const broken = [...rowNames.get(target)].map(([row, name]) => [row, isNarrow ? lines(name) : name]);
      axis.setv({major_label_overrides: new Map(broken)});
      if (!heights.has(target)) heights.set(target, chart.height);
      const most = Math.max(...broken.map(([, name]) => name.split("\n").length));
      const missing = isNarrow ? Math.max(0, (most + 0.5) * LEADING - chart.tags[0]) : 0;
      chart.setv({height: heights.get(target) + broken.length * missing});
    }
    fitTables(isNarrow);
  }

  // A table whose columns have no room becomes a list, as does on a phone what has more than a few.
  function fitTables(isNarrow) {
    const frames = [...document.querySelectorAll(".wide")];
    for (const frame of frames) frame.classList.remove("list");
    const tooWide = frames.map((frame) => {
      const columns = frame.querySelectorAll("th").length;
      return frame.scrollWidth > frame.clientWidth + 1 || (isNarrow && columns > FEW);
    });
    frames.forEach((frame, i) => frame.classList.toggle("list", tooWide[i]));
  }

  function lines(name) {
    const found = [];
    for (const word of name.split(/[ \n]+/)) {
      const last = found.length - 1;
      if (last >= 0 && found[last].length + word.length < LINE) found[last] += ` ${word}`;
      else found.push(word.length > LINE ? `${word.slice(0, LINE - 1)}…` : word);
    }
    const kept = found.slice(0, LINES);
    return kept.join("\n") + (found.length > LINES ? "…" : "");
  }

  // Bars are named where the name has room; zooming in makes some.
  function labelled(chart, name) {
    const drawn = chart.renderers.find((renderer) => renderer.name === name);
    if (drawn === undefined) return;
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

  // Bokeh judges whether the buttons have room before it knows the new width, and hides them for good.
  function keepToolbar(chart) {
    let waiting = 0;
    chart.properties.inner_width.change.connect(() => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        const bar = Bokeh.index.find_one(chart.toolbar);
        if (bar) bar.after_resize();
      }, 100);
    });
  }

  async function start() {
    for (const {item, target} of data.charts) await Bokeh.embed.embed_item(item, target);
    style();
    fitWidth();
    for (const {target} of data.charts) {
      keepToolbar(model(target));
      for (const name of ["labels", "gap-labels"]) labelled(model(target), name);
    }
    dark.addEventListener("change", style);
    addEventListener("resize", fitWidth);
    if (data.graph !== undefined) explorer(data.placement, data.graph);
    document.documentElement.dataset.state = "ready";
  }

  start().catch((error) => {
    document.documentElement.dataset.state = "failed";
    console.error(error);
  });
})();
