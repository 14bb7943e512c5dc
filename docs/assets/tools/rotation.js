// The rotation explorer: a query at position m and a key at position n, each turned by its position; their score depends on
// the offset alone.

import { element } from "./dom.js";

const HASH = "rotation-explorer";
const START = { m: 7, n: 3, pair: 0, base: 10000, width: 64 };
const FURTHEST = 256; // positions that the sliders reach
const RADIUS = 100;

// Radians a position of pair i among `width` rotated coordinates.
export const frequency = ({ pair, base, width }) => base ** -((2 * pair) / width);

// Angles of query and key, and the score of the pair and of the whole head, for unit pairs that point the same way at 0.
export function rotation(state) {
  const { m, n, width } = state;
  const each = frequency(state);
  let whole = 0;
  for (let pair = 0; pair < width / 2; pair += 1) whole += Math.cos((m - n) * frequency({ ...state, pair }));
  return {
    frequency: each,
    wavelength: (2 * Math.PI) / each,
    query: m * each,
    key: n * each,
    score: Math.cos((m - n) * each),
    head: whole / (width / 2),
  };
}

// What is wrong with a value, or nothing.
export function problem(name, value, { width }) {
  if (name === "base") return Number.isFinite(value) && value > 0 ? "" : `base must be a number above 0, got ${value}`;
  if (!Number.isInteger(value)) return `${name} must be a whole number, got ${value}`;
  if (name === "width") return value % 2 || value < 2 || value > 1024 ? `width must be even, from 2 to 1024, got ${value}` : "";
  if (name === "pair") return value < 0 || value >= width / 2 ? `pair must be from 0 to ${width / 2 - 1}, got ${value}` : "";
  return Math.abs(value) > 1e9 ? `${name} must be at most 1,000,000,000, got ${value}` : "";
}

export function fromHash(hash) {
  const [name, ...rest] = hash.replace(/^#/, "").split("&");
  if (name !== HASH) return null;
  const words = new URLSearchParams(rest.join("&"));
  const state = { ...START };
  for (const field of ["width", "base", "pair", "m", "n"]) {
    const value = words.has(field) ? Number(words.get(field)) : START[field];
    if (!problem(field, value, state)) state[field] = value;
  }
  if (problem("pair", state.pair, state)) state.pair = 0;
  return state;
}

export function toHash(state) {
  const differing = Object.keys(START).filter((name) => state[name] !== START[name]);
  return [HASH, ...differing.map((name) => `${name}=${state[name]}`)].join("&");
}

const degrees = (angle) => {
  const turned = (((angle * 180) / Math.PI) % 360) + (angle < 0 ? 360 : 0);
  return `${turned.toFixed(1)}°`;
};

export function start(host) {
  const linked = fromHash(location.hash);
  const state = linked ?? { ...START };
  const inputs = new Map();
  const error = element("p", { class: "tool-error", role: "alert" });
  const summary = element("p", { class: "tool-summary", role: "status" });
  const values = element("dl", { class: "rotation-values" });
  const dial = element("svg", { viewBox: "-130 -130 260 260", class: "rotation-dial", role: "img" });
  const curve = element("svg", { viewBox: "0 -70 320 140", class: "rotation-curve", role: "img" });

  function field(name, label, attributes = {}) {
    const id = `rotation-${name}`;
    const number = element("input", { id, type: "number", step: name === "base" ? "any" : 1, ...attributes });
    inputs.set(name, [number]);
    number.addEventListener("input", () => change(name, number.valueAsNumber));
    const row = element("div", { class: "rotation-row" }, element("label", { for: id }, label), number);
    if (attributes.max !== undefined) {
      const slider = element("input", { type: "range", "aria-label": `${label}, slider`, ...attributes, step: 1 });
      slider.addEventListener("input", () => change(name, slider.valueAsNumber));
      inputs.get(name).push(slider);
      row.append(slider);
    }
    return row;
  }

  function change(name, value) {
    const wrong = name === "offset" ? problem("offset", value, state) : problem(name, value, state);
    for (const each of inputs.get(name)) each.toggleAttribute("aria-invalid", Boolean(wrong));
    error.textContent = wrong;
    if (wrong) return;
    if (name === "offset") state.m = state.n + value;
    else state[name] = value;
    if (name === "width" && problem("pair", state.pair, state)) state.pair = state.width / 2 - 1;
    history.replaceState(history.state, "", `#${toHash(state)}`);
    draw(name);
  }

  function together(step) {
    state.m += step;
    state.n += step;
    error.textContent = "";
    history.replaceState(history.state, "", `#${toHash(state)}`);
    draw();
  }

  function draw(typed) {
    const offset = state.m - state.n;
    for (const [name, all] of inputs) {
      const value = name === "offset" ? offset : state[name];
      for (const each of all) {
        if (name === "pair") each.max = state.width / 2 - 1;
        if (!(name === typed && each === document.activeElement)) each.value = value;
      }
    }
    const found = rotation(state);
    const rows = [
      ["angle of the query, m θ", degrees(found.query)],
      ["angle of the key, n θ", degrees(found.key)],
      ["angle between them, (m − n) θ", degrees(found.query - found.key)],
      ["θ, radians a position", found.frequency.toPrecision(6)],
      ["wavelength, positions", found.wavelength.toPrecision(6)],
      ["score of the pair, cos (m − n) θ", found.score.toFixed(6)],
      ["mean over all pairs", found.head.toFixed(6)],
    ];
    values.replaceChildren(...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
    drawDial(found);
    drawCurve(found, offset);
    summary.textContent = `Offset ${offset}: score ${found.score.toFixed(6)}, wherever the two stand.`;
  }

  function drawDial({ query, key }) {
    const at = (angle, radius) => [radius * Math.cos(angle), -radius * Math.sin(angle)];
    const dot = (angle, radius, name, label) => {
      const [x, y] = at(angle, radius);
      const [tx, ty] = at(angle, radius + 16);
      return [
        element("line", { x1: 0, y1: 0, x2: x, y2: y, class: `rotation-${name}` }),
        element("circle", { cx: x, cy: y, r: 6, class: `rotation-${name}` }),
        element("text", { x: tx, y: ty, "text-anchor": "middle", "dominant-baseline": "middle" }, label),
      ];
    };
    const [x1, y1] = at(key, 34);
    const [x2, y2] = at(query, 34);
    const between = (((query - key) % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI);
    const arc = `M ${x1} ${y1} A 34 34 0 ${between > Math.PI ? 1 : 0} 0 ${x2} ${y2}`;
    dial.replaceChildren(
      element("title", {}, `Query at ${degrees(query)}, key at ${degrees(key)}`),
      element("circle", { cx: 0, cy: 0, r: RADIUS, class: "rotation-circle" }),
      element("line", { x1: -RADIUS, y1: 0, x2: RADIUS, y2: 0, class: "rotation-circle" }),
      element("path", { d: arc, class: "rotation-between" }),
      ...dot(key, RADIUS * 0.82, "key", "k"),
      ...dot(query, RADIUS, "query", "q"),
    );
  }

  function drawCurve({ frequency: theta, score }, offset) {
    const reach = Math.max(16, 2 * Math.abs(offset));
    const x = (distance) => 160 + (distance / reach) * 150;
    const steps = Array.from({ length: 301 }, (_, i) => (i / 150 - 1) * reach);
    const points = steps.map((distance) => `${x(distance).toFixed(1)},${(-50 * Math.cos(distance * theta)).toFixed(1)}`);
    curve.replaceChildren(
      element("title", {}, `Score against offset, from ${-reach} to ${reach}`),
      element("line", { x1: 10, y1: 0, x2: 310, y2: 0, class: "rotation-circle" }),
      element("path", { d: `M ${points.join(" L ")}`, class: "rotation-score" }),
      element("circle", { cx: x(offset), cy: -50 * score, r: 5, class: "rotation-query" }),
      element("text", { x: 10, y: 66 }, `offset ${-reach}`),
      element("text", { x: 310, y: 66, "text-anchor": "end" }, `${reach}`),
    );
  }

  const button = (text, step) =>
    element("button", { type: "button", class: "tool-button", onclick: () => together(step) }, text);
  host.replaceChildren(
    element("h3", { class: "rotation-title" }, "Try it: only the offset counts"),
    element(
      "div",
      { class: "rotation-form", role: "group", "aria-label": "Rotation explorer" },
      field("m", "Query position m", { min: 0, max: FURTHEST }),
      field("n", "Key position n", { min: 0, max: FURTHEST }),
      field("offset", "Offset m − n"),
      field("pair", "Pair", { min: 0, max: state.width / 2 - 1 }),
      field("base", "Base"),
      field("width", "Rotated width"),
      element("div", { class: "tool-bar" }, button("Move both back", -1), button("Move both on", 1), button("Move both on by 100", 100)),
      error,
    ),
    element("div", { class: "rotation-view" }, dial, curve, summary, values),
  );
  host.classList.add("tool", "rotation");
  draw();
  if (linked) host.scrollIntoView();
}
