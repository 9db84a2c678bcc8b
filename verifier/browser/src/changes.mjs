/* What changed since the card that another supersedes, cardchain-changes/2 (spec §9.1). */

import { pointerStep } from "./json.mjs";
import { fits, fitted, isLeaf, quoted, shown } from "./text.mjs";

/** The lines of every leaf in which two envelopes differ, in the order of their pointers. */
export function changeLines(before, now, beforeHash) {
  const [was, is] = [leavesOf(before), leavesOf(now)];
  const differing = [...new Set([...was.keys(), ...is.keys()])].filter(
    (path) => side(was.get(path)) !== side(is.get(path)),
  );
  const pointerOf = (path) => (was.get(path) ?? is.get(path)).pointer;
  const lines = differing
    .map((path) => ({ pointer: pointerOf(path), was: was.get(path), is: is.get(path) }))
    .sort((one, other) => byCodePoint(one.pointer, other.pointer))
    .flatMap((leaf) => changed(quoted(leaf.pointer), side(leaf.was), side(leaf.is)));
  const head = ["changes (cardchain-changes/2)", `since card: ${beforeHash}`];
  return [...head, ...lines].flatMap(fitted);
}

/** Both values behind the pointer, or below it where one line would be too wide. */
function changed(pointer, was, is) {
  const line = `  ${pointer}: ${was} -> ${is}`;
  return fits(line) ? [line] : [`  ${pointer}:`, `    ${was}`, `    -> ${is}`];
}

function side(leaf) {
  return leaf === undefined ? "not stated" : shown(leaf.value);
}

/** The leaves of a value by their paths; the name "0" and the place 0 are two paths. */
function leavesOf(value, pointer = "", path = "", found = new Map()) {
  if (isLeaf(value)) found.set(path, { pointer, value });
  else if (Array.isArray(value)) {
    value.forEach((one, at) => leavesOf(one, pointerStep(pointer, at), `${path}/#${at}`, found));
  } else {
    for (const [name, one] of value) {
      leavesOf(one, pointerStep(pointer, name), `${pointerStep(path, name)}`, found);
    }
  }
  return found;
}

function byCodePoint(one, other) {
  const [left, right] = [[...one], [...other]];
  for (let at = 0; at < Math.min(left.length, right.length); at += 1) {
    const difference = left[at].codePointAt(0) - right[at].codePointAt(0);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}
