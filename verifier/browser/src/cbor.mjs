/*
 * The deterministic encoding of RFC 8949 §4.2.1, as far as a record needs it (spec §3.1).
 * The reader refuses every second spelling of a value, so what it accepts has one byte string.
 *
 * Values: number (bigint beyond 2^53 − 1), Uint8Array, string, Array, Map, true, false, null.
 */

import { textOf, utf8, joined } from "./bytes.mjs";

export const MAX_DEPTH = 16;

/** Why bytes are not one deterministic item; `short` says that they end too early. */
export class CborError extends Error {
  constructor(message, { short = false, size = 0 } = {}) {
    super(message);
    this.short = short;
    this.size = size;
  }
}

/** Reads items from `bytes` one after the other; `at` is the place of the next. */
export class CborReader {
  constructor(bytes, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  /** The next item; its outermost array or map has depth `depth`. */
  item(depth = 1) {
    const first = this.byte();
    const major = first >> 5;
    if (major === 7) return simple(first);
    const size = this.argument(first & 31);
    if (major === 0) return size;
    if (major === 1) return typeof size === "bigint" ? -1n - size : -1 - size;
    if (major === 2) return this.stretch(size);
    if (major === 3) return this.text(size);
    if (major === 6) throw new CborError("a tag");
    if (depth > MAX_DEPTH) throw new CborError(`nesting deeper than ${MAX_DEPTH}`);
    return major === 4 ? this.array(size, depth) : this.map(size, depth);
  }

  byte() {
    if (this.at >= this.end) throw new CborError("the bytes end inside an item", { short: true });
    const found = this.bytes[this.at];
    this.at += 1;
    return found;
  }

  /** The number that follows the first byte of an item, in its shortest form. */
  argument(low) {
    if (low < 24) return low;
    if (low > 27) throw new CborError(low === 31 ? "an indefinite length" : "a reserved length");
    const width = 1 << (low - 24);
    let found = 0n;
    for (let step = 0; step < width; step += 1) found = (found << 8n) | BigInt(this.byte());
    const least = [24n, 0x100n, 0x10000n, 0x100000000n][low - 24];
    if (found < least) throw new CborError("a number that is not in its shortest form");
    return found > BigInt(Number.MAX_SAFE_INTEGER) ? found : Number(found);
  }

  stretch(size) {
    const left = this.end - this.at;
    if (size > left) {
      throw new CborError("the bytes end inside an item", { short: true, size: Number(size) });
    }
    const found = this.bytes.subarray(this.at, this.at + size);
    this.at += size;
    return found;
  }

  text(size) {
    const found = textOf(this.stretch(size));
    if (found === null) throw new CborError("a text that is not UTF-8");
    return found;
  }

  array(size, depth) {
    const items = [];
    for (let count = 0; count < size; count += 1) items.push(this.item(depth + 1));
    return items;
  }

  map(size, depth) {
    const found = new Map();
    let before = null;
    for (let count = 0; count < size; count += 1) {
      const start = this.at;
      const key = this.item(depth + 1);
      const spelled = this.bytes.subarray(start, this.at);
      if (before !== null && !isBefore(before, spelled)) {
        throw new CborError("map keys that are unsorted or repeated");
      }
      if (Array.isArray(key) || key instanceof Map) {
        throw new CborError("a map key that is an array or a map");
      }
      before = spelled;
      found.set(key, this.item(depth + 1));
    }
    return found;
  }
}

function simple(first) {
  if (first === 0xf4) return false;
  if (first === 0xf5) return true;
  if (first === 0xf6) return null;
  if (first >= 0xf9 && first <= 0xfb) throw new CborError("a float");
  throw new CborError("a simple value other than true, false and null");
}

/** Whether one encoded key stands before another in bytewise order. */
function isBefore(one, other) {
  const shared = Math.min(one.length, other.length);
  for (let at = 0; at < shared; at += 1) if (one[at] !== other[at]) return one[at] < other[at];
  return one.length < other.length;
}

/** The one value that `bytes` hold, nothing before or after it. */
export function decoded(bytes) {
  const reader = new CborReader(bytes);
  const found = reader.item();
  if (reader.at !== bytes.length) throw new CborError("bytes after the item");
  return found;
}

/** The encoding of an array of texts, byte strings and integers, as MAC inputs need it. */
export function encodedArray(items) {
  return joined(head(4, items.length), ...items.map(encodedItem));
}

function encodedItem(item) {
  if (typeof item === "number") return head(0, item);
  const bytes = typeof item === "string" ? utf8(item) : item;
  return joined(head(typeof item === "string" ? 3 : 2, bytes.length), bytes);
}

function head(major, size) {
  const first = major << 5;
  if (size < 24) return Uint8Array.of(first | size);
  if (size < 0x100) return Uint8Array.of(first | 24, size);
  if (size < 0x10000) return Uint8Array.of(first | 25, size >> 8, size & 255);
  const bytes = [];
  const width = size < 0x100000000 ? 4 : 8;
  for (let left = BigInt(size), step = 0; step < width; step += 1, left >>= 8n) {
    bytes.unshift(Number(left & 255n));
  }
  return Uint8Array.of(first | (width === 4 ? 26 : 27), ...bytes);
}
