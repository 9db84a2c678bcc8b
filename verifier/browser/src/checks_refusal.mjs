/* Refusals are true (spec §6.4): each recorded reason is derived again. */

import { hex } from "./bytes.mjs";
import { attemptFault, isReadable, judgedCard } from "./checks_card.mjs";
import { EDGE } from "./state.mjs";
import { isWellFormed } from "./drift.mjs";
import { sameTerms } from "./envelope.mjs";
import { claimFault, fixedFault, floorFault, isOwn, manifestFault } from "./policy.mjs";
import { ASSERTED, REASONS, countAfter } from "./refusals.mjs";

export const REFUSAL_CHECKS = {
  refusal_reason: (log, record) => {
    if (record.kind !== "refused") return undefined;
    if (!isJudged(log, record)) return restsOnEdge(log, record);
    return cardFault(log, record) ?? reasonFault(log, record);
  },
  refusal_count: (log, record) => {
    if (record.kind !== "refused") return undefined;
    const before = log.state.counts.get(countKey(record)) ?? { value: 0, epoch: 0 };
    if (log.state.counts.has(countKey(record)) && log.state.epoch === 0)
      return countFault(before, record);
    const isSure = before.epoch === log.state.epoch || judgedCard(log, record) !== null;
    if (!isSure || !isJudged(log, record)) return restsOnEdge(log, record);
    return countFault(before, record);
  },
};

function countFault(before, record) {
  const expected = countAfter(before.value);
  const found = record.body.get("count");
  return found === expected ? null : { expected: `a count of ${expected}`, found: String(found) };
}

/** EDGE where the refusal is about a card or step that may be older than the log. */
function restsOnEdge(log) {
  return log.state.isEdgeOpen ? EDGE : undefined;
}

/** What the count of a refusal runs over: gate, reason and subject. */
export function countKey(record) {
  const gate = record.body.get("gate");
  const subject = gate === "issue" ? hex(record.body.get("task")) : record.card;
  return `${gate} ${record.body.get("reason")} ${subject}`;
}

/** Whether the reason is only asserted: nothing in the log shows it (spec §6.4, §8.2, §8.6). */
export function isAsserted(log, record) {
  const reason = record.body.get("reason");
  if (ASSERTED.includes(reason)) return true;
  const gate = record.body.get("gate");
  if (gate === "issue" && reason === "manifest_mismatch" && isReadable(record.envelope)) {
    if (record.envelope.value.get("review_manifest")?.has("view_digest")) return true;
  }
  return HOLDS[gate](log, record)[reason]() === null;
}

/** Whether the reason, or one before it, depends on profiles. */
export function needsProfiles(log, record) {
  const order = REASONS[record.body.get("gate")];
  const reason = order.indexOf(record.body.get("reason"));
  const first = { issue: "evidence_below_floor", resolve: "self_approval" }[
    record.body.get("gate")
  ];
  if (first !== undefined) return reason >= order.indexOf(first);
  return record.body.get("reason") === "evidence_below_floor";
}

function isJudged(log, record) {
  const { state } = log;
  if (record.body.get("gate") === "issue") {
    const step = state.steps.get(record.task);
    if (step?.isEdge ?? state.isEdgeOpen) return false;
    return step === undefined ? state.epoch === 0 : step.epoch === state.epoch;
  }
  if (record.card === null) return state.epoch === 0 && !state.isEdgeOpen;
  return judgedCard(log, record) !== null;
}

/** The card that spec §6.4 asks for: the target if issued, else the echo if issued, else null. */
function cardFault(log, record) {
  const gate = record.body.get("gate");
  if (gate === "issue") return null;
  const named = ["target", ...(gate === "resolve" || gate === "withdraw" ? ["echo"] : [])];
  const hashes = named
    .filter((name) => record.body.has(name))
    .map((name) => hex(record.body.get(name)));
  if (hashes.length === 0) return null;
  const expected = hashes.find((hash) => log.state.issued(hash) !== null) ?? null;
  if (expected === record.card || log.state.epoch > 0 || log.state.isEdgeOpen) return null;
  return { expected: `card ${expected ?? "none"}`, found: record.card ?? "none" };
}

function reasonFault(log, record) {
  const gate = record.body.get("gate");
  const recorded = record.body.get("reason");
  const holds = HOLDS[gate](log, record);
  for (const reason of REASONS[gate]) {
    const isTrue = reason in holds ? holds[reason]() : null;
    if (reason === recorded) {
      if (isTrue !== false || isAsserted(log, record)) return null;
      return { expected: "a reason that holds", found: recorded };
    }
    if (isTrue === true)
      return { expected: `the first reason that holds, ${reason}`, found: recorded };
  }
  return null;
}

/** Per gate, each derivable reason as a function that gives true, false, or null where unknown. */
const HOLDS = {
  issue: (log, record) => {
    const { state } = log;
    const envelope = isReadable(record.envelope) ? record.envelope.value : null;
    const rules = log.refusalRules(record);
    const task = hex(record.body.get("task"));
    const latest = state.steps.get(task)?.latest ?? null;
    const known = (test) => (envelope === null ? null : test());
    const ruled = (fault) =>
      known(() => (fault(envelope) !== null ? true : rules.isKnown ? false : null));
    const openExists = () => {
      const card = latest === null ? null : state.cards.get(latest);
      if (card === null || !state.isOpen(card) || state.isLate(card, record.at)) return false;
      return known(() => !envelope.has("supersedes"));
    };
    return {
      claimed_above_derived: () => known(() => claimFault(envelope) !== null),
      evidence_below_floor: () => ruled((one) => floorFault(one, rules)),
      manifest_mismatch: () => known(() => manifestMismatch(envelope, rules)),
      fixed_parameter_supplied: () => ruled((one) => fixedFault(one, rules)),
      open_exists: openExists,
      supersedes_wrong: () =>
        known(() => (envelope.get("supersedes") ?? null) !== latest && openExists() === false),
      attempt_unnamed: () => known(() => attemptFault(state.attemptOf(task), envelope) !== null),
    };
  },
  resolve: (log, record) => {
    const card = log.state.issued(record.card);
    return {
      hash_mismatch: () => echoFails(log, record),
      missing_approver: () => !record.body.has("approver"),
      already_resolved: () => card !== null && card.decision !== null,
      expired: () => card !== null && log.state.isLate(card, record.at),
      withdrawn: () => card !== null && card.isWithdrawn,
      not_latest: () => card !== null && !log.state.isLatest(card),
      self_approval: () => selfApproval(log, record, card),
    };
  },
  withdraw: (log, record) => {
    const card = log.state.issued(record.card);
    const isOver = () =>
      card.decision === null
        ? log.state.isLate(card, record.at)
        : log.state.isLapsed(card, record.at);
    return {
      hash_mismatch: () => echoFails(log, record),
      missing_approver: () => !record.body.has("approver"),
      already_dispatched: () => card !== null && card.isDispatched,
      already_resolved: () => card !== null && card.decision === "reject",
      withdrawn: () => card !== null && card.isWithdrawn,
      not_latest: () => card !== null && !log.state.isLatest(card),
      expired: () => card !== null && isOver(),
    };
  },
  dispatch: (log, record) => {
    const card = log.state.issued(record.card);
    return {
      unknown_card: () => card === null,
      not_approved: () => card !== null && card.decision !== "approve",
      already_dispatched: () => card !== null && card.isDispatched,
      withdrawn: () => card !== null && card.isWithdrawn,
      not_latest: () => card !== null && !log.state.isLatest(card),
      grant_expired: () => card !== null && log.state.isLapsed(card, record.at),
      mismatch: () => mismatch(record, card),
      evidence_below_floor: () => (card !== null && mayDrift(log, card) === false ? false : null),
    };
  },
  settle: (log, record) => {
    const card = log.state.issued(record.card);
    return {
      unknown_card: () => card === null,
      not_dispatched: () => card !== null && !card.isDispatched,
      already_settled: () => card !== null && card.outcome !== null,
    };
  },
};

function echoFails(log, record) {
  const echo = hex(record.body.get("echo"));
  const target = record.body.has("target") ? hex(record.body.get("target")) : echo;
  return target !== echo || log.state.issued(echo) === null;
}

function manifestMismatch(envelope, rules) {
  const manifest = envelope.get("review_manifest");
  if (manifest === undefined) return false;
  if (manifestFault(envelope, rules.critical) !== null) return true;
  return rules.isKnown && !manifest.has("view_digest") ? false : null;
}

function selfApproval(log, record, card) {
  if (card === null || !record.body.has("approver")) return null;
  const envelope = isReadable(record.envelope) ? record.envelope : card.envelope;
  if (!isReadable(envelope)) return null;
  if (!isOwn(envelope.value, record.body.get("approver").get("id"))) return false;
  const rules = log.rulesOf({ ...card, envelope });
  if (rules.deniesSelf) return true;
  return rules.isKnown ? false : null;
}

/** Whether the rules of a card let a basis drift: true, false, or null where that is unknown. */
function mayDrift(log, card) {
  const rules = log.rulesOf(card);
  return rules.isKnown ? rules.mayDrift : rules.mustReview ? false : null;
}

/** Whether what was rebuilt is another envelope that differs from the card in facts alone. */
function mismatch(record, card) {
  if (card === null || !record.body.has("rebuilt")) return null;
  if (hex(record.body.get("rebuilt")) === record.card) return false;
  if (record.rebuilt === null) return null;
  if (!isWellFormed(record.rebuilt)) return false;
  const envelope = isReadable(record.envelope) ? record.envelope : card.envelope;
  return isReadable(envelope) ? sameTerms(envelope.value, record.rebuilt.value) : null;
}
