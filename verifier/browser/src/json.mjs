/*
 * The JSON boundary (spec §2.1): one strict reader for envelopes, profiles and key files.
 * Objects become Map, so that no name is special; numbers are IEEE 754 doubles.
 */

import { textOf } from "./bytes.mjs";
import { canonicalText } from "./jcs.mjs";

const MAX_DEPTH = 64;
const MAX_DOCUMENT = 1048576;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const SPACE = /[ \t\n\r]*/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPES = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** What is wrong with a document, and where, as a JSON pointer. */
export class JsonError extends Error {
  constructor(pointer, message) {
    super(message);
    this.pointer = pointer;
  }
}

/** The value of a document of UTF-8 bytes. */
export function parsedJson(bytes) {
  if (bytes.length > MAX_DOCUMENT) throw new JsonError("", `over ${MAX_DOCUMENT} bytes`);
  const text = textOf(bytes);
  if (text === null) throw new JsonError("", "bytes that are not UTF-8");
  if (text.startsWith("\ufeff")) throw new JsonError("", "a byte order mark");
  const reader = new JsonReader(text);
  const value = reader.value("", 1);
  reader.space();
  if (reader.at !== text.length) throw new JsonError("", "data after the value");
  return value;
}

/** One step of a JSON pointer (RFC 6901). */
export function pointerStep(pointer, name) {
  return `${pointer}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

class JsonReader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) return null;
    this.at = pattern.lastIndex;
    return found[0];
  }

  space() {
    this.match(SPACE);
  }

  take(word) {
    if (!this.text.startsWith(word, this.at)) return false;
    this.at += word.length;
    return true;
  }

  value(pointer, depth) {
    this.space();
    const first = this.text[this.at];
    if (first === "{" || first === "[") {
      if (depth > MAX_DEPTH) throw new JsonError(pointer, `nesting deeper than ${MAX_DEPTH}`);
      return first === "{" ? this.object(pointer, depth) : this.array(pointer, depth);
    }
    if (first === '"') return this.string(pointer);
    if (this.take("true")) return true;
    if (this.take("false")) return false;
    if (this.take("null")) return null;
    return this.number(pointer);
  }

  object(pointer, depth) {
    const found = new Map();
    this.at += 1;
    this.space();
    if (this.take("}")) return found;
    for (;;) {
      this.space();
      if (this.text[this.at] !== '"') throw new JsonError(pointer, "no name where one belongs");
      const name = this.string(pointer);
      const place = pointerStep(pointer, name);
      if (found.has(name)) throw new JsonError(place, "a repeated name");
      this.space();
      if (!this.take(":")) throw new JsonError(place, "no colon after a name");
      found.set(name, this.value(place, depth + 1));
      this.space();
      if (this.take("}")) return found;
      if (!this.take(",")) throw new JsonError(place, "no comma after a member");
    }
  }

  array(pointer, depth) {
    const found = [];
    this.at += 1;
    this.space();
    if (this.take("]")) return found;
    for (;;) {
      const place = pointerStep(pointer, found.length);
      found.push(this.value(place, depth + 1));
      this.space();
      if (this.take("]")) return found;
      if (!this.take(",")) throw new JsonError(place, "no comma after an element");
    }
  }

  string(pointer) {
    let found = "";
    this.at += 1;
    for (;;) {
      found += this.match(PLAIN);
      if (this.take('"')) break;
      if (!this.take("\\"))
        throw new JsonError(pointer, "a text that does not end, or a raw control");
      found += this.escape(pointer);
    }
    if (!found.isWellFormed()) throw new JsonError(pointer, "an unpaired surrogate");
    return found;
  }

  escape(pointer) {
    const letter = this.text[this.at];
    this.at += 1;
    if (letter !== "u") {
      if (!Object.hasOwn(ESCAPES, letter ?? "")) throw new JsonError(pointer, "an unknown escape");
      return ESCAPES[letter];
    }
    const digits = this.text.slice(this.at, this.at + 4);
    if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw new JsonError(pointer, "an unknown escape");
    this.at += 4;
    return String.fromCharCode(Number.parseInt(digits, 16));
  }

  number(pointer) {
    const spelled = this.match(NUMBER);
    if (!spelled) throw new JsonError(pointer, "no JSON value");
    const found = Number(spelled);
    if (!Number.isFinite(found)) throw new JsonError(pointer, "a number that overflows");
    if (Object.is(found, -0)) throw new JsonError(pointer, "negative zero");
    const isInteger = !/[.eE]/.test(spelled) || !/[.e]/.test(canonicalText(found));
    if (isInteger && !Number.isSafeInteger(found)) {
      throw new JsonError(pointer, "an integer outside ±(2^53 − 1)");
    }
    return found;
  }
}
