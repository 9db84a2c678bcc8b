/* The public keys of signers (spec §13.3): one vkey a line. */

import { fromBase64 } from "./base64.mjs";
import { joined, textOf, utf8 } from "./bytes.mjs";
import { sha256 } from "./hash.mjs";

const VKEY = /^((?:[^\s+]|\ufeff)+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/;

/** The vkeys of files {name, bytes}: {vkeys, warnings}; a vkey is {text, name, id, key}. */
export async function vkeysOf(files) {
  const vkeys = [];
  const warnings = [];
  for (const { name, bytes } of files) {
    const text = bytes === null ? null : textOf(bytes);
    for (const line of (text ?? "it cannot be read").split("\n")) {
      if (line === "" || line.startsWith("#")) continue;
      const vkey = await vkeyOf(line);
      if (vkey.fault === undefined) vkeys.push(vkey);
      else warnings.push(`vkey file ${name}: a line is not used: ${vkey.fault}`);
    }
  }
  return { vkeys, warnings };
}

async function vkeyOf(text) {
  const [, name, id, encoded] = VKEY.exec(text) ?? [];
  const bytes = encoded === undefined ? null : fromBase64(encoded);
  if (bytes === null || bytes.length !== 33 || bytes[0] !== 1)
    return { fault: "it is no vkey of Ed25519" };
  const derived = (await sha256(joined(utf8(`${name}\n`), bytes))).slice(0, 8);
  if (derived !== id) return { fault: `expected the key id ${derived}, found ${id}` };
  return { text, name, id, key: bytes.subarray(1) };
}
