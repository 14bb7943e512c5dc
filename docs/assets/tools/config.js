// A Config as decoder.config makes it: the same fields, the same checks with the same words, the same derived values. Whole
// numbers are BigInts, other numbers are numbers, a tuple is an array.

import { CHOICES, CONFIG, NORMS_PER_LAYER, PARTS } from "../generated/tables.js";
import { float, repr } from "./python.js";

export class ValueError extends Error {}

const refuse = (message) => {
  throw new ValueError(message);
};
const isNumber = (value) => typeof value === "bigint" || typeof value === "number";
const given = (value) => value !== null && value !== undefined;
const shown = (value) => (typeof value === "number" ? float(value) : String(value));

function whole(name, value, least) {
  if (typeof value !== "bigint" || value < least) {
    refuse(`${name} must be a whole number from ${least}, got ${repr(value)}`);
  }
}

function number(name, value) {
  if (!isNumber(value) || !Number.isFinite(Number(value)) || value <= 0) {
    refuse(`${name} must be a finite number above 0, got ${repr(value)}`);
  }
}

function choice(name, value) {
  const known = CHOICES[name];
  if (!known.includes(value)) refuse(`${name} must be one of ${known.map(repr).join(", ")}, got ${repr(value)}`);
}

function layerNumbers(name, value, layers) {
  if (!Array.isArray(value) || value.some((layer) => typeof layer !== "bigint")) {
    refuse(`${name} must be a tuple of layer numbers, got ${repr(value)}`);
  }
  const rising = value.every((layer, i) => i === 0 || value[i - 1] < layer);
  if (!rising || (value.length && !(value[0] >= 0n && value.at(-1) < layers))) {
    refuse(`${name} must be rising layer numbers from 0 to ${layers - 1n}, got ${repr(value)}`);
  }
}

export const range = (count) => Array.from({ length: Number(count) }, (_, i) => BigInt(i));

// --- The parts

export function ropeScaling(stated) {
  const made = { ...PARTS.rope_scaling, ...stated };
  choice("rope_scaling.kind", made.kind);
  number("rope_scaling.factor", made.factor);
  whole("rope_scaling.original_context", made.original_context, made.kind === "longrope" ? 2n : 1n);
  for (const name of ["beta_fast", "beta_slow", "low_frequency", "high_frequency"]) {
    number(`rope_scaling.${name}`, made[name]);
  }
  for (const name of ["attention_factor", "mscale", "mscale_all_dim"]) {
    if (given(made[name])) number(`rope_scaling.${name}`, made[name]);
  }
  for (const name of ["short_factors", "long_factors"]) {
    [...made[name]].forEach((value, i) => number(`rope_scaling.${name}[${i}]`, value));
  }
  if (made.kind === "llama3" && made.high_frequency <= made.low_frequency) {
    refuse(
      "rope_scaling.high_frequency must be above rope_scaling.low_frequency, " +
        `got ${shown(made.high_frequency)} and ${shown(made.low_frequency)}`,
    );
  }
  if (made.kind === "longrope" && (!made.short_factors.length || made.short_factors.length !== made.long_factors.length)) {
    refuse(
      "rope_scaling.short_factors and long_factors must hold one number per rotated pair each, " +
        `got ${made.short_factors.length} and ${made.long_factors.length}`,
    );
  }
  return made;
}

export function latentAttention(stated) {
  const made = { ...PARTS.latent, ...stated };
  for (const [name, value] of Object.entries(made)) {
    if (name !== "query_rank" || given(value)) whole(`latent.${name}`, value, 1n);
  }
  return made;
}

export function experts(stated) {
  const made = { ...PARTS.experts, ...stated };
  whole("experts.count", made.count, 1n);
  whole("experts.per_token", made.per_token, 1n);
  whole("experts.hidden", made.hidden, 1n);
  whole("experts.shared", made.shared, 0n);
  if (made.per_token > made.count) {
    refuse(`experts.per_token must be at most experts.count ${made.count}, got ${made.per_token}`);
  }
  choice("experts.scores", made.scores);
  number("experts.routed_scale", made.routed_scale);
  groups(made);
  if (!given(made.shared_hidden)) made.shared_hidden = made.shared * made.hidden;
  whole("experts.shared_hidden", made.shared_hidden, made.shared ? 1n : 0n);
  return made;
}

function groups({ count, per_token, groups, groups_per_token, group_best }) {
  whole("experts.groups", groups, 1n);
  whole("experts.groups_per_token", groups_per_token, 1n);
  whole("experts.group_best", group_best, 1n);
  if (count % groups) refuse(`experts.groups must divide experts.count ${count}, got ${groups}`);
  if (groups_per_token > groups) {
    refuse(`experts.groups_per_token must be at most experts.groups ${groups}, got ${groups_per_token}`);
  }
  const size = count / groups;
  if (groups_per_token < groups && group_best > size) {
    refuse(`experts.group_best must be at most the ${size} experts of a group, got ${group_best}`);
  }
  if (per_token > groups_per_token * size) {
    refuse(
      `experts.per_token must be at most the ${groups_per_token * size} experts of ` +
        `experts.groups_per_token groups, got ${per_token}`,
    );
  }
}

const MAKE = { rope_scaling: ropeScaling, latent: latentAttention, experts };

// --- The whole

// The Config that `stated` chooses, every field filled in. Throws a ValueError in the words of decoder.config.
export function makeConfig(stated = {}) {
  const made = { ...CONFIG, ...stated };
  for (const [name, make] of Object.entries(MAKE)) if (given(made[name])) made[name] = make(made[name]);
  for (const name of ["vocab", "width", "layers", "heads", "kv_heads", "hidden", "context"]) whole(name, made[name], 1n);
  if (!given(made.head_width)) {
    if (made.width % made.heads) {
      refuse(`width must be divisible by heads when head_width is not given, got ${made.width} and ${made.heads}`);
    }
    made.head_width = made.width / made.heads;
  }
  whole("head_width", made.head_width, 1n);
  if (made.heads % made.kv_heads) {
    refuse(`heads must be divisible by kv_heads, got ${made.heads} and ${made.kv_heads}`);
  }
  for (const name of Object.keys(CHOICES)) if (!name.includes(".")) choice(name, made[name]);
  for (const name of ["norm_eps", "rope_base", "residual_scale", "embedding_scale", "logit_scale"]) {
    number(name, made[name]);
  }
  for (const name of ["rope_base_windowed", "attention_scale", "attention_softcap", "logit_softcap"]) {
    if (given(made[name])) number(name, made[name]);
  }
  for (const [name, value] of Object.entries(CONFIG)) {
    if (typeof value === "boolean" && typeof made[name] !== "boolean") {
      refuse(`${name} must be True or False, got ${repr(made[name])}`);
    }
  }
  checkPositions(made);
  checkAttention(made);
  checkBlock(made);
  return made;
}

function checkPositions(made) {
  const limit = made.latent ? made.latent.rope_width : made.head_width;
  if (!given(made.rotary_width)) made.rotary_width = limit;
  whole("rotary_width", made.rotary_width, 1n);
  if (made.positions === "rotary" && (made.rotary_width % 2n || made.rotary_width > limit)) {
    refuse(
      `rotary_width must be even and at most ${limit}, the width of a rotated head, got ${made.rotary_width}`,
    );
  }
  const scaling = made.rope_scaling;
  const kind = scaling?.kind;
  if ((kind === "ntk" || kind === "dynamic") && made.rotary_width < 4n) {
    refuse(`rotary_width must be at least 4 for rope_scaling.kind ${repr(kind)}, got ${made.rotary_width}`);
  }
  if (kind === "yarn" && made.rope_base <= 1) {
    refuse(`rope_base must be above 1 for rope_scaling.kind 'yarn', got ${shown(made.rope_base)}`);
  }
  if (kind === "longrope" && BigInt(scaling.short_factors.length) * 2n !== made.rotary_width) {
    refuse(
      `rope_scaling.short_factors must hold ${made.rotary_width / 2n} numbers, one per rotated pair, ` +
        `got ${scaling.short_factors.length}`,
    );
  }
  layerNumbers("no_rope_layers", made.no_rope_layers, made.layers);
  if (!given(made.position_rows)) made.position_rows = made.context;
  whole("position_rows", made.position_rows, made.context);
}

function checkAttention(made) {
  const bias = made.attention_bias;
  if (typeof bias !== "string" || bias !== [..."qkvo"].filter((letter) => bias.includes(letter)).join("")) {
    refuse(`attention_bias must be letters of 'qkvo' in that order, got ${repr(bias)}`);
  }
  if (given(made.window)) {
    whole("window", made.window, 1n);
    made.windowed_layers ??= range(made.layers);
    layerNumbers("windowed_layers", made.windowed_layers, made.layers);
  } else if (made.windowed_layers?.length) {
    refuse(`windowed_layers needs a window, got ${repr(made.windowed_layers)} and window None`);
  } else {
    made.windowed_layers = [];
  }
}

function checkBlock(made) {
  if (made.parallel_norms !== 1n && made.parallel_norms !== 2n) {
    refuse(`parallel_norms must be 1 or 2, got ${repr(made.parallel_norms)}`);
  }
  if (made.block === "parallel" && made.norm_placement !== "pre") {
    refuse(`a parallel block needs norm_placement 'pre', got ${repr(made.norm_placement)}`);
  }
  if (made.norm_bias && (made.norm !== "layer" || made.norm_scale === "none")) {
    refuse("norm_bias belongs to a LayerNorm with a scale");
  }
  if (given(made.embedding_width)) whole("embedding_width", made.embedding_width, 1n);
  if (made.experts) layerNumbers("experts.dense_layers", made.experts.dense_layers, made.layers);
}

// The field that a ValueError is about: the first word of its message that names one.
export function fieldOf(message) {
  const words = message.match(/[a-z_]+(?:\.[a-z_]+)?/g) ?? [];
  return words.find((word) => {
    const [part, field] = word.split(".");
    return field ? part in PARTS && field in PARTS[part] : word in CONFIG;
  });
}

// --- The book's symbols, as decoder.notation gives them

export function symbols(config) {
  const { latent, experts: routed } = config;
  const dense = routed ? BigInt(routed.dense_layers.length) : config.layers;
  const has = (yes) => (yes ? 1n : 0n);
  const bias = (letter) => has(config.attention_bias.includes(letter));
  return {
    d: config.width,
    L: config.layers,
    H: config.heads,
    K: config.kv_heads,
    h: config.head_width,
    m: config.hidden,
    V: config.vocab,
    e: config.embedding_width ?? config.width,
    P: config.positions === "learned" ? config.position_rows : 0n,
    g: config.gated ? 3n : 2n,
    N: config.block === "parallel" ? config.parallel_norms : NORMS_PER_LAYER[config.norm_placement],
    p: has(config.norm_scale !== "none") + has(config.norm_bias),
    c: latent?.kv_rank ?? 0n,
    r: latent?.rope_width ?? 0n,
    n: latent?.nope_width ?? 0n,
    v: latent?.value_width ?? 0n,
    q: latent?.query_rank ?? 0n,
    z: has(given(latent?.query_rank)),
    E: routed?.count ?? 0n,
    k: routed?.per_token ?? 0n,
    m_e: routed?.hidden ?? 0n,
    m_s: routed?.shared_hidden ?? 0n,
    y: has(routed && routed.shared > 0n && routed.shared_gate),
    b_r: has(routed?.router_bias),
    b_e: has(routed?.bias),
    w: config.window ?? 0n,
    a: has(latent),
    L_w: BigInt(config.windowed_layers.length),
    L_f: dense,
    L_e: config.layers - dense,
    b_q: bias("q"),
    b_k: bias("k"),
    b_v: bias("v"),
    b_o: bias("o"),
    b_m: has(config.hidden_bias),
    b_h: has(config.head_bias),
    u: has(!config.tied),
    x: has(given(config.embedding_width)),
    s: has(config.sinks),
    n_f: has(config.final_norm),
    n_e: has(config.embedding_norm),
    q_1: has(config.qk_norm === "head"),
    q_h: has(config.qk_norm === "full" || config.qk_norm === "per_head_weights"),
  };
}

// The Config as a call in Python: what differs from the defaults.
export function pythonCall(stated) {
  const call = (name, fields, defaults) => {
    const chosen = Object.entries(fields).filter(([field, value]) => given(value) && repr(value) !== repr(defaults[field]));
    const words = chosen.map(([field, value]) => `${field}=${field in MAKE ? part(field, value) : repr(value)}`);
    return `${name}(${words.join(", ")})`;
  };
  const names = { rope_scaling: "RopeScaling", latent: "LatentAttention", experts: "Experts" };
  const part = (field, value) => call(names[field], value, PARTS[field]);
  const used = Object.keys(MAKE).filter((field) => given(stated[field])).map((field) => names[field]);
  return `from decoder.config import ${["Config", ...used].sort().join(", ")}\n\nconfig = ${call("Config", stated, CONFIG)}\n`;
}

