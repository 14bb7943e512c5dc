// What a Config costs, from the generated formulas: the functions of decoder.budget under their names.

import { formulas, ratio } from "../generated/formulas.js";
import { BITS, LAYOUTS, PARAMETERS, UNITS, ZERO } from "../generated/tables.js";
import { ValueError, symbols } from "./config.js";
import { fixed, grouped, repr } from "./python.js";

function known(name, value, all) {
  if (!all.includes(value)) throw new ValueError(`${name} must be one of ${all.map(repr).join(", ")}, got ${repr(value)}`);
}

function whole(name, value) {
  if (typeof value !== "bigint" || value < 1n) {
    throw new ValueError(`${name} must be a whole number from 1, got ${repr(value)}`);
  }
}

const count = (name, config, sizes = {}) => formulas[name]({ ...symbols(config), ...sizes });
const asBytes = (stored, dtype) => (stored * BITS[dtype] + 7n) / 8n;

// Bytes exactly, then in a decimal and in a binary unit.
export function bytesText(number) {
  for (let power = UNITS.length; power > 0; power -= 1) {
    if (number >= 1024n ** BigInt(power)) {
      const [decimal, binary] = UNITS[power - 1];
      const in_decimal = fixed(ratio(number, 1000n ** BigInt(power)), 2);
      const in_binary = fixed(ratio(number, 1024n ** BigInt(power)), 2);
      const text = (amount) => amount.replace(/^\d+/, grouped);
      return `${grouped(number)} bytes (${text(in_decimal)} ${decimal}, ${text(in_binary)} ${binary})`;
    }
  }
  return `${grouped(number)} bytes`;
}

export function parameters(config) {
  return Object.fromEntries(PARAMETERS.map((name) => [name, count(name, config)]));
}

export function kvCache(config, tokens, batch, dtype) {
  known("dtype", dtype, Object.keys(BITS));
  whole("tokens", tokens);
  whole("batch", batch);
  const sizes = { T: tokens, B: batch, bits: BITS[dtype] };
  const short = new Set(config.windowed_layers);
  const full = count("cache_bytes_full_layer", config, sizes);
  const windowed = count("cache_bytes_windowed_layer", config, sizes);
  const layers = Array.from({ length: Number(config.layers) }, (_, i) => (short.has(BigInt(i)) ? windowed : full));
  return {
    tokens,
    batch,
    dtype,
    bytes_per_token: count("cache_bytes_per_token", config, sizes),
    bytes: count("cache_bytes", config, sizes),
    needed_bytes: count("cache_needed_bytes", config, sizes),
    layers,
  };
}

export function flops(config, tokens = 1n, batch = 1n, pairs = "causal") {
  known("pairs", pairs, ["causal", "halved", "all"]);
  whole("tokens", tokens);
  whole("batch", batch);
  const sizes = { T: tokens, B: batch };
  const weights = count("forward_weights", config, sizes);
  const attention = count(`attention_${pairs}`, config, sizes);
  return {
    forward_per_token_weights: count("forward_per_token_weights", config),
    attention_per_token_per_key: count("attention_per_token_per_key", config),
    weights,
    attention,
    forward: weights + attention,
    training: 3n * (weights + attention),
  };
}

export function weightBytes(config, dtype) {
  known("dtype", dtype, Object.keys(BITS));
  return count("weight_bytes", config, { bits: BITS[dtype] });
}

export function trainingMemory(config, layout, zero, devices) {
  known("layout", layout, Object.keys(LAYOUTS));
  whole("devices", devices);
  const parts = Object.entries(LAYOUTS[layout]).map(([part, each]) => {
    const share = ZERO[zero].includes(part) ? devices : 1n;
    return [part, each ? count("training_part", config, { n_b: each, D: share }) : 0n];
  });
  const total = parts.reduce((sum, [, bytes]) => sum + bytes, 0n);
  return { ...Object.fromEntries(parts), total };
}

export function activations(config, tokens, batch, dtype, scoresKept) {
  known("dtype", dtype, Object.keys(BITS));
  whole("tokens", tokens);
  whole("batch", batch);
  const sizes = { T: tokens, B: batch };
  const scores = scoresKept ? count("score_activations", config, sizes) : 0n;
  const dense = count("block_activations", config, sizes) + scores;
  const sparse = count("sparse_block_activations", config, sizes) + scores;
  const { L_f, L_e } = symbols(config);
  return {
    block: asBytes(L_f ? dense : sparse, dtype),
    total: asBytes(L_f * dense + L_e * sparse, dtype),
    logits: 4n * batch * tokens * config.vocab,
  };
}

// One decoding step: each of `batch` sequences gets a token that sees `tokens` keys, itself included.
export function decodeStep(config, tokens, batch, dtype, cacheDtype) {
  const cache = kvCache(config, tokens, batch, cacheDtype);
  const sizes = { T: tokens, B: batch, bits: BITS[dtype] };
  const step = {
    flops: count("decode_flops", config, sizes),
    weight_bytes: count("decode_weight_bytes", config, sizes),
    cache_bytes: cache.needed_bytes + kvCache(config, 1n, batch, cacheDtype).bytes,
  };
  return { ...step, ratio: ratio(step.flops, step.weight_bytes + step.cache_bytes) };
}

export function activeHidden(config) {
  const { experts } = config;
  if (!experts || BigInt(experts.dense_layers.length) === config.layers) return config.hidden;
  return experts.per_token * experts.hidden + experts.shared_hidden;
}

export function ratios(config) {
  return {
    ffn: ratio(activeHidden(config), config.width),
    aspect: ratio(config.width, config.layers),
    attention_width: ratio(config.heads * config.head_width, config.width),
  };
}
