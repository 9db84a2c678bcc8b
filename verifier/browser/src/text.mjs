/* The text of a card, cardchain-text/2 (spec §9.1): what the approver sees, and nothing else. */

import { escaped } from "./escape.mjs";
import { canonicalText, sortedNames } from "./jcs.mjs";

const WIDTH = 76; // columns
const FIRST_WIDE = 0x1100; // from here on a code point takes two columns
const UNIT = /\\(?:[us]\{[0-9a-f]+\}|.)|./gu; // an escape, or a code point
const NOT_STATED = "not stated";

/** The lines of the card of an envelope that keeps to spec §2; each is text that may be shown. */
export function cardLines(envelope, cardHash) {
  const action = envelope.get("action");
  const lines = [
    "approval card (cardchain-text/2)",
    ...labelled("kind", envelope.get("kind")),
    ...labelled("tool", action.get("tool_name")),
    ...labelled("arguments", action.get("arguments")),
    ...labelled("capability", action.get("capability")),
    ...labelled("reasoning", envelope.get("reasoning")),
    ...labelled("purpose", envelope.get("purpose")),
    ...labelled("subject", envelope.get("subject")),
    reversibility(envelope.get("rollback")),
    ...labelled("impact", envelope.get("impact"), "not assessed"),
    ...labelled("rollback", envelope.get("rollback")),
    ...labelled("preconditions", envelope.get("preconditions")),
    ...labelled("policy version", envelope.get("policy_version")),
    ...labelled("approval basis", envelope.get("approval_basis")),
    ...labelled("review manifest", envelope.get("review_manifest")),
    ...labelled("task", envelope.get("task")),
    ...labelled("supersedes", envelope.get("supersedes")),
    ...labelled("prior attempt", envelope.get("prior_attempt")),
    ...labelled("tool specification", action.get("spec_digest")),
    ...labelled("artifact", action.get("artifact_digest")),
    ...labelled("arguments digest", action.get("args_digest")),
    ...labelled("effect key", envelope.get("effect_key")),
    ...labelled("format", envelope.get("format")),
    `issued at: ${seconds(envelope.get("issued_at"))}`,
    `decide before: ${seconds(envelope.get("not_after"))}`,
    "runs at most once",
    `may run: ${limit(envelope.get("grant_ttl"))}`,
    ...stated("to decide, echo this hash", cardHash),
  ];
  return lines.flatMap(fitted);
}

function reversibility(rollback) {
  if (rollback === undefined) return "NOT ASSESSED: treat as irreversible";
  return rollback.get("irreversible")
    ? "IRREVERSIBLE: it cannot be undone"
    : "reversible: see rollback";
}

function limit(grantTtl) {
  return grantTtl === undefined ? "no limit" : `until ${grantTtl} seconds after the decision`;
}

function seconds(time) {
  return `${time} (${new Date(time * 1000).toISOString().replace(".000Z", "Z")})`;
}

/** What is stated of a value, or the label and the lines of an object or array below it. */
function labelled(label, value, absent = NOT_STATED, indent = "") {
  if (value === undefined) return [`${label}: ${absent}`];
  const parts = partsOf(value);
  if (parts.length === 0) return stated(label, shown(value), indent);
  const inside = parts.flatMap(([name, part]) => labelled(name, part, absent, `${indent}  `));
  return [`${indent}${label}:`, ...inside];
}

/** A value behind its label, or below it where one line would be too wide. */
function stated(label, value, indent = "") {
  const line = `${indent}${label}: ${value}`;
  return fits(line) ? [line] : [`${indent}${label}:`, `${indent}  ${value}`];
}

/** The members of an object or array with their labels; of anything else, and empty, none. */
function partsOf(value) {
  if (Array.isArray(value)) return value.map((element, index) => [`[${index}]`, element]);
  if (!(value instanceof Map)) return [];
  return sortedNames(value).map((name) => [quoted(name), value.get(name)]);
}

/** Whether a value has no members: a scalar, `{}` or `[]`. */
export function isLeaf(value) {
  return partsOf(value).length === 0;
}

/** A leaf as it is shown. */
export function shown(value) {
  if (typeof value === "string") return quoted(value);
  return canonicalText(value);
}

/** A text in quotes; four or more spaces in a row are counted, so that nothing is pushed away. */
export function quoted(text) {
  return `"${escaped(text).replace(/ {4,}/g, (spaces) => `\\s{${spaces.length}}`)}"`;
}

/** Whether a line need not be cut. */
export function fits(line) {
  return columns(line) <= WIDTH;
}

/** A line that fits: cut at the edge, with no escape in two, and gone on with below. */
export function fitted(line) {
  if (fits(line)) return [line];
  const lines = [];
  let [row, used] = ["", 0];
  for (const [unit] of line.matchAll(UNIT)) {
    const wide = columns(unit);
    if (used + wide > WIDTH) {
      lines.push(row);
      [row, used] = ["\\", 1];
    }
    row += unit;
    used += wide;
  }
  return [...lines, row];
}

/** The width of a text, by a rule that no version of Unicode changes. */
function columns(text) {
  let wide = 0;
  for (const character of text) wide += character.codePointAt(0) >= FIRST_WIDE ? 2 : 1;
  return wide;
}
