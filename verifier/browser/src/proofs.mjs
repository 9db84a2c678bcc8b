/* Proofs as text (spec §13.6): that a record stands in a tree, and that a tree extends another. */

import { textOf } from "./bytes.mjs";
import { Malformed, rootOf, sizeOfTree } from "./note.mjs";

const PROOF = "c2sp.org/tlog-proof@v1";
const MAX_PATH = 63;

/** An inclusion proof: {index, path, noteText}; throws Malformed. */
export function inclusionProof(text) {
  const { head, noteText } = parted(text);
  const [version, index, ...path] = head;
  const found = /^index (0|[1-9][0-9]{0,15})$/.exec(index ?? "");
  if (version !== PROOF || found === null) throw new Malformed("other lines than those of a proof");
  if (!Number.isSafeInteger(Number(found[1]))) throw new Malformed("an index beyond every record");
  return { index: Number(found[1]), path: pathOf(path), noteText };
}

/** A consistency proof: {oldSize, path, noteText}, its checkpoint not read yet; throws Malformed. */
export function consistencyProof(bytes) {
  const text = textOf(bytes);
  if (text === null) throw new Malformed("bytes that are not UTF-8");
  const { head, noteText } = parted(text);
  const [old, ...path] = head;
  if (!old?.startsWith("old ")) throw new Malformed("no old size");
  return { oldSize: sizeOfTree(old.slice(4)), path: pathOf(path), noteText };
}

/** Whether bytes begin like a consistency proof and not like a checkpoint. */
export function isConsistencyProof(bytes) {
  return (textOf(bytes.subarray(0, 4)) ?? "") === "old ";
}

/** The lines before the first empty one, and the text after it. */
function parted(text) {
  const at = text.indexOf("\n\n");
  if (at === -1) throw new Malformed("no checkpoint under the hashes");
  return { head: text.slice(0, at).split("\n"), noteText: text.slice(at + 2) };
}

function pathOf(lines) {
  if (lines.length > MAX_PATH) throw new Malformed("more hashes than any tree is deep");
  return lines.map(rootOf);
}
