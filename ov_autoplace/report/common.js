// What the scripts of the page share. Names are only ever set as text, never as markup.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

// A part of a drawing by its name, or null.
function model(name) {
  for (const drawing of Bokeh.documents) {
    const found = drawing.get_model_by_name(name);
    if (found !== null) return found;
  }
  return null;
}

// The columns of a drawing that have these names, or null.
function source(chart, ...columns) {
  for (const renderer of model(chart).renderers) {
    const candidate = renderer.data_source;
    if (candidate !== undefined && columns.every((name) => name in candidate.data)) return candidate;
  }
  return null;
}

function element(tag, text, parent, className) {
  const made = document.createElement(tag);
  if (text !== null) made.textContent = text;
  if (className !== undefined) made.className = className;
  parent.append(made);
  return made;
}

function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

function bytesText(size) {
  const units = ["bytes", "KiB", "MiB", "GiB"];
  let unit = 0;
  for (; size >= 1024 && unit < units.length - 1; unit += 1) size /= 1024;
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}
