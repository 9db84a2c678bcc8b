/* What was found in one log, as plain values that can be sent from a worker (spec §10.2 to §10.4). */

import { isEndKnown, keptEnd, reachedBy, seqOf } from "./extent.mjs";
import { notProven, whyNotChecked } from "./not_checked.mjs";
import { CHECKS } from "./table.mjs";

const SEVERITY = ["VERIFIED", "CANNOT VERIFY", "BROKEN"];
const CANNOT = new Set(CHECKS.filter((check) => check.cannot).map((check) => check.id));

/** The worst of several verdicts; without one nothing is verified (spec §10.2). */
export function worst(verdicts) {
  if (verdicts.length === 0) return "CANNOT VERIFY";
  return SEVERITY[Math.max(...verdicts.map((verdict) => SEVERITY.indexOf(verdict)))];
}

/** The verdict that a finding asks for. */
export function verdictOf(finding) {
  return CANNOT.has(finding.check) ? "CANNOT VERIFY" : "BROKEN";
}

/**
 * The report of one input; `before` are the reports of the inputs before it.
 * Digests and times are hexadecimal and unix milliseconds, findings in the order of the log.
 */
export function logReport(input, source, log, options, before, anchors) {
  const others = before.filter((other) => other.chain !== null && other.chain === log.chain);
  const isUnreadable = source.faults.some((fault) => fault.check === "unreadable");
  const kept = keptEnd(log, isUnreadable);
  const lastSeq = kept?.seq ?? log.tally.lastSeq;
  const facts = {
    ...options,
    anchors,
    isDirectory: input.entries !== undefined,
    hasOther: others.length > 0,
    hasHead: options.expectHead !== null && seqOf(log, options.expectHead) !== null,
    isUnreadable,
    kept,
  };
  const all = anchors.findings.map((finding) => ({ offset: null, seq: null, ...finding }));
  const [ofAnchors, apart] = [all.filter((one) => !one.isApart), all.filter((one) => one.isApart)];
  const findings = [
    ...source.faults.map((fault) => ({ offset: null, seq: null, ...fault })),
    ...(anchors.isExcerpt ? [...ofAnchors, ...log.findings] : [...log.findings, ...ofAnchors]),
    ...(log.scope === null
      ? wholeFindings(input.path, log, facts)
      : rangeFindings(input.path, log)),
    ...forks(input.path, log, others),
    ...apart,
  ];
  const { tally } = log;
  return {
    path: input.path,
    findings,
    rows: CHECKS.map((check) => rowOf(check, findings, log, facts)),
    verdict: worst(["VERIFIED", ...findings.map(verdictOf)]),
    chain: tally.records === 0 && log.passed === null && log.kept === null ? null : log.chain,
    inputs: source.inputs,
    isExcerpt: anchors.isExcerpt === true,
    isEndKnown: !facts.isUnreadable && isEndKnown(log),
    scope: scopeOf(log, anchors),
    warnings: [
      ...options.warnings,
      ...anchors.warnings,
      ...(kept ? [`nothing was added since seq ${kept.seq}: no record was verified`] : []),
      ...warningsOf(source, log, lastSeq, options),
    ],
    notChecked: notProven(log),
    kids: [...log.kids],
    firstSeq: tally.firstSeq,
    lastSeq,
    head: kept?.digest ?? log.head,
    startAt: tally.startAt,
    endAt: tally.endAt,
    withheld: log.withheld,
    pinnedTo: pinnedTo(log, facts),
    signedTo: signedTo(log, anchors),
    assurance: [],
    complete: isComplete(log, lastSeq, facts),
    counts: countsOf(log),
    records: log.records,
    log,
  };
}

/** Adds a finding about a whole input to its report. */
export function addFinding(report, check, expected, found) {
  report.findings.push({ check, file: report.path, offset: null, seq: null, expected, found });
  report.verdict = worst([report.verdict, verdictOf({ check })]);
  setRow(report, check, "FAIL", "1 finding");
}

export function setRow(report, check, outcome, detail) {
  Object.assign(
    report.rows.find((row) => row.check === check),
    { outcome, detail },
  );
}

/** Up to which seq a given head or checkpoint pins a log, or null (spec §16.1). */
function pinnedTo(log, { anchors, expectHead }) {
  const given = (anchors.held ?? []).filter((checkpoint) => checkpoint.isGiven);
  const most = anchors.isExcerpt ? (anchors.own?.size ?? 0) : Infinity;
  const seqs = given.map(({ note }) => Math.min(note.size, most) - 1);
  const head = expectHead === null ? null : seqOf(log, expectHead);
  if (head !== null) seqs.push(head);
  return seqs.length === 0 ? null : Math.max(...seqs);
}

/** Up to which seq a checkpoint under a given vkey holds, or null. */
function signedTo(log, { held = [], own, isSigned, isExcerpt }) {
  if (isExcerpt) return isSigned && log.tally.records > 0 ? own.size - 1 : null;
  return held.length === 0 ? null : Math.max(...held.map(({ note }) => note.size)) - 1;
}

/** What an excerpt is of, in words, or an empty text. */
function scopeOf({ scope, tally }, { excerpt }) {
  if (scope === null || excerpt === undefined) return "";
  const what = scope.card
    ? `receipt of card ${scope.card}`
    : `range from seq ${scope.from} to seq ${scope.to}`;
  const covered = excerpt.records.filter((record) => record.isCovered).length;
  return `${what}; ${covered} of its ${tally.records} records are under a signed checkpoint`;
}

/** A range goes up to its end (spec §14.1). */
function rangeFindings(file, { scope, tally, lastSeq }) {
  if (scope.to === undefined || lastSeq === null || tally.lastSeq === scope.to) return [];
  const [expected, found] = [`an end at seq ${scope.to}`, `seq ${tally.lastSeq}`];
  return [{ check: "sequence", file, offset: null, seq: null, expected, found }];
}

function rowOf(check, findings, log, facts) {
  const { id, section, claim } = check;
  const number = findings.filter((finding) => finding.check === id).length;
  if (number > 0) {
    const detail = number === 1 ? "1 finding" : `${number} findings`;
    return { check: id, section, claim, outcome: "FAIL", detail };
  }
  const detail = whyNotChecked(check, log, facts);
  return { check: id, section, claim, outcome: detail ? "NOT CHECKED" : "PASS", detail };
}

function countsOf({ tally, state }) {
  return {
    records: tally.records,
    kinds: Object.fromEntries(tally.kinds),
    cards: [...state.cards.values()].filter((card) => card.isIssued || card.isForgotten).length,
    envelopes: tally.envelopes,
    envelopesTotal: tally.envelopesTotal,
    decisions: tally.decisions,
    decisionsTotal: tally.decisionsTotal,
    contained: tally.contained,
    containedDispatched: tally.badDispatches,
    asserted: tally.asserted,
    exceptions: Object.fromEntries(tally.exceptions),
  };
}

/** Findings that speak of a whole input (spec §10.2, §10.3 rule 11). */
function wholeFindings(file, log, { expectHead, expectCount, isUnreadable, kept, anchors }) {
  const found = [];
  const say = (check, expected, is) =>
    found.push({ check, file, offset: null, seq: null, expected, found: is });
  const { tally, records } = log;
  if (anchors.isExcerpt) return found;
  const isTold = [...log.findings, ...anchors.findings].some((finding) => !finding.isApart);
  if (tally.records === 0 && !isTold && !isUnreadable && kept === null)
    say("empty", ...missingEnd(log));
  const begins = log.first?.seq ?? null;
  const isExplained = log.isEdgeNamed || log.isEdgeTold || records.has(0) || log.beginsInBytes;
  if (begins !== null && begins !== 0 && !isExplained) {
    say("left_edge", "seq 0", `seq ${begins}`);
  }
  if (isUnreadable) return found;
  const reached = reachedBy(log);
  if (expectHead !== null) {
    const at = seqOf(log, expectHead);
    const place = expectCount === null ? at : expectCount - 1;
    if (at === null || at !== place) {
      say("expected_head", `a record of digest ${expectHead}`, at === null ? "none" : `seq ${at}`);
    }
  } else if (expectCount !== null && reached < expectCount) {
    say("expected_count", `at least ${expectCount} records`, `${reached} records`);
  }
  return found;
}

/** What a log without a record to be verified should hold, and what it holds (spec §15.2). */
function missingEnd({ since, reached }) {
  if (since === null) return ["a record", "none"];
  const { seq, digest } = since;
  if (reached !== null && reached.digest !== digest)
    return [`digest ${digest} at seq ${seq}, which was kept`, `digest ${reached.digest}`];
  return [`a record from seq ${seq + 1} on, or an end at seq ${seq} as kept`, "none"];
}

/** Whether an expected head or count vouches for the end of the log. */
function isComplete(log, last, { expectHead, expectCount }) {
  if (last === null) return false;
  return (expectHead !== null && seqOf(log, expectHead) === last) || expectCount === last + 1;
}

/** The first seq at which a log and an earlier input of its chain part (spec §10.2). */
function forks(file, log, others) {
  for (const other of others) {
    for (const [seq, { digest, isUnsound }] of log.records) {
      const there = other.records.get(seq);
      if (there === undefined || there.isUnsound || isUnsound) continue;
      if (there.digest !== digest) {
        const expected = `${there.digest}, as in ${other.path}`;
        return [{ check: "fork", file, offset: null, seq, expected, found: digest }];
      }
    }
  }
  return [];
}

function warningsOf(source, log, last, { vkeys }) {
  const torn = source.files.filter((file) => file.torn !== undefined);
  const announced =
    log.announced !== null &&
    vkeys.length > 0 &&
    !vkeys.some((vkey) => vkey.text === log.announced);
  const early =
    last === null || log.scope !== null
      ? []
      : log.pins.map((pin) => pin.seq).filter((seq) => seq > last);
  return [
    ...(announced ? [`the log announces a vkey that was not given: ${log.announced}`] : []),
    ...torn.map(
      ({ name, torn: offset }) =>
        `${name} ends inside a record at offset ${offset}: a writer may be at work, or was interrupted`,
    ),
    ...early
      .sort((one, other) => one - other)
      .map(
        (seq) =>
          `a key file pins the record at seq ${seq}, and the log ends before it, at seq ${last}`,
      ),
  ];
}
