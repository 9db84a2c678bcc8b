/* Payload, body and openings (spec §3.2 to §3.5, §6.4): exactly the members of their kind. */

import { isBlank } from "./escape.mjs";
import { isName, isWhole } from "./schema.mjs";
import { REASONS } from "./refusals.mjs";

export const VERSION = "cardchain/1";
const MAX_UINT = Number.MAX_SAFE_INTEGER;

const h32 = (value) => value instanceof Uint8Array && value.length === 32;
const kid = (value) => value instanceof Uint8Array && value.length === 8;
const uint = (value) => isWhole(value, 0, MAX_UINT);
const line = isName;
const flag = (value) => typeof value === "boolean";
const word =
  (...words) =>
  (value) =>
    words.includes(value);
const lines = (most) => (value) =>
  Array.isArray(value) && value.length >= 1 && value.length <= most && value.every(line);

/** Whether `value` is a map of exactly these members; a name that ends with `?` may be absent. */
function closed(table) {
  const tests = Object.entries(table).map(([name, test]) => [name.replace("?", ""), test]);
  const required = Object.keys(table).filter((name) => !name.endsWith("?"));
  const byName = new Map(tests);
  return (value) =>
    value instanceof Map &&
    required.every((name) => value.has(name)) &&
    [...value].every(([name, member]) => byName.has(name) && byName.get(name)(member));
}

const opening = closed({ digest: h32, "media_type?": line, "renderer?": line, "truncated?": flag });
const runtime = closed({
  name: line,
  "version?": line,
  "run?": line,
  "thread?": line,
  "call?": line,
  "trace?": line,
});
const approverForm = closed({
  id: line,
  assurance: word("label", "authenticated", "signed"),
  "evidence?": closed({ type: line, digest: h32 }),
});
const approver = (value) =>
  approverForm(value) && (value.get("assurance") !== "signed" || value.has("evidence"));
const decision = word("approve", "reject");

const BODIES = {
  opened: closed({ name: line, software: line, "profile?": h32, "vkey?": line }),
  configured: closed({ "profile?": h32, "vkey?": line, by: line }),
  issued: closed({
    task: h32,
    not_after: uint,
    "grant_ttl?": uint,
    "supersedes?": h32,
    "presented?": opening,
    "runtime?": runtime,
  }),
  resolved: closed({
    of: uint,
    echo: h32,
    "target?": h32,
    decision,
    approver,
    channel: line,
    "note?": opening,
    "presented?": opening,
    "response?": opening,
  }),
  refused: closed({
    "of?": uint,
    "task?": h32,
    gate: word(...Object.keys(REASONS)),
    reason: line,
    count: uint,
    "echo?": h32,
    "target?": h32,
    "decision?": decision,
    "approver?": approver,
    "channel?": line,
    "rebuilt?": h32,
  }),
  withdrawn: closed({
    of: uint,
    echo: h32,
    reason: word("revoked", "cancelled"),
    by: line,
    "note?": opening,
  }),
  dispatched: closed({
    of: uint,
    rebuilt: h32,
    "policy_outcome?": line,
    "exceptions?": lines(16),
    "approver_check?": line,
  }),
  settled: closed({
    of: uint,
    outcome: word("succeeded", "failed", "unknown"),
    "by?": line,
    "receipt_digest?": h32,
  }),
  rekeyed: closed({ kid, proof: h32 }),
  clock_reset: closed({ was: uint, by: line, reason: word("clock_fixed", "restored", "other") }),
  recovered: closed({ after_seq: uint, length: uint, sha256: h32 }),
  redacted: closed({
    seq: uint,
    target: h32,
    openings: lines(Infinity),
    by: line,
    reason: word("erasure_request", "retention", "secret", "other"),
  }),
  pruned: closed({ before: uint, digest: h32, by: line }),
  anchored: closed({ size: uint, root: h32, note: h32, "token?": h32 }),
};
const CHAIN_KINDS = [
  "opened",
  "configured",
  "rekeyed",
  "clock_reset",
  "recovered",
  "redacted",
  "pruned",
  "anchored",
];
const GATE_MEMBERS = {
  issue: { required: ["task"], allowed: [] },
  resolve: { required: ["echo", "decision", "channel"], allowed: ["target", "approver"] },
  withdraw: { required: ["echo"], allowed: ["target", "approver", "channel"] },
  dispatch: { required: [], allowed: ["target"] },
  settle: { required: [], allowed: ["target"] },
};
const APPROVER_NEEDED_FROM = { resolve: "already_resolved", withdraw: "already_dispatched" };

/** The seq of a payload where one can be read, else null. */
export function seqOf(payload) {
  return Array.isArray(payload) && payload[0] === VERSION && uint(payload[2]) ? payload[2] : null;
}

/** Whether a payload is of a later version: its first element is another text (spec §3.2). */
export function isOtherVersion(payload) {
  return Array.isArray(payload) && typeof payload[0] === "string" && payload[0] !== VERSION;
}

/** What is wrong with tag and payload of a record, in words, or null. */
export function payloadFault(record, payload) {
  if (!h32(record.tag)) return "a tag that is not 32 bytes";
  if (!Array.isArray(payload)) return "a payload that is no array";
  if (isOtherVersion(payload)) return null;
  if (payload.length !== 8) return `a payload of ${payload.length}`;
  const [version, chain, seq, prev, at, kind, card, body] = payload;
  if (version !== VERSION) return "a version that is no text";
  if (!(chain instanceof Uint8Array && chain.length === 16)) return "a chain that is not 16 bytes";
  if (!uint(seq)) return "a seq that is no integer";
  if (!h32(prev)) return "a prev that is not 32 bytes";
  if (!uint(at)) return "a time that is no integer";
  if (typeof kind !== "string" || !Object.hasOwn(BODIES, kind)) return "an unknown kind";
  if (card !== null && !h32(card)) return "a card that is not 32 bytes";
  return bodyFault(kind, card, body);
}

function bodyFault(kind, card, body) {
  if (!BODIES[kind](body)) return `a body that is not that of ${kind}`;
  if (kind === "configured" && body.size === 1) return "a configured that sets nothing";
  if (CHAIN_KINDS.includes(kind)) return card === null ? null : `a card on ${kind}`;
  if (kind === "refused") return refusalFault(card, body);
  return card === null ? `no card on ${kind}` : null;
}

/** The rules of a refusal at each gate (spec §6.4). */
function refusalFault(card, body) {
  const gate = body.get("gate");
  const reason = body.get("reason");
  if (body.get("count") === 0) return "a count of 0";
  if (!REASONS[gate].includes(reason)) return `a reason that the gate ${gate} does not have`;
  const { required, allowed } = refusedMembers(gate, reason, card);
  const known = ["gate", "reason", "count", ...required, ...allowed];
  const missing = required.find((name) => !body.has(name));
  if (missing !== undefined) return `no ${missing} on a refusal of the gate ${gate}`;
  const surplus = [...body.keys()].find((name) => !known.includes(name));
  if (surplus !== undefined) return `${surplus} on this refusal of the gate ${gate}`;
  if (gate === "issue" && card === null) return "no card on a refusal of the gate issue";
  return refusedApproverFault(gate, reason, body.get("approver"));
}

function refusedMembers(gate, reason, card) {
  const required = [...GATE_MEMBERS[gate].required];
  const allowed = [...GATE_MEMBERS[gate].allowed];
  if (gate !== "issue" && card !== null) required.push("of");
  if (gate === "dispatch" && reason === "mismatch") required.push("rebuilt");
  if ((gate === "dispatch" || gate === "settle") && card === null) required.push("target");
  return { required, allowed };
}

function refusedApproverFault(gate, reason, approverGiven) {
  if (approverGiven !== undefined) {
    if (reason === "missing_approver") return "an approver on a refusal for want of one";
    return isBlank(approverGiven.get("id")) ? "a blank approver" : null;
  }
  const first = APPROVER_NEEDED_FROM[gate];
  if (first === undefined) return null;
  const order = REASONS[gate];
  return order.indexOf(reason) >= order.indexOf(first) ? "no approver" : null;
}

/** The digest, 32 bytes, of each opening that a record binds (spec §3.4). */
export function boundOpenings(kind, card, body) {
  const bound = new Map();
  if (card !== null) bound.set("envelope", card);
  for (const name of ["presented", "note", "response"]) {
    const described = body.get(name);
    if (described instanceof Map) bound.set(name, described.get("digest"));
  }
  if (bindsRebuilt(kind, card, body)) bound.set("rebuilt", body.get("rebuilt"));
  if (body.has("profile")) bound.set("profile", body.get("profile"));
  if (kind === "resolved" && body.get("approver").get("assurance") === "signed") {
    bound.set("signature", body.get("approver").get("evidence").get("digest"));
  }
  return bound;
}

function bindsRebuilt(kind, card, body) {
  const rebuilt = body.get("rebuilt");
  if (rebuilt === undefined) return false;
  if (kind !== "dispatched") return true;
  return rebuilt.some((byte, at) => byte !== card[at]);
}

/** What is wrong with the openings of a record, in words, or null. */
export function openingsFault(openings, bound) {
  if (!(openings instanceof Map)) return "openings that are no map";
  for (const [name, value] of openings) {
    if (!bound.has(name)) return "an opening that the record does not bind";
    if (!(value instanceof Uint8Array)) return `an opening ${name} that is no byte string`;
  }
  return null;
}
