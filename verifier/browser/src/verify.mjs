/* Verifies inputs with keys and profiles; the report is one plain object (spec §10). */

import { CLASSES } from "./envelope.mjs";
import { checkpointsOf, frontierOf, held, pinOf } from "./anchors.mjs";
import { judgeAssurance } from "./assurance.mjs";
import { excerptAnchors } from "./excerpt_anchors.mjs";
import { cover, excerptHead, excerptOf, isOfOtherVersion } from "./excerpt.mjs";
import { framed } from "./framing.mjs";
import { sha256 } from "./hash.mjs";
import { Log } from "./judge.mjs";
import { keyRing } from "./keys.mjs";
import { Malformed } from "./note.mjs";
import { passedOver, settleEnd } from "./passed.mjs";
import { profileOf } from "./profile.mjs";
import { Digester, understood } from "./read.mjs";
import { logReport, worst } from "./report.mjs";
import { isConsistencyProof } from "./proofs.mjs";
import { readInput } from "./source.mjs";
import { vkeysOf } from "./vkeys.mjs";

const BATCH = 2000;

/**
 * `inputs`: [{path, file} or {path, entries: [{name, file}]}], files as Blobs;
 * `keys`, `profiles`, `vkeys`, `checkpoints` and `proofs`: [{name, file}];
 * `expectHead`: hexadecimal or null; `expectCount`: a number or null; `floor`: a class of spec §8.4;
 * `since`: {seq, digest} of a record that the auditor kept, after which to go on, or {name, file}
 * of a checkpoint that covers what was verified before, or null;
 * `pin`: {name, file} of a pin file, whose file is null where there is none yet, or null;
 * `require`: words of spec §16.1; `allowWithheld`: whether openings may be absent.
 * `progress` is called with the number of records judged so far.
 */
export async function verify(request, progress = () => undefined) {
  const options = await optionsOf(request);
  const inputs = await Promise.all(request.inputs.map((input) => preparedInput(input, options)));
  const logs = [];
  for (const one of inputs) {
    const otherChains = inputs.filter((other) => other !== one).map(({ chain }) => chain);
    logs.push(await verifiedInput(one, { ...options, otherChains }, logs, progress));
  }
  const pinAfter = judgeAssurance(logs, options);
  return { verdict: worst(logs.map((log) => log.verdict)), logs, pinAfter };
}

async function optionsOf(request) {
  const { keys, warnings } = await keyRing(await opened(request.keys ?? []));
  const profiles = await profilesOf(request.profiles ?? [], warnings);
  const { vkeys, warnings: unused } = await vkeysOf(await opened(request.vkeys ?? []));
  const notes = await opened([...(request.checkpoints ?? []), ...(request.proofs ?? [])]);
  const since = request.since ?? null;
  const [sinceNote] = since?.name === undefined ? [null] : await opened([since]);
  const readable = notes.filter(({ bytes }) => bytes !== null);
  return {
    keys,
    profiles,
    vkeys,
    floor: CLASSES.indexOf(request.floor ?? "none"),
    checkpoints: readable.filter(({ bytes }) => !isConsistencyProof(bytes)),
    proofs: readable.filter(({ bytes }) => isConsistencyProof(bytes)),
    unreadable: [...notes, ...(sinceNote === null ? [] : [sinceNote])]
      .filter(({ bytes }) => bytes === null)
      .map(({ name }) => name),
    warnings: [...warnings, ...unused],
    since: sinceNote === null ? since : null,
    sinceNote: sinceNote?.bytes ? sinceNote : null,
    expectHead: request.expectHead ?? null,
    expectCount: request.expectCount ?? null,
    pin: await pinFrom(request.pin ?? null),
    require: request.require ?? [],
    allowsWithheld: request.allowWithheld === true,
  };
}

/** The pin of a pin file; `isAbsent` where there is none yet. A wrong one stops everything. */
async function pinFrom(pin) {
  if (pin === null) return null;
  if (!pin.file) return { isAbsent: true };
  const bytes = await bytesOf(pin.file);
  const found = bytes === null ? { fault: "it cannot be read" } : pinOf(bytes);
  if (found.fault !== undefined) throw new Error(`the pin file ${pin.name}: ${found.fault}`);
  return found;
}

/** The bytes of files; null where one cannot be read. */
async function opened(files) {
  return Promise.all(files.map(async ({ name, file }) => ({ name, bytes: await bytesOf(file) })));
}

async function bytesOf(file) {
  try {
    return new Uint8Array(await file.arrayBuffer());
  } catch {
    return null;
  }
}

/** Profile files by their digest; a malformed one is a warning and is not used. */
async function profilesOf(files, warnings) {
  const found = new Map();
  for (const { name, bytes } of await opened(files)) {
    const { fault } = bytes === null ? { fault: "it cannot be read" } : profileOf(bytes);
    if (fault === undefined) found.set(await sha256(bytes), bytes);
    else warnings.push(`profile file ${name} is not used: ${fault}`);
  }
  return found;
}

/** An input as read: {input, source, chain, excerpt?, fault?}; `chain` is null where none is known. */
async function preparedInput(input, options) {
  const source = await readInput(input, options.since);
  const [file] = source.files;
  const head = !input.entries && file !== undefined ? excerptHead(file.bytes) : null;
  if (head === null) return { input, source, chain: chainOf(source.files, options.keys) };
  const isOther = isOfOtherVersion(head);
  const fault = { check: isOther ? "version" : "excerpt", file: input.path };
  if (isOther) {
    Object.assign(fault, { expected: "version 1", found: "another version" });
    return { input, source, chain: null, fault };
  }
  try {
    const excerpt = await excerptOf(file.bytes);
    const chain = excerpt.records.find((record) => record.chain !== undefined)?.chain ?? null;
    return { input, source, chain, excerpt };
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    Object.assign(fault, { expected: "an excerpt in its one form", found: error.message });
    return { input, source, chain: null, fault };
  }
}

async function verifiedInput(prepared, options, before, progress) {
  const { input, source, fault, excerpt } = prepared;
  if (excerpt !== undefined) return verifiedExcerpt(prepared, options, before);
  if (fault === undefined) return verifiedLog(prepared, options, before, progress);
  source.faults.push(fault);
  const anchors = { ...noAnchors(), isExcerpt: true, isOther: fault.check === "version" };
  return logReport(input, source, logOf(null, options, {}), options, before, anchors);
}

/** The log of a chain, with the keys and pins that are for it. */
function logOf(chain, options, more) {
  const keys = options.keys.filter((key) => key.chain === chain);
  const ring = new Map(keys.map((key) => [key.kid, key]));
  const pins = keys.filter((key) => key.pin !== null).map((key) => key.pin);
  return new Log({ ...options, chain, ring, pins, ...more });
}

async function verifiedLog({ input, source, chain }, options, before, progress) {
  const anchors = chain === null ? noAnchors() : await checkpointsOf(options, source.notes, chain);
  const frontiers = source.frontiers.map(({ number, bytes }) => ({
    number,
    hashes: frontierOf(bytes),
  }));
  const kept = anchors.checkpoints.find((checkpoint) => checkpoint.isSince);
  const passed = kept && (await passedOver(allItems(source.files), kept.note, frontiers));
  const sizes = anchors.checkpoints.map(({ note }) => note.size);
  const log = logOf(chain, options, { sizes, ...(passed ? { since: passed.since, passed } : {}) });
  const digester = new Digester(log.ring);
  for (const [index, file] of source.files.entries()) {
    const isEmpty = file.number !== undefined && file.bytes.length === 0 && file.damage === null;
    const isLast = index === source.files.length - 1;
    if (isEmpty && source.files.length > 1) log.takeEmptySegment(file, isLast);
    for (const batch of batches(readItems(file), log)) {
      await replay(log, file, batch, digester);
      progress(log.tally.records);
    }
  }
  await settleEnd(log);
  const edge = passed?.edge ?? log.first?.seq;
  const frontier = frontiers.find(({ number }) => number === edge)?.hashes ?? null;
  const isUnreadable = source.faults.some((fault) => fault.check === "unreadable");
  if (isUnreadable) log.lose();
  const roots = await held(log, anchors.checkpoints, frontier, isUnreadable);
  log.finish(roots.covered);
  anchors.findings.push(...roots.findings);
  return logReport(input, source, log, options, before, {
    ...anchors,
    ...roots,
    findings: anchors.findings,
  });
}

function noAnchors() {
  return { checkpoints: [], findings: [], warnings: [], looked: [] };
}

async function verifiedExcerpt({ input, source, chain, excerpt }, options, before) {
  const [file] = source.files;
  const anchors = await excerptAnchors(file.name, excerpt, options, chain);
  const log = logOf(chain, options, { scope: excerpt.scope });
  await new Digester(log.ring).digest(excerpt.records);
  if (anchors.isSigned) await cover(excerpt, anchors.own);
  for (const record of excerpt.records) log.take(record, file);
  log.finish(0);
  if (anchors.aside !== undefined && log.findings.length === 0)
    anchors.warnings.push(anchors.aside);
  return logReport(input, source, log, options, before, { ...anchors, excerpt });
}

function* allItems(files) {
  for (const file of files) yield* readItems(file);
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

/**
 * The chain that a log names: that of the first record, unless the next two agree on another.
 * Where no record can say it, as of a later version, it is that of the key of the first one.
 */
function chainOf(files, keys) {
  const first = [];
  let kid = null;
  for (const file of files) {
    for (const { record } of readItems(file)) {
      if (record?.isOtherVersion) kid ??= record.kid;
      if (record?.chain !== undefined) first.push(record.chain);
      if (first.length === 3) break;
    }
    if (first.length === 3) break;
  }
  const [one, two, three] = first;
  const keyed = keys.find((key) => key.kid === kid)?.chain;
  return one !== two && two === three && two !== undefined ? two : (one ?? keyed ?? null);
}
