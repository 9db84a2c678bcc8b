/* Key files (spec §4.1, §4.3): secrets by chain and kid, and what the files pin. */

import { fromHex, isHex, joined, utf8 } from "./bytes.mjs";
import { JsonError, parsedJson } from "./json.mjs";
import { macKey, sha256 } from "./hash.mjs";
import { isWhole, members, oneOf, rule } from "./schema.mjs";

export const KEY_FORMAT = "cardchain-key/1";
const digits = (size) => rule(`${2 * size} lower-case hexadecimal digits`, (v) => isHex(v, size));
const KEY_FILE = members({
  format: oneOf(KEY_FORMAT),
  chain: digits(16),
  kid: digits(8),
  secret: digits(32),
  "pin?": members({
    seq: rule("an integer", (value) => isWhole(value, 0, Number.MAX_SAFE_INTEGER)),
    digest: digits(32),
  }),
});

/** The key of a key file: {chain, kid, mac, pin}, or {fault} in words. */
async function keyOf(bytes) {
  if (bytes === null) return { fault: "it cannot be read" };
  let document;
  try {
    document = parsedJson(bytes);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return { fault: `${error.pointer || "the document"}: ${error.message}` };
  }
  const wrong = KEY_FILE(document, "");
  if (wrong !== null) return { fault: `expected ${wrong.pointer || "/"}: ${wrong.expected}` };
  const [chain, kid] = [document.get("chain"), document.get("kid")];
  const secret = fromHex(document.get("secret"));
  const derived = await sha256(joined(utf8("cardchain/kid"), fromHex(chain), secret));
  if (derived.slice(0, 16) !== kid)
    return { fault: "its kid does not follow from its chain and secret" };
  const pin = document.get("pin");
  return {
    chain,
    kid,
    mac: await macKey(secret),
    pin: pin === undefined ? null : { seq: pin.get("seq"), digest: pin.get("digest") },
  };
}

/** All keys of the files, each {name, bytes}: {keys, warnings}. */
export async function keyRing(files) {
  const keys = [];
  const warnings = [];
  for (const { name, bytes } of files) {
    const key = await keyOf(bytes);
    if (key.fault === undefined) keys.push(key);
    else warnings.push(`key file ${name} is not used: ${key.fault}`);
  }
  return { keys, warnings };
}
