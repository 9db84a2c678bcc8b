/* How far a log goes, and which chain digest stands where in it (spec §10.2, §15.2). */

/**
 * How many records a log holds: one more than its highest seq. A log that ends before the record
 * that the auditor kept is taken to hold what stands up to there.
 */
export function reachedBy({ first, hasPassedOver, passed, since, sequence }) {
  const isKept = first === null && hasPassedOver && passed === null;
  const before = isKept ? since.seq + 1 : (passed?.reach ?? 0);
  return Math.max(sequence.next ?? 0, before);
}

/** Whether nothing after the last record can hold more of them. */
export function isEndKnown({ sequence, isLastUnplaced }) {
  return !sequence.afterBytes && !isLastUnplaced;
}

/** The record that the auditor kept, {seq, digest}, where the log ends with it, or null. */
export function keptEnd(log, isUnreadable) {
  return !isUnreadable && isEndKnown(log) ? log.kept : null;
}

/** The chain digest at a seq, also where it was only hashed, or undefined. */
export function digestAt({ records, passed, kept }, seq) {
  if (kept?.seq === seq) return kept.digest;
  return records.get(seq)?.digest ?? passed?.digests[seq - passed.edge];
}

/** The seq of the record with this chain digest, or null; the first one names that before it. */
export function seqOf({ records, passed, hasPassedOver, since, scope, first }, digest) {
  for (const [seq, record] of records) if (record.digest === digest) return seq;
  const at = passed?.digests.indexOf(digest) ?? -1;
  if (at !== -1) return passed.edge + at;
  if (hasPassedOver && since.digest === digest) return since.seq;
  return scope === null && first?.prev === digest && first.seq > 0 ? first.seq - 1 : null;
}
