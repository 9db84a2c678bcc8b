/*
 * Inputs (spec §7): a file, or the segments of a ledger directory in the order of their numbers.
 * Compressed files are unpacked by DecompressionStream, one gzip member after the other.
 */

import { joined } from "./bytes.mjs";
import { framed } from "./framing.mjs";
import { sha256 } from "./hash.mjs";
import { understood } from "./read.mjs";

const SEGMENT = /^([0-9]{20})\.cbor(\.gz)?$/;
const PIECE = 65536;

/**
 * Reads an input {path, file?, entries?}: a Blob, or a list of {name, file} for a directory,
 * with names relative to it. With `since`, segments that end before the record that follows it are
 * passed over; where that would be the first of a segment without it, the one before may be the last.
 * Gives {files, faults, inputs, notes, frontiers}; a file is {name, bytes, number?, index,
 * isTornAllowed, damage}.
 */
export async function readInput(input, since = null) {
  const source = noFiles();
  if (input.entries) await readDirectory(input, source, since);
  else await readFile({ name: input.path, blob: input.file }, source);
  return source;
}

function noFiles() {
  return { files: [], faults: [], inputs: [], notes: [], frontiers: [] };
}

async function readDirectory({ path, entries }, source, since) {
  const inside = entries.filter(({ name }) => name.startsWith("segments/"));
  if (inside.length === 0) {
    source.faults.push({ check: "unreadable", file: path, expected: "segments/", found: "none" });
    return;
  }
  await readCheckpoints(path, entries, source);
  const segments = [];
  for (const { name, file } of inside.sort((one, other) => (one.name < other.name ? -1 : 1))) {
    const full = `${path}/${name}`;
    const match = SEGMENT.exec(name.slice("segments/".length));
    const number = match === null ? null : Number(match[1]);
    if (match === null || segments.some((one) => one.number === number)) {
      source.faults.push({
        check: "segment_name",
        file: full,
        expected: "one file for each number",
        found: match === null ? "another name" : "a second one",
      });
    } else segments.push({ name: full, blob: file, number });
  }
  segments.sort((one, other) => one.number - other.number);
  const at = since === null ? undefined : segments.find((one) => one.number === since.seq + 1);
  const first = since === null ? 0 : since.seq + (at && (await beginsWithRecord(at)) ? 1 : 0);
  const isBefore = (index) => index + 1 < segments.length && segments[index + 1].number <= first;
  for (const segment of segments.filter((_, index) => !isBefore(index))) {
    if (!(await readFile(segment, source))) break;
  }
  const last = source.files.at(-1);
  if (last) last.isTornAllowed = true;
}

/** Whether a whole record stands at the beginning of a segment. */
async function beginsWithRecord(segment) {
  const source = noFiles();
  await readFile(segment, source);
  const [file] = source.files;
  const record = file && framed(file.bytes).next().value?.record;
  return record !== undefined && Number.isInteger(understood(record).seq);
}

/** Reads the checkpoints and frontiers that a ledger brings (spec §13.5); other names are ignored. */
async function readCheckpoints(path, entries, source) {
  for (const { name, file } of entries) {
    const [, number, kind] = /^checkpoints\/([0-9]{20})\.(note|frontier)$/.exec(name) ?? [];
    if (kind === undefined) continue;
    const bytes = new Uint8Array(await file.arrayBuffer());
    const list = kind === "note" ? source.notes : source.frontiers;
    list.push({ name: `${path}/${name}`, number: Number(number), bytes });
  }
  source.notes.sort((one, other) => one.number - other.number);
}

/** Reads one file; gives false where nothing after it can be read. */
async function readFile({ name, blob, number }, source) {
  let stored;
  try {
    if (!blob) throw new Error("no such file");
    stored = new Uint8Array(await blob.arrayBuffer());
  } catch (error) {
    source.faults.push({
      check: "unreadable",
      file: name,
      expected: "a file",
      found: error.message,
    });
    return false;
  }
  source.inputs.push({ file: name, bytes: stored.length, sha256: await sha256(stored) });
  const { bytes, damage } = isGzip(name, stored)
    ? await unpacked(stored)
    : { bytes: stored, damage: null };
  source.files.push({
    name,
    bytes,
    number,
    index: source.files.length,
    damage,
    isTornAllowed: false,
  });
  if (damage === null) return true;
  source.faults.push({ check: "unreadable", file: name, expected: "a gzip file", found: damage });
  return false;
}

/** A writer that compresses may leave the gzip form under the plain name for an instant (§7.1). */
function isGzip(name, stored) {
  return name.endsWith(".gz") || (stored[0] === 0x1f && stored[1] === 0x8b);
}

/** The bytes of all members of a gzip file, as far as they can be read, and what stopped that. */
export async function unpacked(stored) {
  const parts = [];
  let at = 0;
  do {
    const member = await unpackedMember(stored, at);
    parts.push(member.bytes);
    if (member.damage !== null) return { bytes: joined(...parts), damage: member.damage };
    at = member.end;
  } while (at < stored.length);
  return { bytes: joined(...parts), damage: null };
}

async function unpackedMember(stored, from) {
  const whole = await fed(stored, from, stored.length);
  if (whole.failedAt === null) return { bytes: whole.bytes, end: stored.length, damage: null };
  if (whole.failedAt === stored.length) return { bytes: whole.bytes, damage: "it ends early" };
  const close = await fed(stored, from, whole.failedAt);
  const end = close.failedAt;
  if (end === from || end === stored.length) return { bytes: close.bytes, damage: "it is damaged" };
  const member = await fed(stored.subarray(0, end), from, end);
  if (member.failedAt !== null) return { bytes: close.bytes, damage: "it is damaged" };
  return { bytes: member.bytes, end, damage: null };
}

/**
 * Unpacks `stored` from `from` on, in pieces, and byte by byte from `fine` on.
 * Gives the bytes and where the piece began that failed: the length where the end came too early,
 * null where nothing failed.
 */
async function fed(stored, from, fine) {
  const stream = new DecompressionStream("gzip");
  const writer = stream.writable.getWriter();
  const reader = stream.readable.getReader();
  const parts = [];
  const reading = (async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parts.push(value);
    }
  })().catch(() => undefined);
  writer.closed.catch(() => undefined);
  let at = from;
  let failedAt = null;
  try {
    while (at < stored.length) {
      const size = at >= fine ? 1 : PIECE;
      await writer.write(stored.subarray(at, Math.min(at + size, stored.length)));
      at += size;
    }
    at = stored.length;
    await writer.close();
  } catch {
    failedAt = at;
  }
  await reading;
  return { bytes: joined(...parts), failedAt };
}
