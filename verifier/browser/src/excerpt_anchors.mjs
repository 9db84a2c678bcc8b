/* The checkpoint of an excerpt, held together with those that an auditor kept (spec §13.7, §14.3). */

import { sameBytes } from "./bytes.mjs";
import { checkpointsOf, readAnchor } from "./anchors.mjs";
import { Malformed, noteFrom, signedUnder } from "./note.mjs";
import { extendsTree } from "./tree.mjs";

/**
 * {isSigned, findings, warnings, held, consistency}; `held` are the given checkpoints that are
 * known to be of the same log, `consistency` says how their row ended.
 */
export async function excerptAnchors(file, excerpt, options, chain) {
  const { proofs, vkeys } = options;
  const given = await checkpointsOf({ ...options, proofs: [] }, [], chain);
  const found = {
    ...given,
    isExcerpt: true,
    isSigned: false,
    held: [],
    own: null,
    hasProof: excerpt.proofs.length > 0,
    consistency: "none",
  };
  if (found.hasProof) readOwn(file, excerpt.proofs[0], found);
  await judgeOwn(file, found, vkeys, chain);
  if (found.own === null || !found.isSigned || given.checkpoints.length === 0) return found;
  found.consistency = "open";
  for (const checkpoint of given.checkpoints)
    await compare(checkpoint, proofs, found, vkeys, chain);
  return found;
}

function readOwn(file, { noteText }, found) {
  try {
    found.own = noteFrom(noteText);
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    found.looked.push({ isEnclosed: true, isSigned: null });
    const expected = "its one form";
    found.findings.push({ check: "checkpoint", file, expected, found: error.message });
  }
}

/** The checkpoint in the proofs is delivered: one that no given vkey signed is left aside. */
async function judgeOwn(file, found, vkeys, chain) {
  if (found.own === null) return;
  const { isSigned, ...fault } = await signedUnder(found.own, vkeys, chain);
  found.looked.push({ isEnclosed: true, isSigned });
  if (fault.check === undefined) found.isSigned = true;
  else if (fault.check === "checkpoint_key") {
    if (vkeys.length > 0)
      found.aside = `the checkpoint in ${file} is left aside: no given vkey signed it`;
  } else found.findings.push({ ...fault, file });
}

async function compare(checkpoint, proofs, found, vkeys, chain) {
  const { note, file } = checkpoint;
  const { own } = found;
  if (note.size === own.size) {
    if (sameBytes(note.root, own.root)) agree(checkpoint, found);
    else
      fail(found, { check: "consistency", file, expected: "one root at one size", found: "two" });
    return;
  }
  const [older, newer] = note.size < own.size ? [note, own] : [own, note];
  for (const proof of proofs)
    await tryProof(proof, { older, newer, checkpoint }, found, vkeys, chain);
}

async function tryProof({ name, bytes }, { older, newer, checkpoint }, found, vkeys, chain) {
  const { note, proof, fault: wrong } = readAnchor(bytes, true);
  if (wrong !== undefined) {
    fail(found, { ...wrong, file: name });
    return;
  }
  const fault = await signedUnder(note, vkeys, chain);
  if (fault.check !== undefined) {
    const { check, expected, found: is } = fault;
    fail(found, { check, expected, found: is, file: name });
    return;
  }
  if (proof.oldSize !== older.size || note.size !== newer.size) return;
  const isSame = sameBytes(note.root, newer.root);
  if (isSame && (await extendsTree(older, newer, proof.path))) agree(checkpoint, found);
  else {
    const expected = "a proof that the newer tree extends the older one";
    fail(found, { check: "consistency", file: name, expected, found: "another" });
  }
}

function agree(checkpoint, found) {
  found.held.push(checkpoint);
  if (found.consistency === "open") found.consistency = "holds";
}

function fail(found, finding) {
  if (!found.findings.some((one) => one.file === finding.file)) found.findings.push(finding);
  if (finding.check === "consistency") found.consistency = "fails";
}
