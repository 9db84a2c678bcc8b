/* Openings accounted for (spec §3.4, §6.3), and what recovered says of the record before. */

import { hex } from "./bytes.mjs";

export const PLACE_CHECKS = {
  recovered: (log, record) => {
    if (record.kind !== "recovered" || log.afterUnsound) return undefined;
    const after = record.body.get("after_seq");
    if (after === record.seq - 1) return null;
    return { expected: `after_seq ${record.seq - 1}`, found: String(after) };
  },
  redacted: (log, record) => {
    if (record.kind !== "redacted") return undefined;
    const { body } = record;
    const named = body.get("seq");
    const target = log.records.get(named);
    if (named >= record.seq) return { expected: "an earlier record", found: `seq ${named}` };
    if (target === undefined) return undefined;
    if (target.digest !== hex(body.get("target"))) {
      return { expected: `target ${target.digest}`, found: hex(body.get("target")) };
    }
    const names = body.get("openings");
    if (new Set(names).size !== names.length)
      return { expected: "each opening once", found: "one twice" };
    const unbound = names.some((name) => !target.bound.includes(name));
    return unbound ? { expected: "openings that the record binds", found: "another" } : null;
  },
  pruned: (log, record) => (record.kind === "pruned" ? prunedFault(log, record) : undefined),
};

/** What is wrong with a pruned record (spec §15.2), or null. */
function prunedFault(log, record) {
  const before = record.body.get("before");
  if (before === 0 || before > record.seq) {
    return { expected: `before from 1 to ${record.seq}`, found: String(before) };
  }
  if (before < log.prunedBefore) {
    return { expected: `before of at least ${log.prunedBefore}`, found: String(before) };
  }
  const digest = digestBelow(log, before);
  const named = hex(record.body.get("digest"));
  if (digest !== null && digest !== named) return { expected: `digest ${digest}`, found: named };
  const open = [...log.state.cards.values()].find(
    (card) =>
      card.isIssued &&
      card.issuedSeq < before &&
      !card.isTouched &&
      card.epoch === log.state.epoch &&
      !log.state.isEnded(card, record.at),
  );
  return open ? { expected: "cards that are ended", found: `card ${open.hash} is not` } : null;
}

/** The chain digest of the record before `before`, where the log shows it, or null. */
function digestBelow(log, before) {
  const there = log.records.get(before - 1);
  if (there !== undefined) return there.isUnsound ? null : there.digest;
  return log.first.seq === before && log.first.prev ? log.first.prev : null;
}

/** Keeps of a record what later ones may name, and which of its openings are absent. */
export function remember(log, record, isUnsound) {
  if (record.kind === undefined || record.chain !== log.chain) return;
  if (!log.records.has(record.seq)) {
    log.records.set(record.seq, {
      digest: record.digest,
      bound: [...record.bound.keys()],
      card: record.card,
      isUnsound,
    });
  }
  if (isUnsound) return;
  for (const name of record.bound.keys()) {
    if (record.openings.has(name)) continue;
    log.absent.push({ name, epoch: log.state.epoch, record });
  }
  if (record.kind === "redacted") {
    for (const name of record.body.get("openings"))
      log.redactions.add(`${record.body.get("seq")} ${name}`);
  }
}

/** Whether an opening is absent that nothing has named yet. */
export function hasUnnamed(log) {
  return log.absent.some(
    ({ name, epoch, record }) =>
      epoch === log.state.epoch && !log.redactions.has(`${record.seq} ${name}`),
  );
}

/**
 * The absent openings that no redacted event names and no unsound record may explain:
 * [{record, names}], one for each record.
 */
export function missingOpenings(log) {
  const byRecord = new Map();
  for (const { name, epoch, record } of log.absent) {
    if (log.redactions.has(`${record.seq} ${name}`) || epoch !== log.state.epoch) continue;
    if (!byRecord.has(record)) byRecord.set(record, []);
    byRecord.get(record).push(name);
  }
  return [...byRecord].map(([record, names]) => ({ record, names: names.sort() }));
}

/** Missing openings as a report lists them where an auditor allows them (spec §15.4). */
export function withheldOf(absent) {
  return absent.map(({ record, names }) => ({ seq: record.seq, openings: names }));
}
