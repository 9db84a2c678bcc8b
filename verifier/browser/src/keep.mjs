/* What a sound record leaves behind: the state, the tally, steps, counts and the leaves of the tree. */

import { hex } from "./bytes.mjs";
import { isReadable } from "./checks_card.mjs";
import { evidenceCard } from "./checks_policy.mjs";
import { countKey, isAsserted } from "./checks_refusal.mjs";
import { checksOf } from "./not_checked.mjs";
import { UNKNOWN } from "./state.mjs";

/**
 * Counts the records from the first one on whose digests make a tree (spec §13.7). One of an
 * unknown version is taken as it stands, at the seq that was expected.
 */
export function countLeaf(log, record, isWrong) {
  const seq = record.isOtherVersion ? log.sequence.next - 1 : record.seq;
  const isUnsound = record.isOtherVersion ? isWrong : (log.records.get(seq)?.isUnsound ?? true);
  if (record.isOtherVersion && !log.records.has(seq)) {
    log.records.set(seq, { digest: record.digest, bound: [], card: null, isUnsound: true });
  }
  if (isUnsound || seq !== (log.soundNext ?? log.first.seq ?? 0)) return;
  log.soundNext = seq + 1;
}

export function keep(log, record) {
  log.tally.takeSound(record, record.kind === "refused" && isAsserted(log, record));
  const judged = evidenceCard(log, record);
  log.kids.add(record.kid);
  if (record.kind === "rekeyed") log.kids.add(hex(record.body.get("kid")));
  countEdge(log, record);
  seeStep(log, record, true);
  log.state.fold(record);
  if (record.kind === "pruned") keepPruned(log, record.body.get("before"));
  if (record.card !== null && record.kind !== "refused") {
    const card = log.state.card(record.card);
    if (record.kind === "issued" && record.envelope === null) card.issuedBody = record;
    if (record.kind === "issued" && isInForce(card.chainProfile)) log.tally.governed += 1;
    if (record.envelope !== null) show(log, card, record);
    if (judged !== null) card.isJudged = true;
  } else if (record.card !== null && record.envelope !== null) {
    showRefused(log, record, judged);
  }
  if (record.kind === "refused") keepRefusal(log, record);
  if (record.card === null && record.body.has("vkey")) log.announced = record.body.get("vkey");
}

/**
 * Notes the step of a record. After an unsound record it is certain that a step begins only
 * where an issued record says that no card was before (spec §10.3, rule 7).
 */
export function seeStep(log, record, isSound) {
  const task = record.task ?? record.envelope?.task;
  if (!task || log.state.steps.has(task)) return;
  const begins =
    record.kind === "issued" &&
    isSound &&
    record.supersedes === null &&
    !(isReadable(record.envelope) && record.envelope.value.has("prior_attempt"));
  const step = log.state.step(task);
  if (log.state.epoch > 0 && !begins) step.epoch = -1;
}

function show(log, card, record) {
  if (card.envelope === null && isReadable(record.envelope)) {
    log.tally.takeEvidence(record.envelope.value);
  }
  card.envelope ??= record.envelope;
  card.issuedBody = null;
}

function showRefused(log, record, judged) {
  if (record.body.get("gate") === "issue") return;
  show(log, log.state.card(record.card), record);
  if (judged !== null) log.state.card(record.card).isJudged = true;
}

/** Counts, by check, the events that rest on records before the left edge (spec §15.2). */
function countEdge(log, record) {
  const { state } = log;
  const isAsk = record.kind === "issued" || record.body.get("gate") === "issue";
  const isOlder = state.isEdgeOpen && record.card !== null && !isAsk && !state.issued(record.card);
  if (isOlder) state.carried.add(record.card);
  for (const check of new Set([...log.rested, ...(isOlder ? checksOf(record.kind) : [])]))
    log.edgeEvents.set(check, (log.edgeEvents.get(check) ?? 0) + 1);
}

function keepPruned(log, before) {
  log.prunedBefore = before;
  if (before !== log.first.seq) return;
  log.isEdgeNamed = true;
  if (log.state.isEdgeOpen) log.state.closeEdge();
}

function keepRefusal(log, record) {
  const { epoch } = log.state;
  const count = { value: record.body.get("count"), epoch, seq: record.seq };
  log.state.counts.set(countKey(record), count);
}

function isInForce(profile) {
  return profile !== null && profile !== UNKNOWN;
}
