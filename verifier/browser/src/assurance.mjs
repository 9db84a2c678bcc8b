/* How much a verdict rests on, and the head that the auditor keeps (spec §16). */

import { PIN_FORMAT } from "./anchors.mjs";
import { addFinding, setRow, worst } from "./report.mjs";

/**
 * Adds to each report the rows pinned_head and required and what they find, and its assurance.
 * Gives the pin file to keep from now on, as an object, or null where it stays.
 */
export function judgeAssurance(logs, { pin, require }) {
  const isOneEnd = agree(logs);
  if (pin !== null) for (const log of logs) judgePin(log, pin, isOneEnd);
  for (const log of logs) {
    if (require.length > 0) judgeRequired(log, require);
    if (log.verdict !== "VERIFIED") Object.assign(log, { pinnedTo: null, signedTo: null });
    log.assurance = assuranceOf(log);
  }
  return pin === null ? null : movedPin(logs, pin, isOneEnd);
}

/** Whether all inputs are logs that end with one record. */
function agree(logs) {
  return new Set(logs.map((log) => `${log.chain} ${log.lastSeq} ${log.head}`)).size <= 1;
}

function judgePin(log, pin, isOneEnd) {
  if (pin.isAbsent) {
    log.notChecked.push("a head that was seen before: this first look was not pinned");
    setRow(log, "pinned_head", "NOT CHECKED", "no head was pinned before: this is the first look");
  } else if (pin.fault !== undefined) {
    setRow(log, "pinned_head", "NOT CHECKED", "the pin file cannot be used");
    log.warnings.push(`the pin file is not used: ${pin.fault}`);
  } else if (log.isExcerpt) {
    setRow(log, "pinned_head", "NOT CHECKED", "an excerpt does not show which record is the last");
  } else if (log.lastSeq === null) {
    setRow(log, "pinned_head", "NOT CHECKED", "no record");
  } else if (log.chain === pin.chain && log.firstSeq > pin.seq) {
    setRow(log, "pinned_head", "NOT CHECKED", "the log begins after the pinned record");
  } else holdPin(log, pin, isOneEnd);
}

function holdPin(log, pin, isOneEnd) {
  const digest = log.chain === pin.chain ? log.records.get(pin.seq)?.digest : undefined;
  if (digest !== pin.digest) {
    const found = log.chain === pin.chain ? (digest ?? `an end at seq ${log.lastSeq}`) : `chain ${log.chain}`;
    addFinding(log, "pinned_head", `the record ${pin.digest} at seq ${pin.seq}`, found);
  } else if (isOneEnd) {
    setRow(log, "pinned_head", "PASS", "");
    log.pinnedTo = Math.max(log.pinnedTo ?? 0, pin.seq);
  } else setRow(log, "pinned_head", "NOT CHECKED", "the inputs do not end with one record");
}

/** The words of spec §16.1 that a verified log reaches. */
function assuranceOf(log) {
  if (log.verdict !== "VERIFIED") return [];
  const words = [];
  if (log.pinnedTo !== null) words.push("pinned");
  if (log.signedTo !== null) words.push("signed");
  return words.length === 0 ? ["integrity only"] : words;
}

function judgeRequired(log, require) {
  if (log.verdict === "BROKEN") return;
  const isVerified = log.verdict === "VERIFIED";
  const reached = {
    pinned: isVerified && log.pinnedTo !== null, signed: isVerified && log.signedTo !== null,
  };
  const missing = require.filter((word) => !reached[word]);
  if (missing.length === 0) setRow(log, "required", "PASS", "");
  else addFinding(log, "required", require.join(" and "), `not ${missing.join(" and ")}`);
}

function movedPin(logs, pin, isOneEnd) {
  const [log] = logs;
  const isVerified = worst(logs.map((one) => one.verdict)) === "VERIFIED";
  if (!isVerified || !isOneEnd || log.isExcerpt || pin.fault !== undefined) return null;
  if (!pin.isAbsent && !(log.lastSeq > pin.seq && log.firstSeq <= pin.seq)) return null;
  return { format: PIN_FORMAT, chain: log.chain, seq: log.lastSeq, digest: log.head };
}
