// The audit's form: a config.json pasted, dropped or opened; its report below. Nothing leaves the browser.

import { LARGEST_FILE, RATIO_NAMES } from "../generated/tables.js";
import { audit, DTYPES } from "./audit.js";
import { bytesText } from "./budget.js";
import { hashOf } from "./calculator.js";
import { ValueError } from "./config.js";
import { ConfigError } from "./config_json.js";
import { copy, element, options } from "./dom.js";
import { numeral } from "./fields.js";
import { fixed, grouped, stringify } from "./python.js";

const EXAMPLE = `{
  "model_type": "qwen3",
  "hidden_size": 4096,
  "intermediate_size": 12288,
  "num_hidden_layers": 36,
  "num_attention_heads": 32,
  "num_key_value_heads": 8,
  "vocab_size": 151936,
  "max_position_embeddings": 40960,
  "rope_theta": 1000000
}
`;
const WAIT_MS = 200;

export function start(host) {
  let name = "config.json";
  const area = element("textarea", { id: "audit-text", rows: 14, spellcheck: "false", "aria-describedby": "audit-error" });
  const context = element("input", { id: "audit-context", inputmode: "numeric", placeholder: "the model's", "aria-describedby": "audit-error" });
  const batch = element("input", { id: "audit-batch", inputmode: "numeric", value: "1", "aria-describedby": "audit-error" });
  const dtype = element("select", { id: "audit-dtype" }, options(DTYPES, "bf16"));
  const file = element("input", { id: "audit-file", type: "file", accept: ".json,application/json" });
  const error = element("p", { id: "audit-error", class: "tool-error", role: "alert" });
  const status = element("p", { class: "tool-status", role: "status" });
  const report = element("div", { class: "audit-report" });

  function run() {
    error.textContent = "";
    for (const each of [area, context, batch]) each.removeAttribute("aria-invalid");
    report.replaceChildren();
    status.textContent = "";
    if (!area.value.trim()) return;
    try {
      const size = (field, what) => {
        const value = numeral(field.value.trim());
        if (typeof value === "bigint" && value >= 1n) return value;
        field.setAttribute("aria-invalid", "true");
        throw new ValueError(`${what} must be a whole number from 1, got ${field.value.trim() || "nothing"}`);
      };
      const made = audit(area.value, {
        name,
        context: context.value.trim() ? size(context, "context") : undefined,
        batch: size(batch, "batch"),
        cacheDtype: dtype.value,
      });
      report.replaceChildren(...show(made, status));
      const { total } = made.report.parameters;
      status.textContent = `Read: ${grouped(total)} parameters, ${warningsText(made.report.warnings.length)}.`;
    } catch (problem) {
      if (!(problem instanceof ConfigError || problem instanceof ValueError)) throw problem;
      if (problem instanceof ConfigError) area.setAttribute("aria-invalid", "true");
      error.textContent = problem.message;
    }
  }

  async function open(chosen) {
    if (!chosen) return;
    name = chosen.name;
    if (chosen.size > LARGEST_FILE) {
      area.value = "";
      run();
      error.textContent = `${name}: more than ${grouped(LARGEST_FILE)} bytes; no config.json is that long`;
      return;
    }
    try {
      area.value = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await chosen.arrayBuffer());
      run();
    } catch {
      error.textContent = `${name}: not UTF-8 text`;
    }
  }

  let waiting = 0;
  area.addEventListener("input", () => {
    name = "config.json";
    clearTimeout(waiting);
    waiting = setTimeout(run, WAIT_MS);
  });
  for (const each of [context, batch, dtype]) each.addEventListener("input", run);
  file.addEventListener("change", () => open(file.files[0]));
  host.addEventListener("dragover", (event) => event.preventDefault());
  host.addEventListener("drop", (event) => {
    event.preventDefault();
    open(event.dataTransfer.files[0]);
  });
  const example = () => {
    area.value = EXAMPLE;
    name = "config.json";
    run();
  };
  const field = (control, label) => element("span", { class: "tool-preset" }, element("label", { for: control.id }, label), control);
  host.replaceChildren(
    element("label", { for: area.id, class: "audit-label" }, "config.json, pasted or dropped here"),
    area,
    element(
      "div",
      { class: "tool-bar" },
      field(file, "or a file"),
      element("button", { type: "button", class: "tool-button", onclick: example }, "Fill in an example"),
    ),
    element("div", { class: "tool-bar" }, field(context, "Tokens"), field(batch, "Batch"), field(dtype, "Cache stored as")),
    error,
    status,
    report,
  );
  host.classList.add("tool");
}

const warningsText = (count) => (count === 1 ? "1 warning" : `${count || "no"} warnings`);

function show({ config, report }, status) {
  const { parameters, kv_cache: cache, flops, ratios, values, warnings } = report;
  const share = (part) => `${fixed((Number(part) / Number(parameters.total)) * 100, 1)}%`;
  const calculator = new URL(document.querySelector("a[href*='calculator']")?.href ?? location.href);
  calculator.hash = hashOf(config);
  return [
    section("Warnings", warnings.length ? element("ul", {}, warnings.map((each) => element("li", {}, each))) : "None."),
    section(
      `Parameters: model_type ${report.model_type ?? "absent"}`,
      rows(
        ["part", "parameters", "share"],
        Object.entries(parameters).map(([part, count]) => [part.replaceAll("_", " "), grouped(count), share(count)]),
      ),
    ),
    section(
      `Cache: ${grouped(cache.tokens)} tokens, batch ${cache.batch}, ${cache.dtype}`,
      rows(
        ["what", "bytes"],
        [
          ["one token", bytesText(cache.bytes_per_token)],
          ["every layer holds every token", bytesText(cache.bytes)],
          ["needed, windows applied", bytesText(cache.needed_bytes)],
        ],
      ),
    ),
    section(
      "FLOPs",
      rows(
        ["what", "FLOPs"],
        [
          ["weights, forward, one token", grouped(flops.forward_per_token_weights)],
          ["attention, one token, each key it sees", grouped(flops.attention_per_token_per_key)],
        ],
      ),
    ),
    section(
      "Ratios",
      rows(["what", "ratio"], Object.entries(ratios).map(([name, value]) => [RATIO_NAMES[name], fixed(value, 3)])),
    ),
    section(
      "Values, and how each is known",
      rows(
        ["field", "value", "origin", "key"],
        Object.entries(values).map(([name, { value, origin, key }]) => [name, cut(stringify(value)), origin, key ?? ""]),
      ),
    ),
    element(
      "div",
      { class: "tool-bar" },
      element(
        "button",
        { type: "button", class: "tool-button", onclick: () => copy(stringify(report, 2), "Report as JSON", status) },
        "Copy the report as JSON",
      ),
      element("a", { href: calculator.href }, "Change this design in the calculator"),
    ),
  ];
}

const cut = (text) => (text.length <= 48 ? text : `${text.slice(0, 45)}...`);

function section(title, ...content) {
  return element("section", {}, element("h3", {}, title), ...content);
}

function rows(heads, lines) {
  const head = element("tr", {}, heads.map((name) => element("th", { scope: "col" }, name)));
  const body = lines.map(([name, ...cells]) =>
    element("tr", {}, element("th", { scope: "row" }, name), cells.map((cell) => element("td", {}, cell))),
  );
  const table = element("table", { class: "tool-table" }, element("thead", {}, head), element("tbody", {}, body));
  return element("div", { class: "tool-scroll", role: "region", "aria-label": heads.join(", "), tabindex: "0" }, table);
}
