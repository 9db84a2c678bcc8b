/* What an auditor holds logs against (spec §13.7, §16): vkeys, checkpoints, proofs, a pin. */

import { fromBase64 } from "./base64.mjs";
import { fromHex, isHex, sameBytes, textOf } from "./bytes.mjs";
import { JsonError, parsedJson } from "./json.mjs";
import { Malformed, noteOf, signedUnder } from "./note.mjs";
import { consistencyProof } from "./proofs.mjs";
import { isWhole, members, oneOf, rule } from "./schema.mjs";
import { rootAt, subtreesOf } from "./tree.mjs";

export const PIN_FORMAT = "cardchain-pin/1";
const digits = (size) => rule(`${2 * size} lower-case hexadecimal digits`, (v) => isHex(v, size));
const PIN = members({
  format: oneOf(PIN_FORMAT),
  chain: digits(16),
  seq: rule("an integer", (value) => isWhole(value, 0, Number.MAX_SAFE_INTEGER)),
  digest: digits(32),
});

/** A pin file as {chain, seq, digest}, or {fault} in words (spec §16.2). */
export function pinOf(bytes) {
  try {
    const document = parsedJson(bytes);
    const wrong = PIN(document, "");
    if (wrong !== null) return { fault: `expected ${wrong.pointer || "/"}: ${wrong.expected}` };
    return {
      chain: document.get("chain"),
      seq: document.get("seq"),
      digest: document.get("digest"),
    };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return { fault: `${error.pointer || "the document"}: ${error.message}` };
  }
}

/**
 * The checkpoints of a log that are signed under a given vkey, as {file, note, isGiven}, the
 * findings about the others, and warnings. `delivered` is a list of {name, bytes}.
 * The newer checkpoint of a given proof is held against a log too, and pins nothing.
 */
export async function checkpointsOf(options, delivered, chain) {
  const { checkpoints, proofs, vkeys, unreadable, otherChains, sinceNote } = options;
  const findings = unreadable.map(unreadableFinding);
  const found = { checkpoints: [], findings, warnings: [], read: 0 };
  const context = { vkeys, chain, otherChains, found };
  for (const file of checkpoints) await take(file, { isGiven: true, pins: true }, context);
  for (const file of proofs) await take(file, { isGiven: true, isProof: true }, context);
  if (sinceNote) await take(sinceNote, { isGiven: true, pins: true, isSince: true }, context);
  if (vkeys.length === 0) return found;
  for (const file of delivered) await take(file, {}, context);
  return found;
}

/** A given file that cannot be read is told, and accuses nobody. */
function unreadableFinding(file) {
  return { check: "unreadable", file, expected: "a file that can be read", found: "none" };
}

async function take({ name, bytes }, { isGiven, pins = false, isProof, isSince }, context) {
  const { vkeys, chain, otherChains, found } = context;
  let note;
  try {
    note = isProof ? consistencyProof(bytes).note : noteOf(bytes);
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    const check = isProof ? "consistency" : "checkpoint";
    found.read += 1;
    found.findings.push({ check, file: name, expected: "its one form", found: error.message });
    return;
  }
  if (isGiven && note.chain !== chain && isOfAnother(note, otherChains)) return;
  found.read += 1;
  const { signed, ...fault } = await signedUnder(note, vkeys, chain);
  if (signed) found.checkpoints.push({ file: name, note, isGiven: pins, isSince });
  else if (!isGiven && fault.check === "checkpoint_key") {
    found.read -= 1;
    found.warnings.push(`checkpoint ${name} is left aside: no given vkey signed it`);
  } else found.findings.push({ ...fault, file: name });
}

/** Whether a checkpoint is, or may be, about another input of the run (spec §13.7). */
function isOfAnother(note, otherChains) {
  return otherChains.some((chain) => chain === null || chain === note.chain);
}

/** The hashes of a frontier file (spec §13.5), or null where it is none. */
export function frontierOf(bytes) {
  const text = textOf(bytes);
  if (text === null || !text.endsWith("\n")) return null;
  const hashes = text.slice(0, -1).split("\n").map(fromBase64);
  return hashes.every((hash) => hash?.length === 32) ? hashes : null;
}

/**
 * Holds a log against its checkpoints: {findings, covered, held, isCompared}.
 * `covered` is the number of records below the largest size whose root holds; `isCompared` says
 * that a root was compared.
 */
export async function held(log, checkpoints, frontier, passed = null) {
  const result = { findings: [], covered: 0, held: [], isCompared: false };
  const edge = passed?.edge ?? log.first?.seq ?? 0;
  const leaves = [...(passed?.leaves ?? []), ...soundDigests(log)];
  const isKnown = edge === 0 || frontier !== null;
  const levels = isKnown ? await subtreesOf(leaves, edge, frontier ?? []) : null;
  const bySize = [...checkpoints].sort((one, other) => one.note.size - other.note.size);
  for (const checkpoint of bySize) await hold(log, checkpoint, { levels, passed }, result);
  result.findings.splice(1); // the smallest explains the others (spec §16.4)
  return result;
}

async function hold(log, checkpoint, { levels, passed }, result) {
  const { note, file } = checkpoint;
  const reached = Math.max(log.sequence.next ?? 0, passed?.reach ?? 0);
  if (reached < note.size) {
    const expected = `at least ${note.size} records`;
    result.findings.push({ check: "checkpoint_size", file, expected, found: `${reached} records` });
    return;
  }
  const isWrong = passed?.since.isLoose && checkpoint.isSince;
  const end = log.soundNext ?? (passed === null ? 0 : passed.since.seq + 1);
  const isOpen =
    levels === null || end < note.size || note.size < (passed?.edge ?? log.first?.seq ?? 0);
  if (!isWrong && (isOpen || passed?.since.isLoose)) return;
  result.isCompared = true;
  if (!isWrong && sameBytes(await rootAt(levels, note.size), note.root)) {
    result.covered = Math.max(result.covered, note.size);
    result.held.push(checkpoint);
    return;
  }
  const expected = "the signed root";
  result.findings.push({ check: "checkpoint_root", file, expected, found: "another" });
}

/** The chain digests of the sound records from the first on, as far as none is missing. */
function soundDigests(log) {
  const digests = [];
  for (let seq = log.first?.seq ?? 0; seq < log.soundNext; seq += 1)
    digests.push(fromHex(log.records.get(seq).digest));
  return digests;
}
