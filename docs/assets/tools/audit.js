// The audit of a config.json: the report of `python -m decoder audit --json`, made in the browser.

import { ASPECTS, BITS, CONVENTIONS, NARROWEST_HEAD, WIDEST_HEAD } from "../generated/tables.js";
import { ratio } from "../generated/formulas.js";
import { flops, kvCache, parameters, ratios } from "./budget.js";
import { readConfig } from "./config_json.js";
import { fixed, grouped } from "./python.js";

// The report as plain data. Throws a ConfigError for a file that cannot be read, a ValueError for a size that is none.
export function audit(text, { name, context, batch = 1n, cacheDtype = "bf16" } = {}) {
  const reading = readConfig(text, name);
  const { config } = reading;
  const cache = kvCache(config, context ?? config.context, batch, cacheDtype);
  const { forward_per_token_weights, attention_per_token_per_key } = flops(config);
  const { layers, ...figures } = cache;
  return {
    config,
    report: {
      file: reading.source,
      model_type: reading.model_type,
      parameters: parameters(config),
      kv_cache: {
        ...figures,
        gigabytes: ratio(cache.bytes, 10n ** 9n),
        gibibytes: ratio(cache.bytes, 2n ** 30n),
        needed_gigabytes: ratio(cache.needed_bytes, 10n ** 9n),
        needed_gibibytes: ratio(cache.needed_bytes, 2n ** 30n),
        layers,
        convention: CONVENTIONS.cache,
      },
      flops: { forward_per_token_weights, attention_per_token_per_key, convention: CONVENTIONS.flops },
      ratios: ratios(config),
      values: Object.fromEntries([...reading.values].sort(([a], [b]) => (a < b ? -1 : 1))),
      warnings: warnings(reading, cache),
    },
  };
}

function warnings({ config, notes, unsupported, values }, cache) {
  const shape = ratios(config);
  const found = [...notes, ...unsupported.map((reason) => `cannot be loaded as it is: ${reason}`)];
  const [usual, name] = config.gated ? [8 / 3, "8/3 of a gated"] : [4, "4 of a plain"];
  if (!(usual / 2 <= shape.ffn && shape.ffn <= usual * 2)) {
    found.push(
      `feed-forward ratio ${fixed(shape.ffn, 2)} is more than a factor 2 from the usual ${name} feed-forward part`,
    );
  }
  if (!(ASPECTS[0] <= shape.aspect && shape.aspect <= ASPECTS[1])) {
    const [least, most] = ASPECTS.map((aspect) => fixed(aspect, 0));
    found.push(`width / layers is ${fixed(shape.aspect, 1)}; most released decoders lie between ${least} and ${most}`);
  }
  if (!config.latent && shape.attention_width !== 1) {
    found.push(
      `heads x head_width is ${grouped(config.heads * config.head_width)}, not the width ${grouped(config.width)}: ` +
        "a cache computed from width / heads would be wrong",
    );
  }
  if (config.head_width < NARROWEST_HEAD || config.head_width > WIDEST_HEAD) {
    found.push(
      `head_width ${config.head_width} is outside ${NARROWEST_HEAD} to ${WIDEST_HEAD}, where attention kernels are tuned`,
    );
  }
  if (config.vocab % 64n) {
    found.push(
      `vocab ${grouped(config.vocab)} is no multiple of 64: the head's matrix product runs on whole tiles, and padded ` +
        "rows are cheap",
    );
  }
  if (values.get("head_width")?.origin === "class default") {
    found.push(`head_dim is absent: the class takes ${config.head_width}, not width / heads`);
  }
  if (values.get("tied")?.origin === "class default") {
    const kind = config.tied ? "ties" : "does not tie";
    found.push(
      `tie_word_embeddings is absent: the class ${kind}; that is ${grouped(config.vocab * config.width)} parameters`,
    );
  }
  if (config.window && cache.needed_bytes < cache.bytes) {
    found.push(
      `${config.windowed_layers.length} of ${config.layers} layers see ${grouped(config.window)} keys: at ` +
        `${grouped(cache.tokens)} tokens ${grouped(cache.needed_bytes)} bytes are needed, ${grouped(cache.bytes)} where ` +
        "every layer has room for all tokens",
    );
  }
  if (config.experts?.selection_bias) {
    const routed = config.layers - BigInt(config.experts.dense_layers.length);
    found.push(
      `${grouped(routed * config.experts.count)} router correction values are stored with the weights but are not ` +
        "trained parameters; they are not counted",
    );
  }
  if (cache.tokens > config.context) {
    found.push(
      `${grouped(cache.tokens)} tokens are beyond the context of ${grouped(config.context)} that the file states`,
    );
  }
  return found;
}

export const DTYPES = Object.keys(BITS);
