/* What the auditor verified before: read for its chain digests alone, or passed over (spec §15.2). */

import { fromHex, sameBytes } from "./bytes.mjs";
import { sha256 } from "./hash.mjs";
import { leafOf } from "./record.mjs";
import { rootAt, subtreesOf } from "./tree.mjs";

/**
 * Reads the records below the size of a checkpoint: {since, leaves, digests, reach, edge}, or null
 * where the log does not begin below it. `items` are those of all files, in order.
 * `since` is where to go on: `isLoose` says that the root is another, `isNamed` that there is one.
 */
export async function passedOver(items, note, frontiers) {
  const last = note.size - 1;
  const records = [];
  let reach = 0;
  let edge = null;
  for (const { record } of items) {
    if (record === undefined) continue;
    edge ??= record.seq ?? 0;
    if (edge >= note.size || (record.seq !== null && record.seq > last)) break;
    records.push(record);
    reach = Math.max(reach, (record.seq ?? 0) + 1);
    if (record.seq === last) break;
  }
  if (edge === null || edge >= note.size) return null;
  const digests = await Promise.all(records.map((record) => sha256(leafOf(record))));
  const leaves = digests.map(fromHex);
  const frontier = frontiers.find(({ number }) => number === edge)?.hashes ?? [];
  const levels = await subtreesOf(leaves, edge, frontier);
  const isWhole = levels !== null && edge + leaves.length === note.size;
  const isRoot = isWhole && sameBytes(await rootAt(levels, note.size), note.root);
  const isNamed = levels !== null;
  const since = { seq: last, digest: digests.at(-1), isLoose: isNamed && !isRoot, isNamed };
  return { since, leaves, digests, reach, edge };
}

/** After the last record of a log: whether it ends with the one that the auditor kept. */
export async function settleEnd(log) {
  if (log.first !== null || log.reached === null) return;
  const { seq, digest, isLoose = false, isNamed = true } = log.since;
  log.reached.digest = await sha256(leafOf(log.reached));
  if (log.reached.digest === digest && isNamed && !isLoose) log.kept = { seq, digest };
}

/** The seq that a log goes on with, or null before the record that the auditor kept. */
export function nextSeq({ sequence, since, first, reached }) {
  if (since === null || first !== null) return sequence.next ?? 0;
  return reached === null ? null : since.seq + 1;
}
