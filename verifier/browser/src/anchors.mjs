/* What an auditor holds logs against (spec §13.7, §16): vkeys, checkpoints, proofs, a pin. */

import { fromBase64 } from "./base64.mjs";
import { fromHex, isHex, sameBytes, textOf } from "./bytes.mjs";
import { JsonError, parsedJson } from "./json.mjs";
import { Malformed, noteFrom, noteOf, signedUnder } from "./note.mjs";
import { consistencyProof } from "./proofs.mjs";
import { isEndKnown, reachedBy } from "./extent.mjs";
import { isWhole, members, oneOf, rule } from "./schema.mjs";
import { extendsTree, rootAt, subtreesOf } from "./tree.mjs";

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
  const found = { checkpoints: [], findings, warnings: [], looked: [] };
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
  const { note, proof, fault: wrong } = readAnchor(bytes, isProof);
  if (wrong !== undefined) {
    if (wrong.check === "checkpoint") found.looked.push({ isSigned: null });
    found.findings.push({ ...wrong, file: name });
    return;
  }
  if (isGiven && note.chain !== chain && isOfAnother(note, otherChains)) return;
  const { isSigned, ...fault } = await signedUnder(note, vkeys, chain);
  const isLeft = !isGiven && fault.check === "checkpoint_key";
  if (!isLeft && !(isGiven && note.chain !== chain))
    found.looked.push({ isSigned });
  if (fault.check === undefined)
    found.checkpoints.push({ file: name, note, proof, isGiven: pins, isSince });
  else if (isLeft) {
    found.warnings.push(`checkpoint ${name} is left aside: no given vkey signed it`);
  } else {
    const isApart = isGiven && note.chain !== chain; // of a chain that no input is of
    found.findings.push({ ...fault, file: name, isApart });
  }
}

/** A checkpoint or a consistency proof: {note, proof?}, or {fault} as the parts of a finding. */
export function readAnchor(bytes, isProof) {
  let check = isProof ? "consistency" : "checkpoint";
  try {
    if (!isProof) return { note: noteOf(bytes) };
    const proof = consistencyProof(bytes);
    check = "checkpoint";
    return { note: noteFrom(proof.noteText), proof };
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    return { fault: { check, expected: "its one form", found: error.message } };
  }
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
 * Holds a log against its checkpoints:
 * {findings, covered, held, isCompared, isExtended}.
 * `covered` is the number of records below the largest size whose root holds; `isCompared` says
 * that a root was compared, `isExtended` that a consistency proof was checked.
 */
export async function held(log, checkpoints, frontier, isUnreadable) {
  const { passed } = log;
  const edge = passed?.edge ?? log.first?.seq ?? 0;
  const result = { covered: 0, held: [], isCompared: false, isExtended: false };
  const found = [];
  const ground = { ...(await treeOf(log, edge, frontier)), isUnreadable };
  const bySize = [...checkpoints].sort((one, other) => one.note.size - other.note.size);
  const isAtEdge = ({ note }) => edge > 0 && note.size === edge;
  const inOrder = [...bySize.filter((one) => !isAtEdge(one)), ...bySize.filter(isAtEdge)];
  for (const checkpoint of inOrder) {
    const finding = await holdOne(log, checkpoint, ground, result);
    const { file, note } = checkpoint;
    if (finding !== null) found.push({ ...finding, file, size: note.size });
  }
  return { ...result, findings: told(found) };
}

/** The tree over the sound records: {levels, edge, end}; `levels` is null where none is known. */
async function treeOf(log, edge, frontier) {
  const { passed } = log;
  const leaves = [...(passed?.leaves ?? []), ...(passed?.since.isLoose ? [] : soundDigests(log))];
  const levels =
    edge === 0 || frontier !== null ? await subtreesOf(leaves, edge, frontier ?? []) : null;
  return { levels, edge, end: edge + leaves.length };
}

/** The smallest checkpoint of a wrong size or root explains the others (spec §16.4). */
function told(found) {
  const isOfTree = ({ check }) => check !== "consistency";
  const [first, ...others] = found.sort((one, other) => one.size - other.size).filter(isOfTree);
  return found.filter((one) => !others.includes(one)).map(({ size, ...finding }) => finding);
}

/** Holds a log against one checkpoint; gives what it fails, or null. */
async function holdOne(log, checkpoint, ground, result) {
  const { note, isSince } = checkpoint;
  const reached = reachedBy(log);
  if (!ground.isUnreadable && isEndKnown(log) && reached < note.size) {
    const found = `${reached} records`;
    return { check: "checkpoint_size", expected: `at least ${note.size} records`, found };
  }
  const root = await rootOver(ground, note.size, result.covered);
  const isRight = root !== null && sameBytes(root, note.root);
  const isWrong = (isSince && log.passed?.since.isLoose) || (root !== null && !isRight);
  if (isWrong && isDoubted(log, note.size)) return null;
  result.isCompared ||= isWrong || isRight;
  if (isWrong) {
    const isOverFrontier = ground.edge > 0;
    const expected = "the signed root";
    return { check: "checkpoint_root", expected, found: "another", isOverFrontier };
  }
  if (isRight) result.covered = Math.max(result.covered, note.size);
  const finding = await extendsOld(checkpoint, ground, result);
  if (isRight && finding === null) result.held.push(checkpoint);
  return finding;
}

/**
 * The root at a size, or null where none is known. At the left edge it follows from the frontier
 * alone, which anybody can put there: it is looked at only below a larger one that holds.
 */
async function rootOver({ levels, edge, end }, size, covered) {
  if (levels === null || size > end || size < edge) return null;
  return edge > 0 && size === edge && covered <= size ? null : rootAt(levels, size);
}

/** Whether the last record below a size is in doubt already: the one after it names another. */
function isDoubted(log, size) {
  return log.findings.some(({ check, seq }) => check === "link" && seq === size);
}

/** Holds a given proof against the root at its older size, where that is known. */
async function extendsOld({ note, proof }, ground, result) {
  if (proof === undefined) return null;
  const root = await rootOver(ground, proof.oldSize, result.covered);
  if (root === null) return null;
  result.isExtended = true;
  if (await extendsTree({ size: proof.oldSize, root }, note, proof.path)) return null;
  const expected = "a proof that the newer tree extends the older one";
  return { check: "consistency", expected, found: "another" };
}

/** The chain digests of the sound records from the first on, as far as none is missing. */
function soundDigests(log) {
  const digests = [];
  for (let seq = log.first?.seq ?? 0; seq < log.soundNext; seq += 1)
    digests.push(fromHex(log.records.get(seq).digest));
  return digests;
}
