// A Config as the config.json of a released model class, where one of those that the audit knows has this shape.

import { ACTIVATIONS, FAMILIES } from "../generated/tables.js";
import { ratio } from "../generated/formulas.js";
import { ConfigError, readConfig } from "./config_json.js";
import { range } from "./config.js";
import { repr, stringify } from "./python.js";

const SCALING = {
  factor: "factor",
  attention_factor: "attention_factor",
  mscale: "mscale",
  mscale_all_dim: "mscale_all_dim",
  beta_fast: "beta_fast",
  beta_slow: "beta_slow",
  low_frequency: "low_freq_factor",
  high_frequency: "high_freq_factor",
  original_context: "original_max_position_embeddings",
};

// {model_type, text, note} for the first class that reads back as this very Config, `first` tried before the others; else
// null. Pairing moves no weight count and differs between a class and its port, so it is only noted.
export function configJson(config, first = "llama") {
  for (const type of [first, ...Object.keys(FAMILIES)]) {
    if (!Object.hasOwn(FAMILIES, type)) continue;
    const text = `${stringify(write(config, type, FAMILIES[type]), 2)}\n`;
    try {
      const { config: back, unsupported } = readConfig(text);
      const differing = unlike(config, back);
      if (unsupported.length || differing.some((name) => name !== "rope_pairing")) continue;
      return { model_type: type, text, note: differing.length ? pairing(type, config, back) : "" };
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
    }
  }
  return null;
}

const pairing = (type, config, back) =>
  `${type} pairs rotary coordinates "${back.rope_pairing}", this Config "${config.rope_pairing}": the counts are the same, ` +
  "weights would have to be reordered.";

function unlike(one, other) {
  return Object.keys(one).filter((name) => !alike(one[name], other[name]));
}

function alike(one, other) {
  if (typeof one === "number" || typeof other === "number") {
    return one !== null && other !== null && Math.abs(Number(one) - Number(other)) <= 1e-12 * Math.abs(Number(one));
  }
  if (one && other && typeof one === "object" && !Array.isArray(one)) return unlike(one, other).length === 0;
  if (Array.isArray(one) && Array.isArray(other)) return one.length === other.length && one.every((v, i) => alike(v, other[i]));
  return repr(one) === repr(other);
}

function write(config, type, family) {
  const file = { model_type: type };
  for (const [name, spec] of Object.entries(family.fields)) if (spec.key) state(file, spec.key, config[name]);
  for (const [name, spec] of Object.entries(family.latent ?? {})) state(file, spec.key, config.latent?.[name]);
  for (const [name, spec] of Object.entries(family.experts ?? {})) if (spec.key) state(file, spec.key, config.experts?.[name]);
  denseLayers(file, config, family.dense_layer);
  if (family.rope && config.positions === "rotary") rotary(file, config, family.rope);
  if (family.windows) window(file, config, family.windows);
  if (config.no_rope_layers.length) {
    file.no_rope_layers = range(config.layers).map((layer) => (config.no_rope_layers.includes(layer) ? 0n : 1n));
  }
  return file;
}

function state(file, key, value) {
  if (value === null || value === undefined) {
    if ("null" in key) put(file, key.names[0], null);
    return;
  }
  put(file, key.names[0], stated(key, value));
}

function put(file, name, value) {
  const [outer, inner] = name.split(".");
  if (inner) (file[outer] ??= {})[inner] = value;
  else file[outer] = value;
}

function stated(key, value) {
  const known = key.kind === "activation" ? ACTIVATIONS : key.means;
  if (!known) return value;
  const name = Object.keys(known).find((each) => known[each] === value);
  return key.kind === "activation" ? (value === "gelu_tanh" ? "gelu_new" : name) : name === "true";
}

function denseLayers(file, config, rule) {
  const dense = config.experts?.dense_layers ?? [];
  if (rule?.name === "dense_first") file.first_k_dense_replace = BigInt(dense.length);
  if (rule?.name === "dense_by_step") file.mlp_only_layers = dense;
}

function rotary(file, config, rope) {
  file[rope.base_keys[0]] = config.rope_base;
  if (rope.part_keys.length) file[rope.part_keys[0]] = ratio(config.rotary_width, config.head_width);
  if (config.rope_base_windowed !== null && rope.base_windowed !== null) {
    file.rope_local_base_freq = config.rope_base_windowed;
  }
  const scaling = config.rope_scaling;
  if (!scaling) return;
  const object = { rope_type: scaling.kind };
  for (const [name, key] of Object.entries(SCALING)) if (scaling[name] !== null) object[key] = scaling[name];
  if (!scaling.truncate) object.truncate = false;
  if (scaling.kind === "longrope") {
    object.short_factor = scaling.short_factors;
    object.long_factor = scaling.long_factors;
  }
  file.rope_scaling = object;
}

function window(file, config, windows) {
  file[windows.width.key.names[0]] = config.window;
  if (windows.switch.key) file[windows.switch.key.names[0]] = config.window !== null;
  if (config.window === null) return;
  file.layer_types = range(config.layers).map((layer) =>
    config.windowed_layers.includes(layer) ? "sliding_attention" : "full_attention",
  );
}
