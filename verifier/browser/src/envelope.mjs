/* The envelope (spec §2): its members, its facts and terms, and what its digests are taken over. */

import { canonical, canonicalText } from "./jcs.mjs";
import {
  anything,
  hex32,
  isText,
  list,
  members,
  name,
  notNull,
  object,
  oneOf,
  pointer,
  rule,
  text,
  time,
  truth,
  whole,
} from "./schema.mjs";

export const FORMAT = "cardchain-card/1";
export const FACTS = ["action", "subject", "preconditions", "approval_basis", "review_manifest"];
export const CLASSES = ["none", "fired_rules", "selection", "whole_policy"];
const MAX_SECONDS = 253402300799;

const evidenceClass = oneOf(...CLASSES);
const reasoning = rule(
  "a text of at most 2000 code points",
  (value) => isText(value) && value.length <= 4000 && [...value].length <= 2000,
);
const source = rule("a name other than model", (v) => name(v, "") === null && v !== "model");

const APPROVAL_BASIS = members({
  verdict: name,
  engine: name,
  evidence_class: evidenceClass,
  profile: hex32,
  "profile_id?": name,
  "profile_version?": name,
  rules: list(members({ id: name, sha256: hex32 }), 0, 1024),
  "selection?": members({ mode: name, digest: hex32, count: whole(0, Number.MAX_SAFE_INTEGER) }),
  "combining?": name,
  "default?": name,
  "policy_sha256?": hex32,
});
const REVIEW_MANIFEST = members({
  schema: name,
  selector: hex32,
  "selector_id?": name,
  "selector_version?": name,
  fields: list(members({ id: name, path: pointer, value: anything }), 1, 256),
  "view_digest?": hex32,
});
const IMPACT = members({
  score: whole(0, 100),
  hard_one_way: truth,
  rationale: text,
  fired_detectors: list(name, 0, 256, (detector) => detector),
  detector_set: members({ id: name, digest: hex32 }),
});
const ENVELOPE = members({
  format: oneOf(FORMAT),
  kind: name,
  task: members({ id: name, step: name }),
  action: members({
    tool_name: name,
    arguments: object,
    args_digest: hex32,
    "capability?": notNull,
    "spec_digest?": hex32,
    "artifact_digest?": hex32,
  }),
  "subject?": members({ id: name, source, "tenant?": name, "delegation?": notNull }),
  "preconditions?": list(members({ ref: name, version: name }), 1, 256, (one) => one.get("ref")),
  "approval_basis?": APPROVAL_BASIS,
  "policy_version?": name,
  "review_manifest?": REVIEW_MANIFEST,
  "purpose?": text,
  reasoning,
  "impact?": IMPACT,
  "rollback?": members({ procedure: text, irreversible: truth }),
  issued_at: time,
  not_after: time,
  "grant_ttl?": whole(1, MAX_SECONDS),
  "supersedes?": hex32,
  "prior_attempt?": members({
    card_hash: hex32,
    outcome: oneOf("succeeded", "failed", "unknown"),
  }),
  effect_key: hex32,
});

/** What breaks spec §2.3, as {pointer, expected}, or null. */
export function schemaFault(envelope) {
  return ENVELOPE(envelope, "") ?? windowFault(envelope) ?? oneWayFault(envelope);
}

function windowFault(envelope) {
  if (envelope.get("not_after") > envelope.get("issued_at")) return null;
  return { pointer: "/not_after", expected: "a time after issued_at" };
}

function oneWayFault(envelope) {
  const impact = envelope.get("impact");
  if (impact?.get("hard_one_way") !== true) return null;
  if (impact.get("fired_detectors").length === 0) {
    return { pointer: "/impact/fired_detectors", expected: "a detector, for a one-way door" };
  }
  if (envelope.get("rollback")?.get("irreversible") === true) return null;
  return { pointer: "/rollback", expected: "irreversible true, for a one-way door" };
}

/** Whether the document is an envelope of another format than version 1. */
export function isOtherFormat(envelope) {
  const format = envelope instanceof Map ? envelope.get("format") : undefined;
  return isText(format) && format !== FORMAT;
}

/** What args_digest, effect_key and the task digest are taken over (spec §2.5). */
export function digestInputs(envelope) {
  const action = envelope.get("action");
  const effect = new Map([
    ["args_digest", action.get("args_digest")],
    ["capability", action.get("capability") ?? null],
    ["format", "effect-key/1"],
    ["task", envelope.get("task")],
    ["tool_name", action.get("tool_name")],
  ]);
  return {
    args: canonical(action.get("arguments")),
    effect: canonical(effect),
    task: canonical(envelope.get("task")),
  };
}

/** Whether two envelopes have the same terms (spec §2.4), effect_key aside. */
export function sameTerms(one, other) {
  return differingMembers(one, other).every(
    (member) => FACTS.includes(member) || member === "effect_key",
  );
}

/** The members at the top in which two envelopes differ. */
export function differingMembers(one, other) {
  const names = new Set([...one.keys(), ...other.keys()]);
  return [...names].filter((member) => !sameMember(one, other, member));
}

function sameMember(one, other, member) {
  if (one.has(member) !== other.has(member)) return false;
  return canonicalText(one.get(member)) === canonicalText(other.get(member));
}
