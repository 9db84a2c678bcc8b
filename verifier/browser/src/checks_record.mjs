/*
 * The checks of one record by itself and beside the record before it (spec §10.1, §10.3).
 * A check gives undefined where it does not apply, null where it holds, else {expected, found};
 * BELONGS says that the record is part of an earlier finding.
 */

import { hex } from "./bytes.mjs";
import { limitBroken } from "./record.mjs";

export const BELONGS = Symbol("belongs to an earlier finding");
const ZEROS = "0".repeat(64);
const ENVELOPE_CHECKS = ["envelope_canonical", "envelope_schema", "args_digest", "effect_key"];

const unless = (fault, expected, found) => (fault ? { expected, found } : null);

export const RECORD_CHECKS = {
  segment_name: (log, record) => {
    if (record.segmentNumber === undefined || record.seq === null) return undefined;
    const isWrong = record.segmentNumber !== record.seq;
    return unless(isWrong, `a first record of seq ${record.segmentNumber}`, `seq ${record.seq}`);
  },
  limits: (log, record) => {
    const broken = limitBroken(record);
    return unless(broken, "sizes within the limits", broken);
  },
  deterministic: (log, record) =>
    unless(record.deterministicFault, "one deterministic item", record.deterministicFault),
  shape: (log, record) => unless(record.shapeFault, "the members of its kind", record.shapeFault),
  version: (log, record) => {
    const other = record.isOtherVersion || record.envelope?.isOtherFormat;
    return unless(other, "version 1", "another version");
  },
  chain: (log, record) => {
    if (record.chain === log.chain) return null;
    if (log.inForeignRun) return BELONGS;
    return { expected: log.chain, found: record.chain };
  },
  sequence: (log, record) => record.placed,
  link: (log, record) => {
    if (log.scope !== null && !log.isNext(record)) return undefined;
    if (record.isFirst && record.seq !== 0 && !log.isEdgeNamed) return undefined;
    const expected = record.isFirst && record.seq === 0 ? ZEROS : log.lastDigest;
    if (record.prev === expected) return null;
    return log.afterUnsound || record.placed === BELONGS
      ? undefined
      : { expected, found: record.prev };
  },
  kid: (log, record) => {
    if (record.isFirst || log.scope?.card || log.afterUnsound) return undefined;
    return unless(record.kid !== log.kid, log.kid, record.kid);
  },
  key_missing: (log, record) => {
    const isRekeyed = record.kind === "rekeyed";
    if (!log.ring.has(record.kid)) log.missKey(record.kid, record);
    if (isRekeyed && !log.ring.has(hex(record.body.get("kid")))) {
      log.missKey(hex(record.body.get("kid")), record);
    }
    return null; // told at the end, when it is known what checkpoints cover
  },
  tag: (log, record) => {
    if (record.tagHolds === null) return undefined;
    return unless(!record.tagHolds, "the HMAC of this record", "another");
  },
  rekey: (log, record) => {
    if (record.kind !== "rekeyed" || log.scope?.card) return undefined;
    const kid = hex(record.body.get("kid"));
    if (log.kids.has(kid) || kid === record.kid) {
      return { expected: "a kid that was never in force", found: kid };
    }
    if (record.proofHolds === null) {
      log.isProofOpen = true;
      return undefined;
    }
    return unless(!record.proofHolds, "a proof under the new secret", "another");
  },
  pin: (log, record) => {
    const pin = log.pins.find((one) => one.seq === record.seq);
    if (pin === undefined) return undefined;
    return unless(pin.digest !== record.digest, `the pinned record ${pin.digest}`, record.digest);
  },
  time: (log, record) => {
    if (record.isFirst || log.afterUnsound) return undefined;
    if (log.scope !== null && !log.isNext(record)) return undefined;
    if (record.kind !== "clock_reset") {
      return unless(record.at < log.at, `a time of at least ${log.at}`, String(record.at));
    }
    const was = record.body.get("was");
    if (was !== log.at) return { expected: `was ${log.at}`, found: String(was) };
    return unless(record.at >= was, `a time before ${was}`, String(record.at));
  },
  inclusion: (log, record) => {
    if (record.proofFails === undefined) return undefined;
    return unless(
      record.proofFails,
      "a proof that the record stands in the signed tree",
      "another",
    );
  },
  card_hash: (log, record) => {
    const digest = record.openingDigests.get("envelope");
    if (digest === undefined) return undefined;
    return unless(digest !== record.card, record.card, digest);
  },
  opening_digest: (log, record) => {
    for (const [name, digest] of record.openingDigests) {
      if (name !== "envelope" && digest !== record.bound.get(name)) {
        return { expected: `${name} ${record.bound.get(name)}`, found: digest };
      }
    }
    return null;
  },
  ...Object.fromEntries(ENVELOPE_CHECKS.map((check) => [check, envelopeCheck(check)])),
  issued_body: (log, record) => {
    const body = bodyOf(log, record);
    return body === null ? undefined : bodyFault(body, record.envelope);
  },
};

/** One of the checks of an envelope; the same wrong envelope of a card is one edit (§10.3, 6). */
function envelopeCheck(check) {
  return (log, record) => {
    if (record.envelope === null || record.envelope.isOtherFormat) return undefined;
    const { fault } = record.envelope;
    if (fault?.check !== check) return null;
    if (log.wrongEnvelopes.has(record.card)) return BELONGS;
    log.wrongEnvelopes.add(record.card);
    return { expected: fault.expected, found: fault.found };
  };
}

/** The body that the envelope of this record is held against, and its time, or null. */
function bodyOf(log, record) {
  if (record.envelope === null || record.envelope.task === null) return null;
  const isRefusal = record.kind === "refused" && record.body.get("gate") === "issue";
  if (isRefusal || record.kind === "issued") return record;
  const later = log.state.cards.get(record.card)?.issuedBody ?? null;
  return later;
}

function bodyFault({ kind, body, at }, { value, task }) {
  const issuedAt = Math.floor(at / 1000);
  if (hex(body.get("task")) !== task)
    return { expected: `task ${task}`, found: hex(body.get("task")) };
  if (value.get("issued_at") !== issuedAt) {
    return { expected: `issued_at ${issuedAt}`, found: String(value.get("issued_at")) };
  }
  if (kind !== "issued") return null;
  for (const name of ["not_after", "grant_ttl"]) {
    if (value.get(name) !== body.get(name)) {
      return { expected: `${name} ${value.get(name)}`, found: String(body.get(name)) };
    }
  }
  const supersedes = body.has("supersedes") ? hex(body.get("supersedes")) : undefined;
  return unless(
    value.get("supersedes") !== supersedes,
    `supersedes ${value.get("supersedes")}`,
    String(supersedes),
  );
}
