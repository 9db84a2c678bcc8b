/* Replays one log: runs the table of checks over its records, by the rules of spec §10.3. */

import { hex } from "./bytes.mjs";
import { CARD_CHECKS } from "./checks_card.mjs";
import { POLICY_CHECKS } from "./checks_policy.mjs";
import { BELONGS, RECORD_CHECKS } from "./checks_record.mjs";
import { REFUSAL_CHECKS } from "./checks_refusal.mjs";
import { Governance } from "./governance.mjs";
import { Histories } from "./history.mjs";
import { countLeaf, keep, seeStep } from "./keep.mjs";
import { PLACE_CHECKS, hasUnnamed, missingOpenings, remember, withheldOf } from "./openings.mjs";
import { nextSeq } from "./passed.mjs";
import { Sequence, holeBefore } from "./place.mjs";
import { EDGE, State, UNKNOWN } from "./state.mjs";
import { CHECKS, ORDER, UNSOUND_GROUPS } from "./table.mjs";
import { Tally } from "./tally.mjs";

const FUNCTIONS = {
  ...RECORD_CHECKS,
  ...CARD_CHECKS,
  ...POLICY_CHECKS,
  ...REFUSAL_CHECKS,
  ...PLACE_CHECKS,
};
const RUNNING = CHECKS.filter((check) => check.id in FUNCTIONS).map((check) => ({
  ...check,
  run: FUNCTIONS[check.id],
}));
const UNSOUND_CHECKS = ["opening_digest", "inclusion"];
/** What an excerpt leaves out (spec §14.3); a receipt leaves out kid and rekey too. */
const NOT_IN_EXCERPT = [
  "supersedes",
  "prior_attempt",
  "latest",
  "refusal_reason",
  "refusal_count",
  "recovered",
  "pruned",
];
const NOT_WHERE_TOUCHED = ["lifecycle", "policy evidence", "refusals true"];
const NOT_WHERE_BELONGING = [...NOT_WHERE_TOUCHED, "manifest", "key lifecycle", "time"];
const OF_BYTES = ["segment_name", "limits", "deterministic", "shape", "version"];
const OF_ANY_VERSION = ["limits", "deterministic", "shape", "version", "key_missing", "tag"];
const TAKES_IN_BYTES = ["framing", "shape", "tag"];

export class Log {
  /**
   * `ring`: kid to key of this chain; `profiles`: digest to profile bytes; `floor`: a class index;
   * `passed`: the records below a kept checkpoint; `sizes`: those of the checkpoints at hand;
   * `scope`: of an excerpt, {card} or {from, to}, else null; `allowsWithheld`: whether openings may
   * be absent.
   */
  constructor({
    chain,
    ring,
    pins,
    profiles,
    floor,
    since,
    passed = null,
    sizes = [],
    scope = null,
    allowsWithheld = false,
  }) {
    Object.assign(this, { chain, ring, pins, floor, since, passed, scope, allowsWithheld });
    this.governance = new Governance(profiles);
    this.thresholds = [0, ...sizes];
    this.soundNext = null; // the seq after the sound records from the first one on
    this.withheld = [];
    this.announced = null; // the newest vkey that the log announces (spec §13.3)
    this.state = new State();
    this.sequence = new Sequence();
    this.tally = new Tally();
    this.histories = new Histories();
    this.findings = [];
    this.kids = new Set();
    this.missingKids = new Map(); // kid to {size of a checkpoint: first record beyond it}
    this.absentKids = new Set();
    this.missingProfiles = new Set();
    this.wrongEnvelopes = new Set();
    this.records = new Map(); // seq to {digest, bound}
    this.absent = []; // openings that are absent, with the epoch and place of their record
    this.redactions = new Set();
    this.first = null;
    this.beginsInBytes = false;
    this.hasPassedOver = false; // with `since`: records before it were there
    this.reached = null; // with `since`: the record that the auditor kept, or another in its place
    this.kept = null; // {seq, digest} where it is the one, and no record follows (spec §15.2)
    this.isEdgeNamed = false;
    this.isEdgeTold = false; // a pruned record is about the edge, rightly or not
    this.prunedBefore = 0;
    this.edge = { isOpened: false };
    this.isProofOpen = false; // the proof of a rekeyed record was not checked: its secret is missing
    this.rested = new Set(); // checks of this record that rest on records before the edge
    this.edgeEvents = new Map(); // check to how many events rest on records before the edge
    this.lastDigest = null;
    this.lastSeq = null;
    this.isLastUnplaced = false; // the seq of the last record cannot be read
    this.head = null;
    this.lastCheck = null;
    this.afterUnsound = false;
    this.inForeignRun = false;
    this.kid = null;
    this.at = null;
  }

  /** Bytes that are no record: one finding, or part of that of the record before. */
  takeStretch(stretch, file) {
    const belongs = TAKES_IN_BYTES.includes(this.lastCheck);
    if (!belongs) this.report(stretch.check, { ...stretch, file, seq: null, expected: "a record" });
    this.lastCheck = belongs ? this.lastCheck : stretch.check;
    this.sequence.afterBytes = true;
    this.lastDigest = null;
    this.lose();
  }

  /** A segment without a byte: allowed as the last one, under the number of the next seq. */
  takeEmptySegment(file, isLast) {
    const next = nextSeq(this);
    if (next === null || (isLast && file.number === next)) return;
    const expected = isLast ? `the number ${next}` : "a record";
    this.report("segment_name", { file, offset: null, seq: null, expected, found: "no byte" });
    this.sequence.afterBytes = true;
    this.lastDigest = null;
    this.lose();
  }

  /** An unsound record, or what cannot be read, may explain what follows (spec §10.3, rule 7). */
  lose() {
    if (hasUnnamed(this)) this.tally.lostOpenings = true;
    this.state.lose();
    this.afterUnsound = true;
  }

  /** Judges one record that was read and digested, and folds it into the state if it is sound. */
  take(record, file) {
    record.file = file;
    record.isFirst = this.first === null;
    if (record.isFirst) this.begin(record);
    this.place(record);
    const isJudged = this.state.issued(record.card)?.epoch === this.state.epoch;
    const outcome = this.check(record);
    const hasFailed = outcome.failed !== null;
    const isUnsound = outcome.belongs || isUnsoundBy(record, outcome.failed);
    this.tally.take(record, {
      isWrong: !isUnsound && (hasFailed || this.breaksBesides(record)),
      isGood: isJudged && !hasFailed,
    });
    this.leave(record, outcome, isUnsound);
  }

  begin(record) {
    this.first = record;
    this.beginsInBytes = this.sequence.afterBytes;
    if (this.since !== null && (this.hasPassedOver || record.seq === this.since.seq + 1)) {
      this.beginAfter(record, this.since);
    } else if (this.scope !== null) this.beginExcerpt(record);
    else if (record.seq !== null && record.seq !== 0) this.openEdge();
  }

  /** Goes on after a record that the auditor kept; with another root nothing is held against it. */
  beginAfter(record, { seq, digest, isLoose = false, isNamed = true }) {
    this.isEdgeNamed = isNamed;
    this.openEdge();
    if (!isLoose) {
      this.sequence.next = seq + 1;
      this.lastDigest = digest;
      return;
    }
    if (record.seq === null || record.seq > seq) this.sequence.next = null;
    this.lose();
  }

  /** Cards may be older than an excerpt; of a range the chain profile is known (spec §14.2). */
  beginExcerpt(record) {
    this.state.isEdgeOpen = true;
    if (this.scope.card || record.seq !== 0) {
      this.state.chainProfile = UNKNOWN;
      this.edge.isOpened = true;
    }
  }

  openEdge() {
    this.state.isEdgeOpen = true;
    this.edge.isOpened = true;
    this.state.chainProfile = UNKNOWN;
  }

  /** Whether an item stands before the record from which the auditor wants to go on. */
  passesOver({ record }) {
    if (this.since === null || this.first !== null || this.reached !== null) return false;
    if (record === undefined) return true;
    if (record.seq !== null && record.seq > this.since.seq) return false;
    this.hasPassedOver = true;
    if (record.seq === this.since.seq) this.reached = record;
    return true;
  }

  /** Gives the record its place in the sequence, before any check. */
  place(record) {
    if (this.scope !== null) {
      record.placed = record.isFirst ? null : holeBefore(record, this.lastSeq, this.scope);
      this.sequence.next = (record.seq ?? 0) + 1;
      return;
    }
    const isOurs = record.chain === this.chain && record.shapeFault === null;
    if (record.isFirst && this.sequence.next === null) {
      record.placed = null;
      this.sequence.begin(record.seq ?? 0);
      return;
    }
    if (!isOurs) this.sequence.skip(record.seq);
    record.placed = isOurs ? this.sequence.place(record.seq) : null;
  }

  /** Runs the table until a check fails; gives {failed, belongs}. */
  check(record) {
    const skipped = record.placed === BELONGS ? NOT_WHERE_BELONGING : [];
    let belongs = record.placed === BELONGS;
    let version = null;
    this.rested.clear();
    for (const check of RUNNING) {
      if (!appliesTo(check, record) || skipped.includes(check.group)) continue;
      if (this.scope !== null && NOT_IN_EXCERPT.includes(check.id)) continue;
      const found = check.run(this, record);
      if (found === undefined || found === null) continue;
      if (found === EDGE) {
        this.rested.add(check.id);
      } else if (found === BELONGS) {
        belongs = true;
        if (check.id !== "sequence") return { failed: null, belongs };
      } else if (check.id === "version") version = found;
      else {
        this.reportRecord(check.id, record, found);
        if (!check.cannot) return { failed: check, belongs };
      }
    }
    if (version !== null) this.reportRecord("version", record, version);
    return { failed: null, belongs };
  }

  /** Whether a dispatch breaks a rule that is not reported, as its card has a finding already. */
  breaksBesides(record) {
    const card = record.kind === "dispatched" ? this.state.cards.get(record.card) : undefined;
    if (!card?.isTouched) return false;
    card.isTouched = false;
    const faults = RUNNING.filter(
      ({ group, cannot }) => NOT_WHERE_TOUCHED.includes(group) && !cannot,
    ).map((check) => check.run(this, record));
    card.isTouched = true;
    return faults.some((fault) => fault && fault !== EDGE && fault !== BELONGS);
  }

  leave(record, { failed, belongs }, isUnsound) {
    this.inForeignRun = failed?.id === "chain" || (belongs && record.chain !== this.chain);
    if (failed !== null || belongs) this.touch(record);
    if (isUnsound) {
      seeStep(this, record, false);
      this.lose();
    } else keep(this, record);
    if (record.kind === "pruned" && record.body.get("before") === this.first.seq) {
      this.isEdgeTold = true;
    }
    this.histories.take(record, !isUnsound);
    remember(this, record, isUnsound);
    this.lastCheck = failed?.id ?? null;
    countLeaf(this, record, failed !== null || belongs);
    this.lastSeq = record.seq;
    this.isLastUnplaced = record.seq === null && !record.isOtherVersion;
    this.lastDigest = record.digest;
    this.head = record.digest;
    this.follow(record);
    this.afterUnsound = isUnsound;
  }

  touch(record) {
    if (record.card === undefined || record.card === null) return;
    if (record.envelope?.fault) this.wrongEnvelopes.add(record.card);
    this.state.card(record.card).isTouched = true;
  }

  /** What the next record is held against (spec §4.2, §5). */
  follow(record) {
    if (record.deterministicFault || record.at === undefined) {
      if (this.kid === null) this.kid = record.kid;
      return;
    }
    this.at = record.at;
    this.kid = record.kid;
    if (record.kind === "rekeyed") this.kid = hex(record.body.get("kid"));
  }

  /** Whether a record of an excerpt stands directly after the one before it. */
  isNext(record) {
    return this.lastSeq !== null && record.seq === this.lastSeq + 1;
  }

  /** Notes that a secret is missing; the first record that no checkpoint covers is told (§16.1). */
  missKey(kid, record) {
    if (!this.missingKids.has(kid)) this.missingKids.set(kid, new Map());
    if (record.isCovered) return;
    const seq = record.seq ?? (this.sequence.next ?? 1) - 1;
    const first = this.missingKids.get(kid);
    for (const size of this.thresholds)
      if (seq >= size && !first.has(size)) first.set(size, record);
  }

  /** After the last record: what is still missing, beyond the records that checkpoints cover. */
  finish(covered) {
    for (const [kid, first] of this.missingKids) {
      const record = first.get(covered);
      if (record === undefined) continue;
      this.absentKids.add(kid);
      this.reportRecord("key_missing", record, {
        expected: `the secret of kid ${kid}`,
        found: "none",
      });
    }
    const absent = missingOpenings(this);
    if (this.allowsWithheld) this.withheld = withheldOf(absent);
    else {
      for (const { record, names } of absent) {
        this.reportRecord("opening_missing", record, {
          expected: `the opening ${names[0]}, or a redacted event that names it`,
          found: "none",
        });
      }
    }
    this.findings.sort(
      (one, other) =>
        one.fileIndex - other.fileIndex ||
        one.order - other.order ||
        ORDER.get(one.check) - ORDER.get(other.check),
    );
  }

  reportRecord(check, record, { expected, found }) {
    if (check !== "key_missing") this.histories.blame(record, check);
    const { file, offset, seq, order = offset } = record;
    this.report(check, { file, offset, seq, order, expected, found });
  }

  report(check, { file, offset, seq, expected, found, order = offset ?? -1 }) {
    this.findings.push({
      check,
      file: file.name,
      fileIndex: file.index,
      order,
      offset,
      seq,
      expected,
      found,
    });
  }

  /** The card of a record; for an issued one as it will be after it. */
  cardOf(record) {
    const card = this.state.cards.get(record.card);
    if (record.kind === "issued" && !card?.isIssued) {
      const before = card ?? this.state.card(record.card);
      return { ...before, chainProfile: this.state.chainProfile, envelope: record.envelope };
    }
    return card ?? this.state.card(record.card);
  }

  /** The rules that a card was issued under (spec §8.5). */
  rulesOf(card) {
    const basis =
      card.envelope?.fault === null && !card.envelope.isOtherFormat
        ? card.envelope.value.get("approval_basis")
        : undefined;
    return this.governance.rules(card.chainProfile, basis?.get("profile") ?? null);
  }

  /** The rules of what a refused issue would have issued, or of the card of another refusal. */
  refusalRules(record) {
    if (record.kind !== "refused") return null;
    const isReadable =
      record.envelope !== null && record.envelope.fault === null && !record.envelope.isOtherFormat;
    if (record.body.get("gate") === "issue") {
      const basis = isReadable ? record.envelope.value.get("approval_basis") : undefined;
      return this.governance.rules(this.state.chainProfile, basis?.get("profile") ?? null);
    }
    const card = this.state.issued(record.card);
    return card === null ? null : this.rulesOf(card);
  }
}

/** Whether a record is unsound by the check that it failed (spec §10.3, rule 2). */
function isUnsoundBy(record, failed) {
  if (record.isOtherVersion || failed === null) return record.isOtherVersion;
  return UNSOUND_GROUPS.includes(failed.group) || UNSOUND_CHECKS.includes(failed.id);
}

/** Whether a check is made on a record whose bytes may be unreadable or of another version. */
function appliesTo(check, record) {
  if (record.isOtherVersion) return OF_ANY_VERSION.includes(check.id);
  if (record.kind === undefined) return OF_BYTES.includes(check.id);
  return true;
}
