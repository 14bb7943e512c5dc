// The calculator's figures: every number it shows for a Config, in order, with the unit and the convention it is under.

import { BITS, CONVENTIONS, LAYOUTS, ZERO } from "../generated/tables.js";
import { activations, decodeStep, flops, kvCache, parameters, ratios, trainingMemory, weightBytes } from "./budget.js";

// What a count needs besides the Config: label, the choices or "whole", the first value.
export const SETTING = {
  tokens: ["Tokens of a sequence T", "whole", "2048"],
  batch: ["Sequences at once B", "whole", "1"],
  dtype: ["Weights stored as", Object.keys(BITS), "bf16"],
  cache_dtype: ["Cache stored as", Object.keys(BITS), "bf16"],
  pairs: ["Attention pairs counted", ["causal", "halved", "all"], "causal"],
  layout: ["Training state a parameter", Object.keys(LAYOUTS), "16-byte"],
  zero: ["ZeRO stage", Object.keys(ZERO), "0"],
  devices: ["Devices", "whole", "1"],
  scores: ["Attention scores", ["not kept", "kept"], "not kept"],
};

const PART_NAMES = {
  embedding: "embedding",
  attention: "attention",
  feed_forward: "feed-forward",
  router: "router",
  norms: "norms",
  head: "head",
  other: "other",
  total: "total",
  active: "active",
  active_without_embedding: "active, without the embedding",
};

// [section, convention, [[name, label, unit, value]]]: values are exact (BigInt) but for ratios.
export function figures(config, setting) {
  const { tokens, batch, dtype, cache_dtype: cacheDtype, pairs, layout, zero, devices, scores } = setting;
  const counted = parameters(config);
  const cache = kvCache(config, tokens, batch, cacheDtype);
  const work = flops(config, tokens, batch, pairs);
  const training = trainingMemory(config, layout, zero, devices);
  const kept = activations(config, tokens, batch, dtype, scores === "kept");
  const step = decodeStep(config, tokens, batch, dtype, cacheDtype);
  const shape = ratios(config);
  return [
    [
      "Parameters",
      CONVENTIONS.parameters,
      Object.entries(PART_NAMES).map(([name, label]) => [name, label, "count", counted[name]]),
    ],
    [
      "Weights and cache",
      CONVENTIONS.cache,
      [
        ["weight_bytes", "weights", "bytes", weightBytes(config, dtype)],
        ["cache_bytes_per_token", "cache, one token", "bytes", cache.bytes_per_token],
        ["cache_bytes", "cache, every layer holds every token", "bytes", cache.bytes],
        ["cache_needed_bytes", "cache, windows applied", "bytes", cache.needed_bytes],
      ],
    ],
    [
      "FLOPs",
      CONVENTIONS.flops,
      [
        ["forward_per_token_weights", "weights, one token forward", "count", work.forward_per_token_weights],
        ["attention_per_token_per_key", "attention, one token, each key", "count", work.attention_per_token_per_key],
        ["forward", "all tokens forward", "count", work.forward],
        ["training", "all tokens, a training step", "count", work.training],
      ],
    ],
    [
      "Decoding step",
      CONVENTIONS.intensity,
      [
        ["decode_flops", "FLOPs", "count", step.flops],
        ["decode_bytes", "bytes moved", "bytes", step.weight_bytes + step.cache_bytes],
        ["intensity", "FLOPs a byte", "ratio", step.ratio],
      ],
    ],
    [
      "Training memory, one device",
      "Weights and gradients in 16 bits, two FP32 Adam moments, in the 16-byte layout an FP32 master copy; ZeRO by plain division, rounded up.",
      [...Object.keys(LAYOUTS[layout]), "total"].map((part) => [
        `training_${part}`,
        part === "master" ? "master copy" : part,
        "bytes",
        training[part],
      ]),
    ],
    [
      "Activations kept for the backward pass",
      CONVENTIONS.activations,
      [
        ["block_activations", "one block", "bytes", kept.block],
        ["activations", "all blocks", "bytes", kept.total],
        ["logits", "logits, FP32", "bytes", kept.logits],
      ],
    ],
    [
      "Ratios",
      "Hidden width of visited and shared experts together, where there are any.",
      [
        ["ffn", "hidden / width", "ratio", shape.ffn],
        ["aspect", "width / layers", "ratio", shape.aspect],
        ["attention_width", "heads · head width / width", "ratio", shape.attention_width],
      ],
    ],
  ];
}
