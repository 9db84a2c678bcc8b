/* How much a verdict rests on, and the head that the auditor keeps (spec §16). */

import { PIN_FORMAT } from "./anchors.mjs";
import { digestAt } from "./extent.mjs";
import { WHO_MADE_IT, WHO_SIGNED_IT } from "./not_checked.mjs";
import { addFinding, setRow, worst } from "./report.mjs";

/**
 * Adds to each report the rows pinned_head and required and what they find, and its assurance.
 * Gives the pin file to keep from now on, as an object, or null where it stays.
 */
export function judgeAssurance(logs, { pin, require }) {
  if (pin !== null) for (const log of logs) judgePin(log, pin, logs);
  for (const log of logs) {
    if (require.length > 0) judgeRequired(log, require);
    if (log.verdict !== "VERIFIED") Object.assign(log, { pinnedTo: null, signedTo: null });
    log.assurance = assuranceOf(log);
    if (isAllSigned(log))
      log.notChecked = log.notChecked.map((said) => (said === WHO_MADE_IT ? WHO_SIGNED_IT : said));
  }
  return pin === null ? null : movedPin(logs, pin);
}

function judgePin(log, pin, logs) {
  const leave = (why) => setRow(log, "pinned_head", "NOT CHECKED", why);
  if (pin.isAbsent) {
    if (!log.isExcerpt)
      log.notChecked.push("a head that was seen before: this first look was not pinned");
    leave("no head was pinned before: this is the first look");
  } else if (log.isExcerpt) leave("an excerpt does not show which record is the last");
  else if (log.chain === null || log.lastSeq === null) leave("no record");
  else if (log.chain !== pin.chain && mayBeAnother(log, pin, logs)) {
    leave("the pin is of another chain, of which a log was given or may be missing");
  } else if (log.chain !== pin.chain) holdPin(log, pin, undefined);
  else judgeDigest(log, pin, digestAt(log.log, pin.seq), leave);
}

/** Whether another input is, or may be, the log that the pin is of. */
function mayBeAnother(log, pin, logs) {
  return logs.some(
    (other) =>
      other !== log && !other.isExcerpt && (other.chain === pin.chain || other.chain === null),
  );
}

function judgeDigest(log, pin, digest, leave) {
  if (digest === undefined && (log.firstSeq ?? log.lastSeq) > pin.seq)
    leave("the log begins after the pinned record");
  else if (digest === undefined && !log.isEndKnown) leave("the log was not read to its end");
  else holdPin(log, pin, digest);
}

function holdPin(log, pin, digest) {
  if (digest === pin.digest) {
    setRow(log, "pinned_head", "PASS", "");
    log.pinnedTo = Math.max(log.pinnedTo ?? 0, pin.seq);
    return;
  }
  const found =
    log.chain === pin.chain ? (digest ?? `an end at seq ${log.lastSeq}`) : `chain ${log.chain}`;
  addFinding(log, "pinned_head", `the record ${pin.digest} at seq ${pin.seq}`, found);
}

/** The words of spec §16.1 that a verified log reaches. */
function assuranceOf(log) {
  if (log.verdict !== "VERIFIED") return [];
  const words = [];
  if (log.pinnedTo !== null) words.push("pinned");
  if (log.signedTo !== null) words.push("signed");
  return words.length === 0 && log.counts.records > 0 ? ["integrity only"] : words;
}

/** Whether a checkpoint under a given vkey covers every record of a whole log. */
function isAllSigned({ verdict, isExcerpt, signedTo, lastSeq }) {
  return verdict === "VERIFIED" && !isExcerpt && signedTo !== null && signedTo === lastSeq;
}

function judgeRequired(log, require) {
  if (log.verdict !== "VERIFIED") {
    setRow(log, "required", "NOT CHECKED", "the log is not verified");
    return;
  }
  const reached = { pinned: log.pinnedTo !== null, signed: log.signedTo !== null };
  const missing = require.filter((word) => !reached[word]);
  if (missing.length === 0) setRow(log, "required", "PASS", "");
  else addFinding(log, "required", require.join(" and "), `not ${missing.join(" and ")}`);
}

/** Whether the pinned head was found in a log. */
function isHeld({ rows }) {
  return rows.some(({ check, outcome }) => check === "pinned_head" && outcome === "PASS");
}

function movedPin(logs, pin) {
  const whole = logs.filter((log) => !log.isExcerpt);
  const [log] = whole;
  const ends = new Set(whole.map((one) => `${one.chain} ${one.lastSeq} ${one.head}`));
  const isVerified = worst(logs.map((one) => one.verdict)) === "VERIFIED";
  if (!isVerified || ends.size !== 1) return null;
  if (!pin.isAbsent && !(log.lastSeq > pin.seq && whole.every(isHeld))) return null;
  return { format: PIN_FORMAT, chain: log.chain, seq: log.lastSeq, digest: log.head };
}
