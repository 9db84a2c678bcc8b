/* The bytes of a record (spec §3.1 to §3.4): where it ends, what stands in it, what its MAC covers. */

import { CborError, CborReader } from "./cbor.mjs";
import { fromHex, hex, joined } from "./bytes.mjs";

export const HEADER = fromHex("d1844da201050448");
export const MAX_BARE = 65535;
export const MAX_OPENING = 1048576;
export const MAX_RECORD = 5242880;
const PROTECTED_AT = 2;
const OPENINGS_AT = 16;
const MAC_CONTEXT = fromHex("84644d414330"); // an array of four, "MAC0"
const NO_DATA = fromHex("40");
const NO_OPENINGS = fromHex("a0");
const LEAF = fromHex("00");

/**
 * The record that begins at `at`, its parts not judged yet.
 * Throws CborError where no whole record of that outer form stands there.
 */
export function recordAt(bytes, at) {
  if (bytes.length - at < OPENINGS_AT) {
    throw new CborError("the bytes end inside a record", { short: true });
  }
  const reader = new CborReader(bytes, at + OPENINGS_AT);
  const openings = reader.item(2);
  const payloadAt = reader.at;
  const payload = reader.item(2);
  const tagAt = reader.at;
  const tag = reader.item(2);
  if (!(payload instanceof Uint8Array && tag instanceof Uint8Array)) {
    throw new CborError("a payload or tag that is no byte string");
  }
  return {
    offset: at,
    end: reader.at,
    size: reader.at - at,
    kid: hex(bytes.subarray(at + 8, at + OPENINGS_AT)),
    openings,
    payload,
    tag,
    protectedBytes: bytes.subarray(at + PROTECTED_AT, at + OPENINGS_AT),
    payloadItem: bytes.subarray(payloadAt, tagAt),
    tagItem: bytes.subarray(tagAt, reader.at),
  };
}

/** Whether the eight bytes of a record header, or as many as there are, stand at `at`. */
export function beginsLikeRecord(bytes, at) {
  const size = Math.min(HEADER.length, bytes.length - at);
  for (let step = 0; step < size; step += 1) if (bytes[at + step] !== HEADER[step]) return false;
  return size > 0;
}

/** What the chain digest is taken over: 00 and the record without its openings (spec §3.3). */
export function leafOf(record) {
  const { protectedBytes, payloadItem, tagItem } = record;
  return joined(LEAF, HEADER.subarray(0, 2), protectedBytes, NO_OPENINGS, payloadItem, tagItem);
}

/** What the tag covers: the MAC_structure of RFC 9052 §6.3 (spec §3.1). */
export function macInputOf(record) {
  return joined(MAC_CONTEXT, record.protectedBytes, NO_DATA, record.payloadItem);
}

/** Which limit of spec §3.3 a record breaks, in words, or null. */
export function limitBroken(record) {
  const { protectedBytes, payloadItem, tagItem, openings } = record;
  const bare = 3 + protectedBytes.length + payloadItem.length + tagItem.length;
  if (bare > MAX_BARE) return `a bare record of ${bare} bytes`;
  if (record.size > MAX_RECORD) return `a record of ${record.size} bytes`;
  if (!(openings instanceof Map)) return null;
  for (const opening of openings.values()) {
    if (opening.length > MAX_OPENING) return `an opening of ${opening.length} bytes`;
  }
  return null;
}
