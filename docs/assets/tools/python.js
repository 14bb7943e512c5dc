// JSON as Python reads and writes it, so that the browser's report is the command line's to the letter. A whole number is a
// BigInt, a float a number, an object a Map.

export class JsonError extends Error {}

const DEEPEST = 900;
const LONGEST_INTEGER = 4300; // digits that Python converts
const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?/y;
const SPACE = /[ \t\n\r]*/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPES = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
const CONSTANTS = [["null", null], ["true", true], ["false", false]];

// The value of a JSON text. Throws a JsonError whose message leads with `name`, as decoder.config_json words it.
export function parse(text, name) {
  const refuse = (message) => new JsonError(`${name}: ${message}`);
  let at = 0;

  function fault(message, where) {
    const before = text.slice(0, where);
    const row = before.split("\n").length;
    const column = [...before.slice(before.lastIndexOf("\n") + 1)].length + 1;
    return new JsonError(`${name}:${row}:${column}: not JSON: ${message}`);
  }

  function match(pattern) {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at = pattern.lastIndex;
    return found;
  }

  function string() {
    const begin = at;
    let value = "";
    at += 1;
    for (;;) {
      value += match(PLAIN)[0];
      const next = text[at];
      if (next === undefined) throw fault("Unterminated string starting at", begin);
      if (next === '"') {
        at += 1;
        return value;
      }
      if (next !== "\\") throw fault("Invalid control character at", at);
      const letter = text[at + 1];
      if (letter === undefined) throw fault("Unterminated string starting at", begin);
      if (letter === "u") {
        const code = text.slice(at + 2, at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(code)) throw fault("Invalid \\uXXXX escape", at + 1);
        value += String.fromCharCode(parseInt(code, 16));
        at += 6;
      } else {
        if (!(letter in ESCAPES)) throw fault("Invalid \\escape", at);
        value += ESCAPES[letter];
        at += 2;
      }
    }
  }

  function object(depth) {
    const value = new Map();
    at += 1;
    match(SPACE);
    if (text[at] === "}") {
      at += 1;
      return value;
    }
    const pairs = [];
    for (;;) {
      if (text[at] !== '"') throw fault("Expecting property name enclosed in double quotes", at);
      const key = string();
      match(SPACE);
      if (text[at] !== ":") throw fault("Expecting ':' delimiter", at);
      at += 1;
      match(SPACE);
      pairs.push([key, any(depth + 1)]);
      match(SPACE);
      const next = text[at];
      if (next !== "," && next !== "}") throw fault("Expecting ',' delimiter", at);
      at += 1;
      if (next === "}") break;
      match(SPACE);
    }
    for (const [key, each] of pairs) {
      if (value.has(key) && !equal(value.get(key), each)) {
        throw refuse(`${key}: stated twice, ${short(value.get(key))} and ${short(each)}`);
      }
      value.set(key, each);
    }
    return value;
  }

  function array(depth) {
    const value = [];
    at += 1;
    match(SPACE);
    if (text[at] === "]") {
      at += 1;
      return value;
    }
    for (;;) {
      value.push(any(depth + 1));
      match(SPACE);
      const next = text[at];
      if (next !== "," && next !== "]") throw fault("Expecting ',' delimiter", at);
      at += 1;
      if (next === "]") return value;
      match(SPACE);
    }
  }

  function any(depth) {
    if (depth > DEEPEST) throw refuse("objects nested too deeply");
    const first = text[at];
    if (first === '"') return string();
    if (first === "{") return object(depth);
    if (first === "[") return array(depth);
    for (const [word, value] of CONSTANTS) {
      if (text.startsWith(word, at)) {
        at += word.length;
        return value;
      }
    }
    const begin = at;
    const number = match(NUMBER);
    if (number && !(number[0] === "-")) {
      if (number[1] || number[2]) return Number(number[0]);
      if (number[0].replace("-", "").length > LONGEST_INTEGER) throw refuse("a number too long to read");
      return BigInt(number[0]);
    }
    at = begin;
    for (const word of ["NaN", "Infinity", "-Infinity"]) {
      if (text.startsWith(word, at)) throw refuse(`${word} is not JSON; every number must be finite`);
    }
    throw fault("Expecting value", at);
  }

  if (text.startsWith("\ufeff")) throw fault("Unexpected UTF-8 BOM (decode using utf-8-sig)", 0);
  match(SPACE);
  const value = any(0);
  match(SPACE);
  if (at !== text.length) throw fault("Extra data", at);
  return value;
}

// Python's ==: a flag is the number 0 or 1.
export function equal(a, b) {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((each, i) => equal(each, b[i]));
  if (a instanceof Map && b instanceof Map) {
    return a.size === b.size && [...a].every(([key, value]) => b.has(key) && equal(value, b.get(key)));
  }
  const number = (value) => (typeof value === "boolean" ? BigInt(value) : value);
  const isNumber = (value) => typeof value === "bigint" || typeof value === "number";
  return isNumber(number(a)) && isNumber(number(b)) && number(a) == number(b);
}

// A float as Python prints it: the shortest digits, an exponent from 1e16 and below 1e-4.
export function float(value) {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [digits, exponent] = value.toExponential().split("e");
  const power = Number(exponent);
  if (power < -4 || power >= 16) return `${digits}${scientific(power)}`;
  if (Number.isInteger(value)) return `${value}.0`;
  return power >= -6 ? String(value) : value.toFixed(20).replace(/0+$/, "");
}

// A number as Python's format "g" prints it.
export function general(value) {
  const [digits, exponent] = Number(value).toExponential(5).split("e");
  const power = Number(exponent);
  if (power < -4 || power >= 6) return `${digits.replace(/\.?0+$/, "")}${scientific(power)}`;
  const text = Number(value).toFixed(5 - power);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

const scientific = (power) => `e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;

// A number with so many digits after the point, ties to even as in Python.
export function fixed(value, digits) {
  const scaled = Math.abs(value) * 2 ** (digits + 1); // whole where the value lies halfway
  if (!Number.isSafeInteger(scaled)) return value.toFixed(digits);
  const twice = BigInt(scaled) * 10n ** BigInt(digits);
  const unit = 2n ** BigInt(digits + 1);
  let rounded = twice / unit;
  const rest = 2n * (twice % unit);
  if (rest > unit || (rest === unit && rounded % 2n)) rounded += 1n;
  const text = String(rounded).padStart(digits + 1, "0");
  const whole = digits ? `${text.slice(0, -digits)}.${text.slice(-digits)}` : text;
  return value < 0 ? `-${whole}` : whole;
}

export const grouped = (number) => String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

// Python's repr of what a field may hold; an array is a tuple.
export function repr(value) {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "number") return float(value);
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `(${value.map(repr).join(", ")}${value.length === 1 ? "," : ""})`;
  if (typeof value !== "string") return "an object";
  const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
  const inside = value.replace(/\\/g, "\\\\").replace(/\n/g, "\\n").replace(/\r/g, "\\r").replace(/\t/g, "\\t");
  return quote + (quote === "'" ? inside.replace(/'/g, "\\'") : inside) + quote;
}

// json.dumps: on one line, or with `indent` blanks a level.
export function stringify(value, indent = 0, level = 0) {
  if (value === null || value === undefined) return "null";
  if (typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (typeof value === "number") return float(value).replace(/^(-?)inf$/, "$1Infinity").replace("nan", "NaN");
  if (typeof value === "string") return quoted(value);
  const pairs = Array.isArray(value) ? null : value instanceof Map ? [...value] : Object.entries(value);
  const items = pairs
    ? pairs.map(([key, each]) => `${quoted(key)}: ${stringify(each, indent, level + 1)}`)
    : value.map((each) => stringify(each, indent, level + 1));
  const [open, shut] = pairs ? "{}" : "[]";
  if (!items.length) return open + shut;
  if (!indent) return open + items.join(", ") + shut;
  const line = `\n${" ".repeat(indent * (level + 1))}`;
  return `${open}${line}${items.join(`,${line}`)}\n${" ".repeat(indent * level)}${shut}`;
}

function quoted(text) {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (letter) => {
    if (letter === "\u007f") return letter;
    return `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

// A value in a message, cut to 48 letters.
export function short(value) {
  const text = typeof value === "number" ? float(value) : stringify(value);
  return text.length <= 48 ? text : `${text.slice(0, 45)}...`;
}
