// A config.json read as decoder.config_json reads it, by the same tables. Where Python has code, this has a function of its name.

import { ratio } from "../generated/formulas.js";
import {
  ACTIVATIONS,
  FAMILIES,
  GENERIC,
  GENERIC_REFUSES,
  OTHER_NAMES,
  LARGEST,
  LARGEST_FILE,
  LARGEST_NUMBER,
  MOST_LAYERS,
} from "../generated/tables.js";
import { ValueError, experts, latentAttention, makeConfig, range, ropeScaling } from "./config.js";
import { equal, float, general, grouped, JsonError, parse, short } from "./python.js";

export class ConfigError extends Error {}

const ABSENT = undefined; // what `get` gives for a key that is not there
const DERIVED = null;
const KIND = { whole: "a whole number", number: "a number", flag: "true or false", activation: "an activation's name" };
const isObject = (value) => value instanceof Map;
const within = (value, all) => all.some((each) => equal(value, each));
const shown = (value) => (typeof value === "number" ? float(value) : String(value));

class ConfigFile {
  constructor(data, source) {
    this.data = data;
    this.source = source;
    this.values = new Map();
    this.notes = [];
    this.unsupported = [];
  }

  error(key, value, rule) {
    const text = value === ABSENT ? "absent" : `got ${short(value)}`;
    return new ConfigError(`${this.source}: ${key}: ${text}; ${rule}`);
  }

  get(name) {
    const [outer, inner] = name.split(".");
    const value = this.data.get(outer);
    if (inner === undefined) return value;
    if (value === ABSENT || value === null) return ABSENT;
    if (!isObject(value)) throw this.error(outer, value, "must be an object");
    return value.get(inner);
  }

  take(field, key) {
    const present = key.names.filter((name) => this.get(name) !== ABSENT);
    if (!present.length) {
      if (key.default === ABSENT) {
        throw this.error(key.names[0], ABSENT, `${field} has no default here, the file must state it`);
      }
      if (key.default === DERIVED) return DERIVED;
      return this.record(field, meant(key, key.default), "class default", key.names[0]);
    }
    const name = present[0];
    const value = this.get(name);
    for (const other of present.slice(1)) {
      const stated = this.get(other);
      if (!equal(stated, value)) throw this.error(other, stated, `must equal ${name}, which is ${short(value)}`);
    }
    if (value === null) {
      if (key.null === ABSENT) throw this.error(name, null, `must be ${KIND[key.kind]}`);
      return key.null === DERIVED ? DERIVED : this.record(field, key.null, "class default", name);
    }
    return this.record(field, this.check(name, value, key), "stated", name);
  }

  check(name, value, key) {
    if (key.kind === "whole") this.whole(name, value, key.least);
    else if (key.kind === "number") this.number(name, value);
    else if (key.kind === "flag" && typeof value !== "boolean") throw this.error(name, value, "must be true or false");
    else if (key.kind === "activation") {
      if (typeof value !== "string" || !Object.hasOwn(ACTIVATIONS, value)) {
        throw this.error(name, value, `must be one of ${Object.keys(ACTIVATIONS).join(", ")}`);
      }
      return ACTIVATIONS[value];
    }
    return meant(key, value);
  }

  whole(name, value, least = 1n, most = LARGEST) {
    if (typeof value !== "bigint") throw this.error(name, value, "must be a whole number");
    if (value < least || value > most) throw this.error(name, value, `must be from ${least} to ${grouped(most)}`);
    return value;
  }

  number(name, value) {
    if (typeof value !== "bigint" && typeof value !== "number") throw this.error(name, value, "must be a number");
    if (!(value > 0 && value <= LARGEST_NUMBER)) {
      throw this.error(name, value, `must be above 0 and at most ${general(LARGEST_NUMBER)}`);
    }
    return value;
  }

  record(field, value, origin, key = null) {
    this.values.set(field, { value, origin, key });
    return value;
  }

  derive(field, value, key = null) {
    return this.record(field, value, "derived", key);
  }

  named(field) {
    const { value, origin, key } = this.values.get(field);
    return `${key} ${shown(value)}${origin === "stated" ? "" : ` (${origin})`}`;
  }
}

const meant = (key, value) => (key.means ? key.means[String(value)] : value);
const key = (kind, names, more = {}) => ({ names: [names].flat(), kind, least: 1n, ...more });

// --- What decoder.model_types has as code, by its name there

function whole(file, name, absent, least = 1n) {
  const stated = file.get(name);
  return stated === ABSENT ? absent : file.whole(name, stated, least);
}

function stillLayers(file, layers) {
  const stated = file.get("no_rope_layers");
  if (stated === ABSENT || stated === null) {
    const step = whole(file, "no_rope_layer_interval", 4n);
    return range(layers).filter((layer) => (layer + 1n) % step === 0n);
  }
  const fits = Array.isArray(stated) && BigInt(stated.length) === layers && stated.every((each) => within(each, [0n, 1n]));
  if (!fits) throw file.error("no_rope_layers", stated, `must be ${layers} numbers, 1 where the layer rotates`);
  return range(layers).filter((layer) => equal(stated[layer], 0n));
}

const fromMaxWindowLayers = (layer, file) => layer >= whole(file, "max_window_layers", 28n, 0n);

const LAYERS = {
  every: (layer, file, { cycle_key, cycle }) => (layer + 1n) % (cycle_key ? whole(file, cycle_key, cycle) : cycle) !== 0n,
  from_max_window_layers: fromMaxWindowLayers,
  odd_below_max_window_layers: (layer, file) => layer % 2n === 0n && !fromMaxWindowLayers(layer, file),
  slides_where_still: (layer, file) => stillLayers(file, file.values.get("layers").value).includes(layer),
  dense_first: (layer, file, given) => layer < whole(file, "first_k_dense_replace", given.default, 0n),
  dense_by_step(layer, file) {
    const stated = file.get("mlp_only_layers");
    const named = stated ?? [];
    if (!Array.isArray(named) || named.some((each) => typeof each !== "bigint")) {
      throw file.error("mlp_only_layers", stated, "must be a list of layer numbers");
    }
    const step = whole(file, "decoder_sparse_step", 1n, 0n);
    return named.includes(layer) || step === 0n || (layer + 1n) % step !== 0n;
  },
};

const VALUES = {
  if_group_limited(file, { name, key: names }) {
    if (file.get("topk_method") !== "group_limited_greedy") return 1n;
    return file.take(`experts.${name}`, key("whole", names, { default: 1n, null: 1n }));
  },
};

function fourWidths(file, read) {
  if (read.hidden === DERIVED) read.hidden = file.derive("hidden", 4n * read.width);
}

function scaleByWidth(file, read) {
  read.embedding_scale = file.derive("embedding_scale", Math.sqrt(Number(read.width)));
}

const FINISH = {
  four_widths: fourWidths,
  gptj(file, read) {
    fourWidths(file, read);
    const rotated = file.take("rotary_width", key("whole", "rotary_dim", { default: 64n, null: DERIVED }));
    read.rotary_width = rotated === DERIVED ? read.width / read.heads : rotated;
  },
  neox(file, read) {
    read.parallel_norms = read.block === "parallel" ? 2n : 1n;
  },
  opt(file, read) {
    read.position_rows = file.derive("position_rows", read.context + 2n);
    const removed = file.take("final_norm", key("flag", "_remove_final_layer_norm", { default: false }));
    read.final_norm = file.derive("final_norm", read.norm_placement === "pre" && !removed);
    if (read.embedding_width === read.width) read.embedding_width = null;
  },
  falcon(file, read) {
    fourWidths(file, read);
    const flag = (name, absent) => file.take(name, key("flag", name, { default: absent, null: false }));
    const recent = flag("new_decoder_architecture", false);
    const shared = flag("multi_query", true);
    if (!recent) read.kv_heads = file.derive("kv_heads", shared ? 1n : read.heads, "multi_query");
    if (recent && read.block === "serial") {
      throw file.error("parallel_attn", false, "must be true where new_decoder_architecture is");
    }
    const norms = file.take("parallel_norms", key("whole", "num_ln_in_parallel_attn", { default: DERIVED, null: DERIVED }));
    read.parallel_norms = norms === DERIVED ? file.derive("parallel_norms", recent ? 2n : 1n) : norms;
    if (flag("alibi", false)) {
      read.positions = file.derive("positions", "alibi", "alibi");
      file.unsupported.push("alibi is true: Falcon scales the bias together with the scores, a Config does not");
    }
  },
  bloom(file, read) {
    read.hidden = file.derive("hidden", 4n * read.width);
    read.context = file.take("context", key("whole", "seq_length", { default: 2048n, null: 2048n }));
  },
  mpt(file, read) {
    const growth = file.take("expansion_ratio", key("whole", "expansion_ratio", { default: 4n }));
    if (growth !== 4n) {
      throw file.error("expansion_ratio", growth, "must be 4, the only ratio the released class builds");
    }
    read.hidden = file.derive("hidden", 4n * read.width, "expansion_ratio");
  },
  gemma(file, read) {
    scaleByWidth(file, read);
    if (read.activation === "gelu") read.activation = file.derive("activation", "gelu_tanh", "hidden_act");
  },
  gemma_scaled(file, read) {
    scaleByWidth(file, read);
    const scalar = file.take("attention_scale", key("number", "query_pre_attn_scalar", { default: 256n }));
    read.attention_scale = file.derive("attention_scale", Number(scalar) ** -0.5, "query_pre_attn_scalar");
  },
  smollm3(file, read) {
    read.no_rope_layers = file.derive("no_rope_layers", stillLayers(file, read.layers), "no_rope_layers");
  },
  cohere2(file, read) {
    const still = range(read.layers).filter((layer) => !read.windowed_layers.includes(layer));
    read.no_rope_layers = file.derive("no_rope_layers", still, "layer_types");
  },
  heads_fill_width(file, read) {
    if (read.heads * read.head_width !== read.width) {
      throw file.error("head_dim", read.head_width, `must be ${file.named("width")} / ${file.named("heads")}`);
    }
  },
  deepseek(file, read) {
    const { latent, rope_scaling: scaling } = read;
    const stated = file.get("head_dim");
    if (stated !== ABSENT && stated !== null && !equal(stated, latent.rope_width)) {
      throw file.error("head_dim", stated, `must be qk_rope_head_dim, ${latent.rope_width}, where it is stated`);
    }
    read.head_width = file.derive("head_width", latent.nope_width + latent.rope_width, "qk_nope_head_dim");
    read.kv_heads = file.derive("kv_heads", read.heads);
    if (scaling?.kind === "yarn" && scaling.mscale_all_dim) {
      const growth = 0.1 * scaling.mscale_all_dim * Math.log(scaling.factor) + 1;
      read.attention_scale = file.derive("attention_scale", Number(read.head_width) ** -0.5 * growth ** 2);
    }
  },
};

// --- Reading

// Reads the text of a config.json. Throws a ConfigError: one line with the file, the key, its value and the rule.
export function readConfig(text, name = "config.json") {
  if (new TextEncoder().encode(text).length > LARGEST_FILE) {
    throw new ConfigError(`${name}: more than ${grouped(LARGEST_FILE)} bytes; no config.json is that long`);
  }
  let data;
  try {
    data = parse(text, name);
  } catch (error) {
    throw error instanceof JsonError ? new ConfigError(error.message) : error;
  }
  if (!isObject(data)) throw new ConfigError(`${name}: must hold one JSON object, got a ${pythonType(data)}`);
  return read(new ConfigFile(textPart(data, name), name));
}

function pythonType(value) {
  if (value === null) return "NoneType";
  if (Array.isArray(value)) return "list";
  return { bigint: "int", number: "float", boolean: "bool", string: "str" }[typeof value];
}

function textPart(data, name) {
  const inner = data.get("text_config");
  if (inner === ABSENT || inner === null) return data;
  if (!isObject(inner)) throw new ConfigError(`${name}: text_config: got ${short(inner)}; must be an object`);
  const outer = new Map();
  if (data.has("tie_word_embeddings")) outer.set("tie_word_embeddings", data.get("tie_word_embeddings"));
  if (typeof data.get("model_type") === "string") outer.set("model_type", `${data.get("model_type")}_text`);
  return new Map([...outer, ...inner]);
}

const familyOf = (type) => (typeof type === "string" && Object.hasOwn(FAMILIES, type) ? FAMILIES[type] : GENERIC);

function read(file) {
  const type = file.get("model_type");
  if (type !== ABSENT && typeof type !== "string") throw file.error("model_type", type, "must be a string");
  const family = familyOf(type);
  if (family === GENERIC) {
    const text = type === ABSENT ? "absent" : short(type);
    for (const name of GENERIC_REFUSES) {
      const stated = file.get(name);
      if (stated !== ABSENT && !within(stated, [null, false, 0n])) {
        throw file.error(name, stated, `cannot be counted for an unknown model_type (${text})`);
      }
    }
    file.notes.push(
      `model_type ${text} is not known: read by its keys alone, as a pre-norm decoder with RMS norms, rotary ` +
        "positions and a gate where the activation is SiLU; biases, QK-norm and other parts that its class adds without a key are not counted",
    );
  }
  for (const [name, allowed] of Object.entries(family.only)) {
    const stated = file.get(name);
    if (stated !== ABSENT && !within(stated, allowed)) {
      throw file.error(name, stated, `must be ${allowed.map(short).join(" or ")}, nothing else is counted for ${type}`);
    }
  }
  for (const [name, allowed] of Object.entries(family.expressed)) {
    const stated = file.get(name);
    if (stated !== ABSENT && !within(stated, allowed)) {
      file.unsupported.push(`${name} is ${short(stated)}, which a Config does not express`);
    }
  }
  file.unsupported.push(...family.beyond);
  const made = Object.fromEntries(
    Object.entries(family.fields).map(([name, spec]) => [name, spec.key ? file.take(name, spec.key) : spec.value]),
  );
  if (family === GENERIC) made.gated = file.derive("gated", made.activation === "silu", "hidden_act");
  heads(file, family, made);
  if (family.latent) {
    const taken = Object.entries(family.latent).map(([name, spec]) => [name, file.take(`latent.${name}`, spec.key)]);
    made.latent = latentAttention(Object.fromEntries(taken));
  }
  windows(file, family.windows, made);
  rotary(file, family.rope, made);
  if (family.finish) FINISH[family.finish.name](file, made);
  routed(file, family, made);
  unread(file, family);
  try {
    const config = makeConfig(Object.fromEntries(Object.entries(made).filter(([, value]) => value !== DERIVED)));
    return {
      config,
      model_type: type ?? null,
      source: file.source,
      values: file.values,
      notes: file.notes,
      unsupported: file.unsupported,
    };
  } catch (error) {
    throw error instanceof ValueError ? new ConfigError(`${file.source}: ${withKey(error.message, file)}`) : error;
  }
}

function withKey(message, file) {
  const value = file.values.get(message.split(" ", 1)[0]);
  return value?.key ? `${value.key}: ${message}` : message;
}

function heads(file, family, made) {
  if (made.layers > MOST_LAYERS) {
    throw file.error(String(file.values.get("layers").key), made.layers, `must be at most ${grouped(MOST_LAYERS)}`);
  }
  made.kv_heads ??= file.derive("kv_heads", made.heads, family.fields.kv_heads?.key?.names[0] ?? null);
  if (made.heads % made.kv_heads) {
    const name = file.values.get("kv_heads").key ?? file.values.get("heads").key;
    throw file.error(String(name), made.kv_heads, `must divide ${file.named("heads")}`);
  }
  if (!family.latent && (made.head_width ?? DERIVED) === DERIVED) {
    if (made.width % made.heads) {
      const rule = `must divide ${file.named("width")} where no head_dim is stated`;
      throw file.error(String(file.values.get("heads").key), made.heads, rule);
    }
    made.head_width = file.derive("head_width", made.width / made.heads, "head_dim");
  }
}

function unread(file, family) {
  const keys = new Map(Object.entries(family.fields).flatMap(([field, spec]) => (spec.key ? [[field, spec.key.names]] : [])));
  const own = new Set([...keys.values()].flat());
  for (const name of file.data.keys()) {
    const field = Object.hasOwn(OTHER_NAMES, name) ? OTHER_NAMES[name] : null;
    const read = keys.has(field) && !own.has(name) ? file.values.get(field) : undefined;
    if (read && read.origin !== "stated") {
      const taken = `${field} is ${shown(read.value)} (${read.origin})`;
      file.notes.push(`${name} has no effect: the class reads ${keys.get(field).join(" or ")}; ${taken}`);
    }
  }
}

function windows(file, spec, made) {
  const types = file.get("layer_types");
  let sliding = null;
  if (types !== ABSENT && types !== null) {
    const known = ["full_attention", "sliding_attention"];
    if (!Array.isArray(types) || types.some((kind) => !known.includes(kind))) {
      throw file.error("layer_types", types, `must be a list of ${known.join(" and ")}`);
    }
    if (BigInt(types.length) !== made.layers) {
      throw file.error("layer_types", types, `must have one entry a layer, ${file.named("layers")}`);
    }
    sliding = range(made.layers).filter((layer) => types[layer] === "sliding_attention");
  }
  let window = null;
  if (spec) {
    window = file.take("window", spec.width.key);
    if (spec.switch.key && !file.take("use_sliding_window", spec.switch.key)) {
      if (file.values.delete("window") && window) {
        file.notes.push(`sliding_window is ${window}, but use_sliding_window is false: every layer sees all keys`);
      }
      window = null;
    }
  }
  if (sliding?.length && window === null) {
    throw file.error("sliding_window", null, `must be a whole number, ${sliding.length} of layer_types slide`);
  }
  if (window === null) {
    made.windowed_layers = [];
    return;
  }
  if (sliding === null) {
    const { slides } = spec;
    sliding = range(made.layers).filter((layer) => !slides || LAYERS[slides.name](layer, file, slides.given));
    file.derive("windowed_layers", sliding);
  } else {
    file.record("windowed_layers", sliding, "stated", "layer_types");
  }
  made.windowed_layers = sliding;
  made.window = sliding.length ? window : null;
}

function rotary(file, rope, made) {
  if (!rope) return;
  made.positions ??= "rotary";
  made.rope_pairing = rope.pairing;
  const [holder, every] = ropeParameters(file, rope);
  const nested = ["full_attention", "sliding_attention"].filter((kind) => isObject(every.get(kind)));
  const inner = (kind) => (nested.includes(kind) ? every.get(kind) : new Map());
  const full = nested.length ? inner("full_attention") : every;
  made.rope_base = ropeNumber(file, "rope_base", full, "rope_theta", rope.base_keys, rope.base, holder);
  if (rope.base_windowed !== null || nested.includes("sliding_attention")) {
    const own = inner("sliding_attention");
    const absent = rope.base_windowed || made.rope_base;
    const keys = ["rope_local_base_freq"];
    made.rope_base_windowed = ropeNumber(file, "rope_base_windowed", own, "rope_theta", keys, absent, holder);
    if (own.has("rope_type") && own.get("rope_type") !== "default") {
      file.unsupported.push("rope_parameters scale the windowed layers, which a Config does not express");
    }
  }
  if (!("latent" in made)) {
    const part = ropeNumber(file, "rotary_part", full, "partial_rotary_factor", rope.part_keys, rope.part, holder, 1);
    const rotated = file.derive("rotary_width", BigInt(Math.trunc(Number(made.head_width) * part)));
    if (rotated < 2n || rotated % 2n) {
      const origin = `${file.named("width")}, ${file.named("heads")}, head_dim ${file.values.get("head_width").origin}`;
      const rule = `must rotate an even number of coordinates, got ${rotated} of ${made.head_width} (${origin})`;
      throw file.error(file.values.get("rotary_part").key ?? "", part, rule);
    }
    made.rotary_width = rotated;
  }
  made.rope_scaling = scaling(file, rope, full, made, holder);
}

function ropeParameters(file, rope) {
  for (const name of ["rope_scaling", "rope_parameters"]) {
    const stated = file.get(name);
    if (stated === ABSENT || stated === null) continue;
    if (!isObject(stated)) throw file.error(name, stated, "must be an object");
    return [name, stated];
  }
  return ["rope_parameters", new Map(Object.entries(rope.scaling ?? {}))];
}

function ropeNumber(file, field, stated, name, outer, absent, holder, most = LARGEST_NUMBER) {
  const places = [[`${holder}.${name}`, stated.get(name)], ...outer.map((other) => [other, file.get(other)])];
  for (const [place, value] of places) {
    if (value === null || value === ABSENT) continue;
    file.number(place, value);
    if (value > most) throw file.error(place, value, `must be at most ${general(most)}`);
    file.record(field, value, "stated", place);
    return Number(value);
  }
  return file.record(field, absent, "class default", name);
}

const SCALING_KEYS = {
  attention_factor: "attention_factor",
  mscale: "mscale",
  mscale_all_dim: "mscale_all_dim",
  beta_fast: "beta_fast",
  beta_slow: "beta_slow",
  low_freq_factor: "low_frequency",
  high_freq_factor: "high_frequency",
};

function scaling(file, rope, stated, made, holder) {
  let kind = stated.has("rope_type") ? stated.get("rope_type") : stated.has("type") ? stated.get("type") : "default";
  if (typeof kind !== "string") throw file.error(`${holder}.rope_type`, kind, "must be a string");
  if (Object.hasOwn(rope.kinds, kind)) kind = rope.kinds[kind];
  if (kind === "default") return null;
  if (!["linear", "dynamic", "yarn", "llama3", "longrope"].includes(kind)) {
    file.unsupported.push(`${holder}.rope_type is ${short(kind)}, which a Config does not express`);
    return null;
  }
  const optional = (name) => {
    const value = stated.get(name) ?? null;
    return value === null ? null : Number(file.number(`${holder}.${name}`, value));
  };
  const outer = file.get("original_max_position_embeddings") ?? null;
  const original = outer ?? stated.get("original_max_position_embeddings") ?? null;
  const chosen = {
    kind,
    original_context: original === null ? made.context : file.whole("original_max_position_embeddings", original),
  };
  chosen.factor = optional("factor");
  if (chosen.factor === null) {
    if (kind !== "yarn" && kind !== "longrope") {
      throw file.error(`${holder}.factor`, ABSENT, `rope_type ${kind} needs it`);
    }
    chosen.factor = ratio(made.context, chosen.original_context);
  }
  for (const [name, field] of Object.entries(SCALING_KEYS)) {
    const value = stated.get(name) ?? null;
    if (value !== null && !equal(value, 0n)) chosen[field] = optional(name);
  }
  if (stated.has("truncate")) chosen.truncate = truth(stated.get("truncate"));
  if (kind === "longrope") {
    for (const [name, field] of [["short_factor", "short_factors"], ["long_factor", "long_factors"]]) {
      const numbers = stated.get(name) ?? null;
      if (!Array.isArray(numbers)) {
        throw file.error(`${holder}.${name}`, numbers, "must be a list of numbers, one per rotated pair");
      }
      chosen[field] = numbers.map((value) => Number(file.number(`${holder}.${name}`, value)));
    }
  }
  try {
    return file.derive("rope_scaling", ropeScaling(chosen), holder);
  } catch (error) {
    throw error instanceof ValueError ? new ConfigError(`${file.source}: ${holder}: ${error.message}`) : error;
  }
}

function truth(value) {
  if (Array.isArray(value)) return value.length > 0;
  return isObject(value) ? value.size > 0 : Boolean(value);
}

function routed(file, family, made) {
  if (!family.experts) return;
  const chosen = {};
  for (const [name, spec] of Object.entries(family.experts)) {
    if (spec.value === "hidden") {
      chosen[name] = made.hidden;
      file.values.set("experts.hidden", file.values.get("hidden"));
    } else if (spec.code) {
      chosen[name] = VALUES[spec.code.name](file, spec.code.given);
    } else {
      chosen[name] = spec.key ? file.take(`experts.${name}`, spec.key) : spec.value;
    }
  }
  const rule = family.dense_layer;
  chosen.dense_layers = range(made.layers).filter((layer) => rule && LAYERS[rule.name](layer, file, rule.given));
  file.derive("experts.dense_layers", chosen.dense_layers);
  try {
    made.experts = experts(chosen);
  } catch (error) {
    throw error instanceof ValueError ? new ConfigError(`${file.source}: ${withKey(error.message, file)}`) : error;
  }
}
