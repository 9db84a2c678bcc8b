/* Checkpoints: signed notes about the first records of a log (spec §13.2). */

import { fromBase64 } from "./base64.mjs";
import { hex, textOf, utf8 } from "./bytes.mjs";

const MAX_NOTE = 65536;
const MAX_LINES = 64;
const DASH = "\u2014 ";

/** Why bytes are no checkpoint, proof or excerpt. */
export class Malformed extends Error {}

/** A note of a file: {origin, chain, size, root, signed, lines}; throws Malformed. */
export function noteOf(bytes) {
  const text = textOf(bytes);
  if (text === null) throw new Malformed("bytes that are not UTF-8");
  return noteFrom(text);
}

/** A note of its text. */
export function noteFrom(text) {
  const size = utf8(text).length;
  if (size > MAX_NOTE) throw new Malformed(`${size} bytes`);
  if (/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/.test(text))
    throw new Malformed("a control character");
  if (!text.endsWith("\n")) throw new Malformed("a last line without its end");
  const lines = text.slice(0, -1).split("\n");
  if (lines.length < 5 || lines[3] !== "")
    throw new Malformed("other lines than those of a checkpoint");
  if (lines.length > 4 + MAX_LINES) throw new Malformed("too many signature lines");
  const [origin, count, root] = lines;
  const chain = /^cardchain\/([0-9a-f]{32})$/.exec(origin);
  if (chain === null) throw new Malformed("an origin that is not cardchain/ and a chain");
  return {
    origin,
    chain: chain[1],
    size: sizeOfTree(count),
    root: rootOf(root),
    signed: utf8(`${origin}\n${count}\n${root}\n`),
    lines: lines.slice(4).map(signatureLine),
  };
}

/** A decimal number from 1 to 2^53 − 1 without leading zeros. */
export function sizeOfTree(text) {
  const size = /^[1-9][0-9]{0,15}$/.test(text) ? Number(text) : 0;
  if (!Number.isSafeInteger(size) || size === 0) throw new Malformed("a size in another form");
  return size;
}

/** A digest of 32 bytes in base64. */
export function rootOf(text) {
  const bytes = fromBase64(text);
  if (bytes?.length !== 32) throw new Malformed("a hash that is not 32 bytes of base64");
  return bytes;
}

/** White space is that of Unicode, so not U+FEFF, which \s holds too (spec §13.2). */
function isKeyName(text) {
  return /^(?:[^\s+]|\ufeff)+$/.test(text);
}

function signatureLine(line) {
  const parts = line.startsWith(DASH) ? line.slice(DASH.length).split(" ") : [];
  const bytes = parts.length === 2 && isKeyName(parts[0]) ? fromBase64(parts[1]) : null;
  if (bytes === null || bytes.length < 5) throw new Malformed("a line that is no signature");
  return { name: parts[0], id: hex(bytes.subarray(0, 4)), signature: bytes.subarray(4) };
}

/**
 * Whether a given vkey signed a note: {isSigned}, and {check, expected, found} of what fails.
 * `isSigned` is null where there was no signature to look at. `chain` is that of the log, or null
 * where it is not known.
 */
export async function signedUnder(note, vkeys, chain) {
  const found = await signatureOf(note, vkeys);
  if (chain === null || note.chain === chain) return found;
  const { isSigned } = found;
  return { isSigned, check: "checkpoint", expected: `chain ${chain}`, found: note.chain };
}

async function signatureOf(note, vkeys) {
  const named = vkeys.filter((vkey) => vkey.name === note.origin);
  let isSigned = null;
  for (const vkey of named) {
    const lines = note.lines.filter((line) => line.name === vkey.name && line.id === vkey.id);
    if (lines.length > 1) {
      return {
        isSigned: null,
        check: "checkpoint",
        expected: "one line of each key",
        found: `${lines.length} of ${vkey.id}`,
      };
    }
    if (lines.length === 1) {
      const holds = await signatureHolds(vkey, lines[0].signature, note.signed);
      if (holds === null)
        return {
          isSigned: null,
          check: "checkpoint_key",
          expected: "Ed25519",
          found: "not in this browser",
        };
      if (!holds)
        return {
          isSigned: false,
          check: "checkpoint_signature",
          expected: `a signature of ${vkey.id}`,
          found: "another",
        };
      isSigned = true;
    }
  }
  if (isSigned) return { isSigned };
  const expected = "a signature under a given vkey";
  return { isSigned, check: "checkpoint_key", expected, found: "none" };
}

/** Whether an Ed25519 signature holds; null where this browser cannot tell. */
async function signatureHolds({ key }, signature, bytes) {
  let imported;
  try {
    imported = await crypto.subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
  } catch {
    return null;
  }
  return crypto.subtle.verify({ name: "Ed25519" }, imported, signature, bytes);
}
