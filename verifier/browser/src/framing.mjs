/* Whole records and nothing else (spec §3.1, §7.4, §10.3): splits the bytes of one file. */

import { CborError } from "./cbor.mjs";
import { indexOf } from "./bytes.mjs";
import { HEADER, MAX_RECORD, beginsLikeRecord, recordAt } from "./record.mjs";

/**
 * Gives, in order, `{record}` for each record and `{stretch}` for each run of bytes that is none.
 * A stretch is {check, offset, end, found}: one finding, up to the next place where a record stands.
 */
export function* framed(bytes) {
  let at = 0;
  while (at < bytes.length) {
    const found = attempt(bytes, at);
    if (found.record) {
      yield found;
      at = found.record.end;
      continue;
    }
    const next = nextRecord(bytes, at + 1);
    yield { stretch: { ...fault(bytes, at, found.error), offset: at, end: next } };
    at = next;
  }
}

function attempt(bytes, at) {
  if (!beginsLikeRecord(bytes, at)) return { error: new CborError("no record header") };
  try {
    return { record: recordAt(bytes, at) };
  } catch (error) {
    if (error instanceof CborError) return { error };
    throw error;
  }
}

/** Where the next whole record begins, or the end of the bytes. */
function nextRecord(bytes, from) {
  let at = indexOf(bytes, HEADER, from);
  while (at !== -1 && !attempt(bytes, at).record) at = indexOf(bytes, HEADER, at + 1);
  return at === -1 ? bytes.length : at;
}

function fault(bytes, at, error) {
  if (error.size > MAX_RECORD) return { check: "limits", found: `a length of ${error.size} bytes` };
  const isTorn = error.short && indexOf(bytes, HEADER, at + 1) === -1;
  return { check: isTorn ? "torn_tail" : "framing", found: error.message };
}
