// The budget calculator: a form for one Config, or two side by side, and every figure of them as it is typed.

import { MODELS } from "../generated/models.js";
import { ratio } from "../generated/formulas.js";
import { CHOICES, FIELDS, MOST_LAYERS } from "../generated/tables.js";
import { bytesText } from "./budget.js";
import { ValueError, fieldOf, makeConfig, pythonCall } from "./config.js";
import { copy, element, options } from "./dom.js";
import { configJson } from "./export_json.js";
import { GROUPS, path, statedBy, textsOf, numeral } from "./fields.js";
import { SETTING, figures } from "./figures.js";
import { fixed, grouped } from "./python.js";

const OURS = "the book's 100M design";
const PRESETS = new Map([[OURS, {}], ...MODELS.map(({ name, config }) => [name, config])]);
const SIDES = ["a", "b"];
const ANNOUNCE_MS = 600;

// --- State: a preset and the texts of its fields for each side, and the setting. The address holds what differs.

function side(preset) {
  return { preset, texts: textsOf(PRESETS.get(preset)) };
}

export function initial() {
  const setting = Object.fromEntries(Object.entries(SETTING).map(([name, [, , first]]) => [name, first]));
  return { a: side(OURS), b: null, setting };
}

// The part of an address after "#".
export function toHash(state) {
  const words = new URLSearchParams();
  for (const name of SIDES) {
    if (!state[name]) continue;
    const { preset, texts } = state[name];
    words.set(name, preset);
    const plain = textsOf(PRESETS.get(preset));
    for (const [field, text] of texts) if (text !== plain.get(field)) words.set(`${name}.${field}`, text);
  }
  for (const [name, text] of Object.entries(state.setting)) if (text !== SETTING[name][2]) words.set(name, text);
  return String(words);
}

// The state that such a part stands for. Names that it does not know are passed over.
export function fromHash(hash) {
  const words = new URLSearchParams(hash);
  const state = initial();
  for (const name of SIDES) {
    const preset = words.get(name);
    if (preset === null) continue;
    state[name] = side(PRESETS.has(preset) ? preset : OURS);
  }
  for (const [word, text] of words) {
    const [name, ...rest] = word.split(".");
    const field = rest.join(".");
    if (SIDES.includes(name) && state[name]?.texts.has(field)) state[name].texts.set(field, text);
    else if (Object.hasOwn(SETTING, word)) state.setting[word] = text;
  }
  return state;
}

// The same for a Config that comes from elsewhere, such as the audit: told apart from the book's design.
export function hashOf(stated) {
  return toHash({ ...initial(), a: { preset: OURS, texts: textsOf(stated) } });
}

// --- What the state comes to: the Config of a side, or the error of one of its fields

export function read({ texts }) {
  try {
    const stated = statedBy(texts);
    if (typeof stated.layers === "bigint" && stated.layers > MOST_LAYERS) {
      throw new ValueError(`layers must be at most ${grouped(MOST_LAYERS)} here, got ${stated.layers}`);
    }
    return { stated, config: makeConfig(stated) };
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    return { error: error.message, field: fieldOf(error.message) ?? "width" };
  }
}

export function readSetting(setting) {
  const made = {};
  for (const [name, [label, kind]] of Object.entries(SETTING)) {
    const text = setting[name].trim();
    if (kind !== "whole") {
      if (!kind.includes(text)) return { error: `${label} must be one of ${kind.join(", ")}`, field: name };
      made[name] = text;
      continue;
    }
    const value = numeral(text);
    if (typeof value !== "bigint" || value < 1n) {
      return { error: `${name} must be a whole number from 1, got ${text || "nothing"}`, field: name };
    }
    made[name] = value;
  }
  return { setting: made };
}

// --- The form

export function start(host) {
  let state = fromHash(location.hash.slice(1));
  const controls = new Map(); // "a.width", "setting.tokens": the control and the place of its error
  const results = element("div", { class: "tool-results" });
  const summary = element("p", { class: "tool-summary", role: "status" });
  const status = element("p", { class: "tool-status", role: "status" });
  const form = element("form", { class: "tool-form", autocomplete: "off", "aria-label": "Budget calculator" });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", ({ target }) => change(target));

  function change({ dataset, type, checked, value }) {
    const { side: name, field } = dataset;
    if (!field) return;
    const text = type === "checkbox" ? (checked ? "yes" : "no") : value;
    if (name === "setting") state.setting[field] = text;
    else state[name].texts.set(field, text);
    if (FIELDS[field]?.kind === "part") fold();
    remember();
    update();
  }

  function remember() {
    history.replaceState(history.state, "", `#${toHash(state)}`);
  }

  function control(name, field, { kind, choices, label }) {
    const id = `calculator-${name}-${field.replace(".", "-")}`;
    const text = name === "setting" ? state.setting[field] : state[name].texts.get(field);
    const common = { id, "data-side": name, "data-field": field, "aria-describedby": `${id}-error` };
    if (label) common["aria-label"] = label;
    let made;
    if (kind === "choice") made = element("select", common, options(choices, text));
    else if (kind === "flag" || kind === "part") made = element("input", { ...common, type: "checkbox", checked: text === "yes" });
    else made = element("input", { ...common, type: "text", value: text, inputmode: kind === "whole" ? "numeric" : null });
    const error = element("span", { id: `${id}-error`, class: "tool-error" });
    controls.set(`${name}.${field}`, { made, error });
    return element("span", { class: "tool-cell" }, made, error);
  }

  function row(field, label, hint) {
    const sides = SIDES.filter((name) => state[name]);
    const cells = sides.map((name) =>
      control(name, field, {
        kind: FIELDS[field].kind,
        choices: CHOICES[field],
        label: name === "b" ? `${label}, B` : null,
      }),
    );
    const small = hint ? element("small", {}, ` ${hint}`) : null;
    const text = element("label", { for: `calculator-a-${field.replace(".", "-")}` }, label, small);
    return element("div", { class: "tool-row" }, text, ...cells);
  }

  function group({ title, open, part, fields }) {
    const rows = Object.entries(fields).map(([field, [label, hint]]) => row(path(part, field), label, hint));
    if (part) {
      rows.unshift(row(part, `With ${title.toLowerCase()}`, ""));
      for (const each of rows.slice(1)) each.dataset.part = part;
    }
    const used = part && SIDES.some((name) => state[name]?.texts.get(part) === "yes");
    return element("details", { class: "tool-group", open: open || used }, element("summary", {}, title), ...rows);
  }

  function presets(name, label) {
    const names = [...PRESETS.keys()];
    const choose = ({ target }) => {
      state[name] = side(target.value);
      remember();
      draw();
      host.querySelector(`#calculator-preset-${name}`).focus();
    };
    const chosen = options(names, state[name].preset);
    const select = element("select", { id: `calculator-preset-${name}`, onchange: choose }, chosen);
    return element("span", { class: "tool-preset" }, element("label", { for: `calculator-preset-${name}` }, label), select);
  }

  function compare({ target }) {
    state.b = target.checked ? { preset: state.a.preset, texts: new Map(state.a.texts) } : null;
    remember();
    draw();
    host.querySelector("#calculator-compare").focus();
  }

  function head() {
    const box = element("input", { type: "checkbox", id: "calculator-compare", checked: Boolean(state.b), onchange: compare });
    return element(
      "div",
      { class: "tool-bar" },
      presets("a", state.b ? "Design A" : "Design"),
      state.b ? presets("b", "Design B") : null,
      element("span", { class: "tool-preset" }, box, element("label", { for: "calculator-compare" }, "Compare two")),
    );
  }

  function setting() {
    const rows = Object.entries(SETTING).map(([field, [label, kind]]) => {
      const choice = kind !== "whole";
      const cell = control("setting", field, { kind: choice ? "choice" : kind, choices: kind });
      return element("div", { class: "tool-row" }, element("label", { for: `calculator-setting-${field}` }, label), cell);
    });
    return element("details", { class: "tool-group", open: true }, element("summary", {}, "Setting"), ...rows);
  }

  function buttons() {
    const button = (text, onclick) => element("button", { type: "button", class: "tool-button", onclick }, text);
    const bar = element("div", { class: "tool-bar" }, button("Copy link", () => copy(location.href, "Link", status)));
    for (const name of SIDES.filter((each) => state[each])) {
      const of = state.b ? ` of ${name.toUpperCase()}` : "";
      bar.append(
        button(`Copy Python${of}`, () => withConfig(name, ({ stated }) => copy(pythonCall(stated), `Python${of}`, status))),
        button(`Copy config.json${of}`, () => withConfig(name, ({ config }) => json(config, of))),
      );
    }
    bar.append(button("Start again", () => {
      state = initial();
      remember();
      draw();
    }));
    return bar;
  }

  function withConfig(name, use) {
    const found = read(state[name]);
    if (found.config) use(found);
    else status.textContent = `Not copied: ${found.error}`;
  }

  async function json(config, of) {
    const found = configJson(config);
    if (!found) {
      status.textContent = "No released model class that this book knows has this shape: copy it as Python.";
      return;
    }
    await copy(found.text, `config.json${of} for model_type ${found.model_type}`, status);
    if (found.note) status.append(` ${found.note}`);
  }

  function fold() {
    for (const each of form.querySelectorAll("[data-part]")) {
      each.hidden = !SIDES.some((name) => state[name]?.texts.get(each.dataset.part) === "yes");
    }
  }

  function draw() {
    controls.clear();
    status.textContent = "";
    form.replaceChildren(head(), setting(), ...GROUPS.map(group), buttons(), status);
    form.classList.toggle("tool-two", Boolean(state.b));
    fold();
    update();
  }

  let announcing = 0;

  function update() {
    const found = SIDES.filter((name) => state[name]).map((name) => [name, read(state[name])]);
    const circumstances = readSetting(state.setting);
    for (const { made, error } of controls.values()) {
      made.removeAttribute("aria-invalid");
      error.textContent = "";
    }
    const wrong = [...found, ["setting", circumstances]].filter(([, { error }]) => error);
    for (const [name, { error, field }] of wrong) complain(name, field, error);
    results.classList.toggle("tool-stale", wrong.length > 0);
    clearTimeout(announcing);
    if (wrong.length) {
      announcing = setTimeout(() => (summary.textContent = wrong[0][1].error), ANNOUNCE_MS);
      return;
    }
    const shown = found.map(([, { config }]) => figures(config, circumstances.setting));
    results.replaceChildren(table(shown));
    const text = found.map(([name, { config }]) => sentence(config, circumstances.setting, state.b ? name : "")).join(" ");
    announcing = setTimeout(() => (summary.textContent = text), ANNOUNCE_MS);
  }

  function complain(name, field, message) {
    const { made, error } = controls.get(`${name}.${field}`);
    made.setAttribute("aria-invalid", "true");
    error.textContent = message;
    made.closest("details").open = true;
  }

  addEventListener("hashchange", () => {
    if (!new URLSearchParams(location.hash.slice(1)).has("a")) return;
    state = fromHash(location.hash.slice(1));
    draw();
  });
  host.replaceChildren(form, element("div", { class: "tool-side" }, summary, results));
  host.classList.add("tool");
  draw();
}

function sentence(config, setting, name) {
  const value = (wanted) => figures(config, setting).flatMap(([, , rows]) => rows).find(([each]) => each === wanted)[3];
  const who = name ? `${name.toUpperCase()}: ` : "";
  const cache = `cache ${bytesText(value("cache_needed_bytes"))} at ${grouped(setting.tokens)} tokens`;
  return `${who}${grouped(value("total"))} parameters, ${cache}.`;
}

// --- The table of figures

function table(shown) {
  const two = shown.length === 2;
  const bodies = shown[0].map(([section, convention, rows], i) => {
    const head = element("th", { scope: "rowgroup", colspan: two ? 4 : 2, title: convention }, section);
    const lines = rows.map(([name, label, unit, value], j) => {
      const other = two ? shown[1][i][2][j][3] : null;
      return element(
        "tr",
        { "data-name": name },
        element("th", { scope: "row" }, label),
        amount(value, unit),
        two ? [amount(other, unit), difference(value, other, unit)] : null,
      );
    });
    return element("tbody", {}, element("tr", {}, head), lines);
  });
  const columns = two ? ["A", "B", "B − A"] : ["value"];
  const heads = ["figure", ...columns].map((name) => element("th", { scope: "col" }, name));
  return element(
    "div",
    { class: "tool-scroll", role: "region", "aria-label": "Figures", tabindex: "0" },
    element("table", { class: "tool-table" }, element("thead", {}, element("tr", {}, heads)), bodies),
  );
}

function amount(value, unit) {
  if (unit === "ratio") return element("td", {}, fixed(value, 3));
  const units = unit === "bytes" ? /\((.*)\)/.exec(bytesText(value))?.[1] : null;
  return element("td", {}, grouped(value), units ? element("small", {}, units) : null);
}

function difference(one, other, unit) {
  if (unit === "ratio") return element("td", {}, signed(fixed(other - one, 3)));
  const times = one > 0n ? `× ${fixed(ratio(other, one), 3)}` : null;
  return element("td", {}, signed(grouped(other - one)), times ? element("small", {}, times) : null);
}

const signed = (text) => (text.startsWith("-") ? `−${text.slice(1)}` : `+${text}`).replace(/^\+(0(\.0+)?)$/, "$1");
