// The panel of one op: attributes, inputs, outputs and weights as Netron shows them, beside what it costs.
"use strict";

const MOST_LISTED = 100;  // ops of a group, and readers of an output

// The model's ops, or null where the report has none. They are unpacked when they are first asked for.
const modelOps = (() => {
  let loading = null;
  async function unpacked(packed) {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const ops = JSON.parse(await new Response(stream).text());
    ops.number = new Map(ops.names.map((name, i) => [name, i]));
    ops.readers = ops.names.map(() => []);
    ops.inputs.forEach((inputs, i) => {
      for (let k = 0; k < inputs.length; k += 2) ops.readers[inputs[k]].push([inputs[k + 1], i]);
    });
    return ops;
  }
  return () => {
    const place = document.getElementById("ops");
    if (loading === null) {
      loading = place === null ? Promise.resolve(null) : unpacked(JSON.parse(place.textContent));
    }
    return loading;
  };
})();

// Fills the panel with one op. `go(name)` is called for another op that is clicked.
function opPanel(panel, ops, name, go) {
  const i = ops === null ? undefined : ops.number.get(name);
  if (i === undefined) {
    if (ops !== null) element("p", "Not an op of the file: it was made when shapes were folded.", panel);
    return;
  }
  const attributes = ops.attributes[ops.attribute[i]], constant = ops.constants[i];
  if (constant !== undefined) heading("Values", panel);
  if (constant !== undefined) pairs(weights(constant), panel);
  if (attributes.length > 0) heading("Attributes", panel);
  if (attributes.length > 0) pairs(attributes, panel);
  if (ops.bodies[i] !== undefined) {
    element("p", `Its bodies, which are not shown: ${ops.bodies[i].map((n) => counted(n, "op")).join(", ")}`, panel);
  }
  const inputs = ops.inputs[i];
  if (inputs.length > 0) heading("Inputs", panel);
  for (let k = 0; k < inputs.length; k += 2) {
    const [producer, port] = [inputs[k], inputs[k + 1]];
    const row = element("div", null, panel, "port");
    element("span", String(k / 2), row, "number");
    link(ops, producer, row, go);
    element("span", tensorText(ops, producer, port), row, "tensor");
    for (const constant of constantsBehind(ops, producer)) {
      if (constant !== producer) {
        link(ops, constant, row, go);
        element("span", tensorText(ops, constant, 0), row, "tensor");
      }
      const value = weights(ops.constants[constant]);
      element("span", value.map(([what, text]) => `${what} ${text}`).join(", "), row, "value");
    }
  }
  const outputs = ops.outputs[i];
  if (outputs.length > 0) heading("Outputs", panel);
  outputs.forEach((_, port) => {
    const row = element("div", null, panel, "port");
    element("span", String(port), row, "number");
    element("span", tensorText(ops, i, port), row, "tensor");
    const readers = ops.readers[i].filter(([from]) => from === port);
    for (const [, reader] of readers.slice(0, MOST_LISTED)) link(ops, reader, row, go);
    if (readers.length > MOST_LISTED) element("span", `and ${readers.length - MOST_LISTED} more`, row, "value");
  });
  if (ops.tensor_names[i] !== undefined) {
    heading("Names of its tensors", panel);
    element("p", ops.tensor_names[i].join(", "), panel);
  }
}

// The constants that an input is computed from, such as compressed weights with their scale; none where
// anything else takes part.
function constantsBehind(ops, producer) {
  const MOST_OPS = 12;
  const found = [], waiting = [producer], seen = new Set(waiting);
  while (waiting.length > 0) {
    const i = waiting.pop();
    if (ops.constants[i] !== undefined) found.push(i);
    else if (ops.inputs[i].length === 0 || seen.size > MOST_OPS) return [];
    for (let k = 0; k < ops.inputs[i].length; k += 2) {
      const source = ops.inputs[i][k];
      if (!seen.has(source)) waiting.push(source);
      seen.add(source);
    }
  }
  return found;
}

// "Convolution (opset1)", or null where the report does not know the op.
function kindOf(ops, name) {
  const i = ops === null ? undefined : ops.number.get(name);
  if (i === undefined) return null;
  const [set, type] = ops.kinds[ops.kind[i]];
  return set === "" ? type : `${type} (${set})`;
}

function heading(text, panel) {
  element("h4", text, panel);
}

function pairs(entries, panel) {
  const list = element("dl", null, panel, "pairs");
  for (const [name, value] of entries) {
    element("dt", name, list);
    element("dd", value, list);
  }
}

function link(ops, i, parent, go) {
  const button = element("button", null, parent, "op");
  button.type = "button";
  element("span", ops.names[i], button);
  element("small", ops.kinds[ops.kind[i]][1], button);
  button.addEventListener("click", () => go(ops.names[i]));
}

function tensorText(ops, i, port) {
  return ops.tensors[ops.outputs[i][port]].join(" ");
}

function weights(constant) {
  const found = [["size", bytesText(constant.bytes)]];
  for (const what of ["values", "min", "max", "mean", "std", "zeros"]) {
    if (constant[what] !== undefined) found.push([what, constant[what]]);
  }
  if (constant.not_finite !== undefined) found.push(["not finite", counted(constant.not_finite, "number")]);
  if (constant.sample !== undefined) found.push(["statistics of", `${counted(constant.sample, "number")} of them`]);
  return found;
}
