/* The canonical form of RFC 8785 (spec §2.2) of the values that the strict reader gives. */

import { utf8 } from "./bytes.mjs";

/** The canonical text of a value: Map, Array, string, number, boolean or null. */
export function canonicalText(value) {
  if (value instanceof Map) return object(value);
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
  return JSON.stringify(value);
}

/** The canonical bytes of a value. */
export function canonical(value) {
  return utf8(canonicalText(value));
}

/** The names of an object in canonical order: by UTF-16 code units, as ECMAScript sorts. */
export function sortedNames(value) {
  return [...value.keys()].sort();
}

function object(value) {
  const members = sortedNames(value).map(
    (name) => `${JSON.stringify(name)}:${canonicalText(value.get(name))}`,
  );
  return `{${members.join(",")}}`;
}
