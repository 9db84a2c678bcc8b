/*
 * Records as read: the parts that need no digest first, then all digests of a batch at once.
 * WebCrypto answers one call in some ten microseconds, but a batch of calls keeps all cores busy.
 */

import { CborError, decoded, encodedArray } from "./cbor.mjs";
import { fromHex, hex, sameBytes } from "./bytes.mjs";
import { digestInputs, isOtherFormat, schemaFault } from "./envelope.mjs";
import { sha256, tagHolds } from "./hash.mjs";
import { canonical } from "./jcs.mjs";
import { JsonError, parsedJson } from "./json.mjs";
import { leafOf, macInputOf } from "./record.mjs";
import { boundOpenings, isOtherVersion, openingsFault, payloadFault, seqOf } from "./shape.mjs";

/** Adds to a framed record what its payload says, or why that cannot be read. */
export function understood(record) {
  const payload = payloadOf(record);
  if (record.deterministicFault) return record;
  record.shapeFault = record.shapeFault ?? payloadFault(record, payload);
  record.isOtherVersion = isOtherVersion(payload);
  record.seq = record.tag instanceof Uint8Array && record.tag.length === 32 ? seqOf(payload) : null;
  if (record.shapeFault !== null || record.isOtherVersion) return record;
  const [, chain, , prev, at, kind, card, body] = payload;
  const bound = boundOpenings(kind, card, body);
  Object.assign(record, {
    chain: hex(chain),
    prev: hex(prev),
    at,
    kind,
    card: hexOrNull(card),
    body,
    task: hexOrNull(body.get("task")),
    supersedes: hexOrNull(body.get("supersedes")),
    bound: new Map([...bound].map(([name, digest]) => [name, hex(digest)])),
    shapeFault: openingsFault(record.openings, bound),
  });
  return record;
}

function hexOrNull(bytes) {
  return bytes instanceof Uint8Array ? hex(bytes) : null;
}

function payloadOf(record) {
  Object.assign(record, { seq: null, deterministicFault: null, shapeFault: null });
  if (!(record.payload instanceof Uint8Array)) {
    record.shapeFault = "a payload that is no byte string";
    return null;
  }
  try {
    return decoded(record.payload);
  } catch (error) {
    if (!(error instanceof CborError)) throw error;
    record.deterministicFault = error.message;
    return null;
  }
}

/** Computes digests and tags of records; envelopes that it saw before are not examined again. */
export class Digester {
  constructor(keys) {
    this.keys = keys;
    this.known = new Map();
    this.envelopes = new Map();
  }

  /** Adds chain digest, tag, digests of openings and examined envelopes to each record. */
  async digest(records) {
    await Promise.all(records.map((record) => this.first(record)));
    await Promise.all(records.map((record) => this.second(record)));
  }

  async first(record) {
    const key = this.keys.get(record.kid);
    const isTag = record.tag instanceof Uint8Array && record.tag.length === 32;
    const work = [sha256(leafOf(record)).then((digest) => (record.digest = digest))];
    record.tagHolds = null;
    if (key !== undefined && isTag) {
      const checked = tagHolds(key.mac, record.tag, macInputOf(record));
      work.push(checked.then((holds) => (record.tagHolds = holds)));
    }
    record.openingDigests = new Map();
    if (record.bound !== undefined && record.shapeFault === null) {
      for (const [name, bytes] of record.openings) work.push(this.opening(record, name, bytes));
      if (record.kind === "rekeyed") work.push(this.proof(record));
    }
    await Promise.all(work);
  }

  async opening(record, name, bytes) {
    const before = this.known.get(record.card);
    if (name === "envelope" && before !== undefined && sameBytes(before.bytes, bytes)) {
      record.openingDigests.set(name, before.digest);
      return;
    }
    const digest = await sha256(bytes);
    record.openingDigests.set(name, digest);
    if (name === "envelope") this.known.set(record.card, { bytes, digest });
  }

  async proof(record) {
    const kid = record.body.get("kid");
    const key = this.keys.get(hex(kid));
    record.proofHolds = null;
    if (key === undefined) return;
    const place = [fromHex(record.chain), record.seq, fromHex(record.prev)];
    const input = encodedArray(["cardchain/rekeyed", ...place, fromHex(record.kid), kid]);
    record.proofHolds = await tagHolds(key.mac, record.body.get("proof"), input);
  }

  async second(record) {
    record.envelope = await this.examinedOpening(record, "envelope");
    record.rebuilt = await this.examinedOpening(record, "rebuilt");
  }

  examinedOpening(record, name) {
    const digest = record.openingDigests.get(name);
    if (digest === undefined) return null;
    let found = this.envelopes.get(digest);
    if (found === undefined) {
      found = examined(record.openings.get(name));
      this.envelopes.set(digest, found);
    }
    return found;
  }
}

/**
 * An envelope with everything that can be said of it alone.
 * `fault` is {check, expected, found} of the first of its checks that fails, or null.
 * The value is read again from the bytes where it is not among the last ones used: a log may hold
 * more envelopes than there is memory for.
 */
export class Examined {
  constructor(bytes, { fault, isOtherFormat = false, task = null }) {
    Object.assign(this, { bytes, fault, isOtherFormat, task });
  }

  get value() {
    const kept = RECENT.get(this);
    if (kept !== undefined) return kept;
    const value = parsedJson(this.bytes);
    keepRecent(this, value);
    return value;
  }
}

const RECENT = new Map();
const MOST_RECENT = 512;

function keepRecent(examinedOne, value) {
  if (RECENT.size >= MOST_RECENT) RECENT.delete(RECENT.keys().next().value);
  RECENT.set(examinedOne, value);
}

/** Examines the bytes of an envelope. */
export async function examined(bytes) {
  const { value, wrong } = canonicalFault(bytes);
  if (wrong) return new Examined(bytes, { fault: { check: "envelope_canonical", ...wrong } });
  if (isOtherFormat(value)) return new Examined(bytes, { fault: null, isOtherFormat: true });
  const schema = schemaFault(value);
  if (schema !== null) {
    const place = schema.pointer || "the document";
    const fault = { check: "envelope_schema", expected: `${place}: ${schema.expected}`, found: "" };
    return new Examined(bytes, { fault });
  }
  const inputs = digestInputs(value);
  const [args, effect, task] = await Promise.all(
    [inputs.args, inputs.effect, inputs.task].map(sha256),
  );
  const fault =
    differs("args_digest", args, value.get("action").get("args_digest")) ??
    differs("effect_key", effect, value.get("effect_key"));
  const found = new Examined(bytes, { fault, task });
  keepRecent(found, value);
  return found;
}

/** The value of strict JSON in canonical form, or what is wrong with it. */
function canonicalFault(bytes) {
  let value;
  try {
    value = parsedJson(bytes);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const place = error.pointer || "the document";
    return { wrong: { expected: "strict JSON (spec §2.1)", found: `${place}: ${error.message}` } };
  }
  if (sameBytes(canonical(value), bytes)) return { value };
  return { wrong: { expected: "the canonical form", found: "another form of the same value" } };
}

function differs(check, expected, found) {
  return expected === found ? null : { check, expected, found };
}
