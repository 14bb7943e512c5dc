// Every field of a Config as a person meets it: label, unit, group, and the text that stands for its value.

import { CONFIG, FIELDS, PARTS } from "../generated/tables.js";
import { float } from "./python.js";

// Groups in the order of the form: title, the part it switches on, its fields with label and unit or hint.
export const GROUPS = [
  {
    title: "Sizes",
    open: true,
    fields: {
      width: ["Width d", "coordinates of the residual stream"],
      layers: ["Layers L", "blocks"],
      heads: ["Query heads H", "heads"],
      kv_heads: ["Key/value heads K", "heads; divides H"],
      head_width: ["Head width h", "coordinates; empty: d / H"],
      hidden: ["Hidden width m", "coordinates of the feed-forward part"],
      vocab: ["Vocabulary V", "rows of the token table"],
      context: ["Context", "tokens"],
      tied: ["Tied", "input table and output head are one"],
    },
  },
  {
    title: "Feed-forward",
    fields: {
      activation: ["Activation", ""],
      gated: ["Gated", "three matrices in place of two"],
      hidden_bias: ["Biases", "in its matrices"],
    },
  },
  {
    title: "Attention",
    fields: {
      attention_bias: ["Biases", "letters of qkvo: which projections have one"],
      qk_norm: ["QK-norm", "norms on queries and keys"],
      window: ["Window", "keys, the current one included; empty: all"],
      windowed_layers: ["Windowed layers", "numbers from 0, such as 0-2, 5; empty: every layer"],
      sinks: ["Sinks", "one learned logit a head"],
      attention_scale: ["Scale of scores", "empty: 1 / √h"],
      attention_softcap: ["Cap on scores", "empty: none"],
    },
  },
  {
    title: "Positions",
    fields: {
      positions: ["Positions", ""],
      rope_base: ["Rotary base", ""],
      rope_base_windowed: ["Rotary base, windowed layers", "empty: the same"],
      rotary_width: ["Rotated width", "coordinates of a head; empty: all"],
      rope_pairing: ["Pairing", ""],
      no_rope_layers: ["Layers without rotation", "numbers from 0"],
      position_rows: ["Rows of a learned table", "empty: context"],
    },
  },
  {
    title: "Norms and residual stream",
    fields: {
      norm: ["Norm", ""],
      norm_placement: ["Placement", ""],
      norm_scale: ["Trained scale", ""],
      norm_bias: ["Trained bias", "LayerNorm alone"],
      norm_eps: ["Epsilon", ""],
      final_norm: ["Final norm", ""],
      embedding_norm: ["Norm after the embedding", ""],
      block: ["Block", ""],
      parallel_norms: ["Norms of a parallel block", "1 or 2"],
      residual_scale: ["Residual scale", "α of x · α + branch"],
    },
  },
  {
    title: "Embedding and head",
    fields: {
      embedding_width: ["Embedding width", "coordinates of a row; empty: d"],
      embedding_scale: ["Embedding scale", ""],
      head_bias: ["Bias of the head", ""],
      logit_scale: ["Logit scale", ""],
      logit_softcap: ["Cap on logits", "empty: none"],
    },
  },
  {
    title: "Mixture of experts",
    part: "experts",
    fields: {
      count: ["Experts E", "routed experts of a layer"],
      per_token: ["Visited by a token k", "experts"],
      hidden: ["Hidden width of one", "coordinates"],
      shared: ["Shared experts", "visited by every token"],
      shared_hidden: ["Hidden width of the shared", "together; empty: shared · hidden"],
      shared_gate: ["Gate on the shared", ""],
      dense_layers: ["Dense layers", "numbers from 0"],
      router_bias: ["Router bias", "trained"],
      selection_bias: ["Selection bias", "a buffer, not counted"],
      bias: ["Biases in experts", ""],
      scores: ["Scores", ""],
      normalised: ["Weights sum to 1", ""],
      routed_scale: ["Scale of the routed part", ""],
      groups: ["Groups", "divide E"],
      groups_per_token: ["Groups of a token", ""],
      group_best: ["Scores that rank a group", ""],
    },
  },
  {
    title: "Latent attention",
    part: "latent",
    fields: {
      kv_rank: ["Key/value latent c", "cached coordinates"],
      rope_width: ["Rotary key r", "cached coordinates, shared by heads"],
      nope_width: ["Unrotated part n", "coordinates of a head"],
      value_width: ["Value width v", "coordinates of a head"],
      query_rank: ["Query latent q", "coordinates; empty: none"],
    },
  },
  {
    title: "Rotary scaling",
    part: "rope_scaling",
    fields: {
      kind: ["Kind", ""],
      factor: ["Factor", "new context / original context"],
      original_context: ["Original context", "tokens"],
      beta_fast: ["β fast", "YaRN: turns"],
      beta_slow: ["β slow", "YaRN: turns"],
      truncate: ["Whole pairs", "YaRN"],
      attention_factor: ["Attention factor", "empty: by the kind's rule"],
      mscale: ["mscale", "YaRN"],
      mscale_all_dim: ["mscale, all", "YaRN"],
      low_frequency: ["Low frequency factor", "Llama 3"],
      high_frequency: ["High frequency factor", "Llama 3"],
      short_factors: ["Short factors", "LongRoPE: one a pair"],
      long_factors: ["Long factors", "LongRoPE: one a pair"],
    },
  },
];

// What a part holds when it is switched on.
export const STARTS = {
  experts: { count: 8n, per_token: 2n, hidden: 2048n },
  latent: { kv_rank: 512n, rope_width: 64n, nope_width: 128n, value_width: 128n },
  rope_scaling: { kind: "linear", factor: 2n },
};

export const path = (part, field) => (part ? `${part}.${field}` : field);

// The text in which a value is typed.
export function textOf(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return typeof value[0] === "number" ? value.map(float).join(", ") : ranges(value);
  return typeof value === "number" ? float(value) : String(value);
}

function ranges(layers) {
  const runs = [];
  for (const layer of layers) {
    const last = runs.at(-1);
    if (last && last[1] + 1n === layer) last[1] = layer;
    else runs.push([layer, layer]);
  }
  return runs.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(", ");
}

const LONGEST_RANGE = 100_000n;

// The value of what was typed. What is no value of the field's kind stays text, for the Config to refuse.
export function valueOf(name, typed) {
  const { kind, optional } = FIELDS[name];
  const text = typed.trim();
  if (kind === "flag") return text === "yes" ? true : text === "no" ? false : text;
  if (kind === "choice" || kind === "text") return text;
  if (kind === "layers") return !text && optional ? null : list(text, layersOf);
  if (kind === "numbers") return list(text, (each) => [Number.isFinite(Number(each)) ? Number(each) : each]);
  if (!text && optional) return null;
  return numeral(text);
}

export function numeral(text) {
  const plain = text.replace(/(\d)[ _,](?=\d{3}(?!\d))/g, "$1"); // 32,000 and 32_000
  if (/^-?\d{1,40}$/.test(plain)) return BigInt(plain);
  return /^-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/.test(plain) ? Number(plain) : text;
}

function list(text, read) {
  if (!text) return [];
  const found = text.split(/\s*[,;]\s*|\s+/).map(read);
  return found.includes(null) ? text : found.flat();
}

function layersOf(text) {
  const found = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(text);
  if (!found) return null;
  const [from, to] = [BigInt(found[1]), BigInt(found[2] ?? found[1])];
  if (to < from || to - from > LONGEST_RANGE) return null;
  return Array.from({ length: Number(to - from) + 1 }, (_, i) => from + BigInt(i));
}

// What a form holds for the fields that a Config chooses: a text for each, and for a part whether it is there.
export function textsOf(stated) {
  const texts = new Map();
  for (const { part, fields } of GROUPS) {
    const chosen = part ? stated[part] : stated;
    if (part) texts.set(part, chosen ? "yes" : "no");
    const defaults = part ? { ...PARTS[part], ...STARTS[part] } : CONFIG;
    for (const field of Object.keys(fields)) {
      const own = chosen ? { ...(part ? PARTS[part] : CONFIG), ...chosen } : defaults;
      texts.set(path(part, field), textOf(own[field]));
    }
  }
  return texts;
}

// The other way: what the texts choose, ready for makeConfig.
export function statedBy(texts) {
  const stated = {};
  for (const { part, fields } of GROUPS) {
    if (part && texts.get(part) !== "yes") continue;
    const target = part ? (stated[part] = {}) : stated;
    for (const field of Object.keys(fields)) {
      const name = path(part, field);
      target[field] = valueOf(name, texts.get(name));
    }
  }
  return stated;
}
