/* Byte strings: hexadecimal, comparison, text. Lengths count bytes. */

const DIGITS = [..."0123456789abcdef"].map((digit) => digit.charCodeAt(0));
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Lower-case hexadecimal of a short byte string (spec §1). */
export function hex(bytes) {
  const codes = new Array(2 * bytes.length);
  for (let at = 0; at < bytes.length; at += 1) {
    codes[2 * at] = DIGITS[bytes[at] >> 4];
    codes[2 * at + 1] = DIGITS[bytes[at] & 15];
  }
  return String.fromCharCode(...codes);
}

/** The bytes of an even number of lower-case hexadecimal digits. */
export function fromHex(text) {
  const bytes = new Uint8Array(text.length / 2);
  for (let at = 0; at < bytes.length; at += 1) {
    bytes[at] = Number.parseInt(text.slice(2 * at, 2 * at + 2), 16);
  }
  return bytes;
}

export function isHex(text, size) {
  return typeof text === "string" && text.length === 2 * size && /^[0-9a-f]*$/.test(text);
}

export function sameBytes(one, other) {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at += 1) if (one[at] !== other[at]) return false;
  return true;
}

export function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export function utf8(text) {
  return ENCODER.encode(text);
}

/** The text of UTF-8 bytes, or null where they are not UTF-8; a byte order mark stays a character. */
export function textOf(bytes) {
  try {
    return DECODER.decode(bytes);
  } catch {
    return null;
  }
}

/** The size of a text in bytes of its UTF-8 form (spec §1). */
export function sizeOf(text) {
  let size = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) size += 1;
    else if (unit < 0x800) size += 2;
    else if (unit >= 0xd800 && unit < 0xdc00) {
      size += 4;
      at += 1;
    } else size += 3;
  }
  return size;
}

/** Where `pattern` stands in `bytes` at or after `from`, or -1. */
export function indexOf(bytes, pattern, from) {
  const last = bytes.length - pattern.length;
  for (let at = bytes.indexOf(pattern[0], from); at !== -1 && at <= last;) {
    let same = 1;
    while (same < pattern.length && bytes[at + same] === pattern[same]) same += 1;
    if (same === pattern.length) return at;
    at = bytes.indexOf(pattern[0], at + 1);
  }
  return -1;
}
