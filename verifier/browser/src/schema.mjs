/*
 * Closed schemas of JSON documents (spec §2.3).
 * A rule is a function of a value and its JSON pointer; it gives null, or {pointer, expected}.
 */

import { sizeOf } from "./bytes.mjs";
import { pointerStep } from "./json.mjs";

const MAX_TIME = 253402300799;

/** A rule that holds where `test` does. */
export function rule(expected, test) {
  return (value, pointer) => (test(value) ? null : { pointer, expected });
}

/** An object of exactly these members; a name that ends with `?` may be absent. */
export function members(table) {
  const required = Object.keys(table).filter((name) => !name.endsWith("?"));
  const rules = new Map(Object.entries(table).map(([name, test]) => [name.replace("?", ""), test]));
  return (value, pointer) => {
    if (!(value instanceof Map)) return { pointer, expected: "an object" };
    for (const name of required) {
      if (!value.has(name)) return { pointer: pointerStep(pointer, name), expected: "a member" };
    }
    for (const [name, member] of value) {
      const place = pointerStep(pointer, name);
      if (!rules.has(name)) return { pointer: place, expected: "no such member" };
      const wrong = rules.get(name)(member, place);
      if (wrong !== null) return wrong;
    }
    return null;
  };
}

/** An array of `least` to `most` elements; no two give the same `key`, where one is given. */
export function list(element, least, most, key = null) {
  return (value, pointer) => {
    if (!Array.isArray(value) || value.length < least || value.length > most) {
      return { pointer, expected: `an array of ${least} to ${most} elements` };
    }
    const seen = new Set();
    for (const [index, member] of value.entries()) {
      const place = pointerStep(pointer, index);
      const wrong = element(member, place);
      if (wrong !== null) return wrong;
      if (key !== null && seen.has(key(member))) return { pointer: place, expected: "no second" };
      if (key !== null) seen.add(key(member));
    }
    return null;
  };
}

export const isText = (value) => typeof value === "string";
export const isWhole = (value, least, most) =>
  Number.isSafeInteger(value) && value >= least && value <= most;

export const anything = rule("a value", () => true);
export const notNull = rule("a value other than null", (value) => value !== null);
export const object = rule("an object", (value) => value instanceof Map);
export const truth = rule("true or false", (value) => typeof value === "boolean");
export const isName = (value) => isText(value) && value !== "" && sizeOf(value) <= 256;
export const name = rule("a text of 1 to 256 bytes", isName);
export const text = rule("a text of at most 4096 bytes", (v) => isText(v) && sizeOf(v) <= 4096);
export const hex32 = rule("64 lower-case hexadecimal digits", (value) => isHex32(value));
export const time = rule("whole unix seconds up to the year 9999", (v) => isWhole(v, 0, MAX_TIME));
export const pointer = rule("a JSON pointer", (value) => isPointer(value));
export const whole = (least, most) =>
  rule(`an integer from ${least} to ${most}`, (value) => isWhole(value, least, most));
export const oneOf = (...words) => rule(words.join(" or "), (value) => words.includes(value));

function isHex32(value) {
  return isText(value) && /^[0-9a-f]{64}$/.test(value);
}

function isPointer(value) {
  return isText(value) && /^(?:\/(?:[^/~]|~[01])*)*$/.test(value);
}
