/* Hidden characters (spec §9.2): nothing is stripped, what cannot be seen is written out. */

const RANGES = [
  [0x0000, 0x001f],
  [0x007f, 0x009f],
  [0x00a0, 0x00a0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0x2028, 0x2029],
  [0x00ad, 0x00ad],
  [0x034f, 0x034f],
  [0x061c, 0x061c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x200b, 0x200f],
  [0x202a, 0x202e],
  [0x2060, 0x206f],
  [0x2800, 0x2800],
  [0x3164, 0x3164],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffc],
  [0x16fe4, 0x16fe4],
  [0x1d159, 0x1d159],
  [0xfe00, 0xfe0f],
  [0xe0000, 0xe0fff],
  [0x0300, 0x036f],
  [0x0483, 0x0489],
  [0x1ab0, 0x1aff],
  [0x1dc0, 0x1dff],
  [0x20d0, 0x20ff],
  [0x302a, 0x302f],
  [0x3099, 0x309a],
  [0xfe20, 0xfe2f],
  [0x1d165, 0x1d169],
  [0x1d16d, 0x1d182],
  [0xd800, 0xdfff],
  [0xe000, 0xf8ff],
  [0xf0000, 0x10ffff],
  [0xfdd0, 0xfdef],
  [0x1bca0, 0x1bca3],
  [0x1d173, 0x1d17a],
  [0x13430, 0x1345f],
  [0x110bd, 0x110bd],
  [0x110cd, 0x110cd],
].sort((one, other) => one[0] - other[0]);
const SHORT = new Map([
  ["\\", "\\\\"],
  ['"', '\\"'],
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
]);
const ALL_PLAIN = /^[ !#-[\]-~]*$/;

/** Whether a code point is hidden. */
export function isHidden(point) {
  if ((point & 0xfffe) === 0xfffe) return true;
  for (const [first, last] of RANGES) {
    if (point < first) return false;
    if (point <= last) return true;
  }
  return false;
}

/** A text as it may be shown: every hidden code point, backslash and quote escaped. */
export function escaped(text) {
  if (ALL_PLAIN.test(text)) return text;
  let shown = "";
  for (const character of text) shown += SHORT.get(character) ?? escapedPoint(character);
  return shown;
}

function escapedPoint(character) {
  const point = character.codePointAt(0);
  return isHidden(point) ? `\\u{${point.toString(16)}}` : character;
}

/** Whether every code point of an id is a space or hidden (spec §6.3). */
export function isBlank(id) {
  return [...id].every((character) => character === " " || isHidden(character.codePointAt(0)));
}
