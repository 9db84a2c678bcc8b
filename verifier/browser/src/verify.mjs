/* Verifies inputs with keys and profiles; the report is one plain object (spec §10). */

import { canonical } from "./jcs.mjs";
import { CLASSES } from "./envelope.mjs";
import { framed } from "./framing.mjs";
import { sha256 } from "./hash.mjs";
import { Log } from "./judge.mjs";
import { keyRing } from "./keys.mjs";
import { profileOf } from "./profile.mjs";
import { Digester, understood } from "./read.mjs";
import { logReport, worst } from "./report.mjs";
import { readInput } from "./source.mjs";

const BATCH = 2000;

/**
 * `inputs`: [{path, file} or {path, entries: [{name, file}]}], files as Blobs;
 * `keys` and `profiles`: [{name, file}]; `expectHead`: hexadecimal or null;
 * `expectCount`: a number or null; `floor`: a class of spec §8.4;
 * `since`: {seq, digest} of a record that the auditor kept, after which to go on, or null.
 * `progress` is called with the number of records judged so far.
 */
export async function verify(request, progress = () => undefined) {
  const { keys, warnings } = await keyRing(await opened(request.keys ?? []));
  const profiles = await profilesOf(request.profiles ?? [], warnings);
  const logs = [];
  const options = {
    keys, profiles, floor: CLASSES.indexOf(request.floor ?? "none"), warnings,
    since: request.since ?? null, expectHead: request.expectHead ?? null, expectCount: request.expectCount ?? null,
  };
  for (const input of request.inputs) logs.push(await verifiedLog(input, options, logs, progress));
  return { verdict: worst(logs.map((log) => log.verdict)), logs };
}

async function opened(files) {
  return Promise.all(
    files.map(async ({ name, file }) => ({ name, bytes: new Uint8Array(await file.arrayBuffer()) })),
  );
}

/** Profile files by their digest; a malformed one is a warning and is not used. */
async function profilesOf(files, warnings) {
  const found = new Map();
  for (const { name, bytes } of await opened(files)) {
    const { fault } = profileOf(bytes);
    if (fault === undefined) found.set(await sha256(bytes), bytes);
    else warnings.push(`profile file ${name} is not used: ${fault}`);
  }
  return found;
}

async function verifiedLog(input, options, before, progress) {
  const source = await readInput(input, options.since);
  const chain = chainOf(source.files);
  const ring = new Map(
    options.keys.filter((key) => key.chain === chain).map((key) => [key.kid, key]),
  );
  const pins = options.keys.filter((key) => key.chain === chain && key.pin !== null);
  const log = new Log({ ...options, chain, ring, pins: pins.map((key) => key.pin) });
  const digester = new Digester(ring);
  for (const [index, file] of source.files.entries()) {
    const isEmpty = file.number !== undefined && file.bytes.length === 0 && file.damage === null;
    const isLast = index === source.files.length - 1;
    if (isEmpty && source.files.length > 1) log.takeEmptySegment(file, isLast);
    for (const batch of batches(readItems(file), log)) {
      await replay(log, file, batch, digester);
      progress(log.tally.records);
    }
  }
  if (source.faults.some((fault) => fault.check === "unreadable")) log.lose();
  log.finish();
  return logReport(input, source, log, options, before);
}

function* readItems(file) {
  let isFirst = true;
  for (const item of framed(file.bytes)) {
    if (item.record) {
      understood(item.record);
      if (isFirst && file.number !== undefined) item.record.segmentNumber = file.number;
      isFirst = false;
    }
    yield item;
  }
}

function* batches(items, log) {
  let batch = [];
  for (const item of items) {
    if (log.passesOver(item)) continue;
    batch.push(item);
    if (batch.length === BATCH) {
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}

async function replay(log, file, batch, digester) {
  await digester.digest(batch.filter((item) => item.record).map((item) => item.record));
  for (const { record, stretch } of batch) {
    if (record) log.take(record, file);
    else if (!isForgiven(stretch, file)) log.takeStretch(stretch, file);
  }
}

/** A torn tail of a live directory is a note, and where the rest is unreadable that is told. */
function isForgiven(stretch, file) {
  if (stretch.check !== "torn_tail") return false;
  if (file.damage === null && file.isTornAllowed) file.torn = stretch.offset;
  return file.damage !== null || file.isTornAllowed;
}

/** The chain that a log names: that of the first record, unless the next two agree on another. */
function chainOf(files) {
  const first = [];
  for (const file of files) {
    for (const { record } of readItems(file)) {
      if (record?.chain !== undefined) first.push(record.chain);
      if (first.length === 3) break;
    }
    if (first.length === 3) break;
  }
  const [one, two, three] = first;
  return one !== two && two === three && two !== undefined ? two : (one ?? null);
}
