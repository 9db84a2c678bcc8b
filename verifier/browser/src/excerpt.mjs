/* Excerpts (spec §14): some records of a log, with proofs that they stand in it. */

import { CborError, CborReader, decoded } from "./cbor.mjs";
import { fromHex, hex, textOf } from "./bytes.mjs";
import { sha256 } from "./hash.mjs";
import { Malformed } from "./note.mjs";
import { inclusionProof } from "./proofs.mjs";
import { recordAt } from "./record.mjs";
import { understood } from "./read.mjs";
import { isWhole } from "./schema.mjs";
import { includes } from "./tree.mjs";

const FORMAT = "cardchain-excerpt/1";
const PREFIX = "cardchain-excerpt/";
const MAX_EXCERPT = 67108864;
const MAX_OPENINGS = 1073741824; // each counted for every record that binds it
const BESIDE = ["clock_reset", "redacted"];

/**
 * What a file says that begins like an excerpt (spec §14.1), as {format}; null where it is none.
 * The format is null where the file ends inside it, or where it is no text.
 */
export function excerptHead(bytes) {
  const reader = new CborReader(bytes);
  try {
    if (head(reader, 4) === null) return null;
    const size = head(reader, 3);
    const begin = textOf(bytes.subarray(reader.at, reader.at + PREFIX.length));
    if (size === null || size < PREFIX.length || begin !== PREFIX) return null;
    const end = reader.at + Number(size);
    return { format: end > bytes.length ? null : textOf(bytes.subarray(reader.at, end)) };
  } catch (error) {
    if (!(error instanceof CborError)) throw error;
    return null;
  }
}

/** The number in the head of an item of one major type, or null at another one. */
function head(reader, major) {
  const first = reader.byte();
  return first >> 5 === major ? reader.argument(first & 31) : null;
}

/** Whether an excerpt is of a version that this program does not know. */
export function isOfOtherVersion({ format }) {
  return format !== null && format !== FORMAT;
}

/** An excerpt in its one form: {scope, records, proofs}; throws Malformed. */
export async function excerptOf(bytes) {
  if (bytes.length > MAX_EXCERPT) throw new Malformed(`${bytes.length} bytes`);
  const [format, scope, records, proofs, openings] = itemsOf(bytes);
  if (format !== FORMAT || !isListOf(records, Uint8Array) || records.length === 0) {
    throw new Malformed("no list of records");
  }
  if (!isListOf(openings, Uint8Array)) throw new Malformed("no list of openings");
  const found = {
    scope: scopeOf(scope),
    records: records.map(bareRecord),
    proofs: proofsOf(proofs),
  };
  const seqs = found.records.map((record) => record.seq);
  ascending(
    seqs.filter((seq) => seq !== null),
    "records",
  );
  if (!seqs.includes(null) && found.proofs.some((proof) => !seqs.includes(proof.index)))
    throw new Malformed("a proof of no record of it");
  await putIn(found.records, openings);
  if (found.scope.card) checkReceipt(found);
  return found;
}

function itemsOf(bytes) {
  try {
    const items = decoded(bytes);
    if (Array.isArray(items) && items.length === 5) return items;
  } catch (error) {
    if (!(error instanceof CborError)) throw error;
    throw new Malformed(error.message);
  }
  throw new Malformed("not an array of five");
}

function isListOf(value, type) {
  return Array.isArray(value) && value.every((one) => one instanceof type);
}

function scopeOf(scope) {
  const names = scope instanceof Map ? [...scope.keys()].join(" ") : "";
  if (names === "card") {
    const card = scope.get("card");
    if (card instanceof Uint8Array && card.length === 32) return { card: hex(card) };
  }
  if (names === "to from") {
    const [from, to] = [scope.get("from"), scope.get("to")];
    if ([from, to].every((end) => isWhole(end, 0, Number.MAX_SAFE_INTEGER)) && from <= to)
      return { from, to };
  }
  throw new Malformed("a scope that is neither a card nor a range");
}

function bareRecord(bytes, order) {
  let record;
  try {
    record = recordAt(bytes, 0);
  } catch (error) {
    if (!(error instanceof CborError)) throw error;
    throw new Malformed(`a record: ${error.message}`);
  }
  const isBare = record.openings instanceof Map && record.openings.size === 0;
  if (!isBare || record.end !== bytes.length || hex(bytes.subarray(0, 8)) !== "d1844da201050448") {
    throw new Malformed("a record that is not bare");
  }
  return Object.assign(understood(record), { offset: null, order });
}

function proofsOf(texts) {
  if (!Array.isArray(texts) || texts.some((text) => typeof text !== "string")) {
    throw new Malformed("no list of proofs");
  }
  const proofs = texts.map(inclusionProof);
  ascending(
    proofs.map((proof) => proof.index),
    "proofs",
  );
  if (proofs.some((proof) => proof.noteText !== proofs[0].noteText)) {
    throw new Malformed("proofs under several checkpoints");
  }
  return proofs;
}

function ascending(values, what) {
  if (values.some((value, at) => at > 0 && value <= values[at - 1])) {
    throw new Malformed(`${what} out of order`);
  }
}

/** Puts each opening into the records that bind it. */
async function putIn(records, openings) {
  const digests = await Promise.all(openings.map(sha256));
  ascending(digests, "openings");
  const byDigest = new Map(digests.map((digest, at) => [digest, openings[at]]));
  const used = new Set();
  let size = 0;
  for (const record of records) {
    for (const [name, digest] of record.bound ?? []) {
      if (!byDigest.has(digest)) continue;
      size += byDigest.get(digest).length;
      if (size > MAX_OPENINGS) throw new Malformed("openings that ask for too much work");
      record.openings.set(name, byDigest.get(digest));
      used.add(digest);
    }
  }
  const isReadable = records.every((record) => record.bound !== undefined);
  if (isReadable && used.size < byDigest.size)
    throw new Malformed("an opening that no record binds");
}

function checkReceipt({ scope, records }) {
  const own = records.filter(
    (record) => record.kind !== undefined && !BESIDE.includes(record.kind),
  );
  if (own.some((record) => record.card !== scope.card))
    throw new Malformed("a record of another card");
  const isReadable = records.every((record) => record.kind !== undefined);
  if (isReadable && own[0]?.kind !== "issued")
    throw new Malformed("a receipt that does not begin with issued");
}

/**
 * Says of each record whether it is covered, and whether its proof fails (spec §14.3).
 * The records have their digests already; `note`: the checkpoint of the proofs.
 */
export async function cover({ records, proofs }, note) {
  const bySeq = new Map(records.map((record) => [record.seq, record]));
  await Promise.all(
    proofs.map(async (proof) => {
      const record = bySeq.get(proof.index);
      if (record === undefined) return;
      record.proofFails = !(await includes(proof, fromHex(record.digest), note));
      record.isCovered = !record.proofFails;
    }),
  );
  for (const record of [...records].reverse()) {
    const next = bySeq.get(record.seq + 1);
    if (next?.isCovered && next.prev === record.digest) record.isCovered = true;
  }
}
