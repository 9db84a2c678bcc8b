/* SHA-256 and HMAC-SHA-256 of WebCrypto (spec §1); nothing here computes a digest itself. */

import { hex } from "./bytes.mjs";

/** The SHA-256 of `bytes` in hexadecimal. */
export async function sha256(bytes) {
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

/** A secret of 32 bytes as a key that can check tags, and that no script can read back. */
export function macKey(secret) {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  return crypto.subtle.importKey("raw", secret, algorithm, false, ["verify"]);
}

/** Whether `tag` is the HMAC of `bytes`; the expected tag is never seen (spec §10.3). */
export function tagHolds(key, tag, bytes) {
  return crypto.subtle.verify("HMAC", key, tag, bytes);
}
