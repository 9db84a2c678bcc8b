/* The checks of the life of a card (spec §6.2, §6.3), over the records before. */

import { hex } from "./bytes.mjs";
import { isBlank } from "./escape.mjs";
import { EDGE } from "./state.mjs";
import { isWellFormed, driftFault } from "./drift.mjs";

const unless = (fault, expected, found) => (fault ? { expected, found } : null);
const isOf = (record, ...kinds) => kinds.includes(record.kind);

/** The card of a record where the lifecycle may be judged, else null (spec §10.3, 6 and 7). */
export function judgedCard(log, record) {
  const card = log.state.issued(record.card);
  if (card === null || card.isTouched || card.epoch !== log.state.epoch) return null;
  return card;
}

/** EDGE where the card may have been issued before the left edge, else undefined. */
export function unjudged(log, record) {
  const { state } = log;
  const isOurs = state.issued(record.card) !== null || state.cards.get(record.card)?.isTouched;
  return state.isEdgeOpen && !isOurs ? EDGE : undefined;
}

/** A check of events of these kinds about an issued card that may be judged. */
function onCard(kinds, check) {
  return (log, record) => {
    if (!isOf(record, ...kinds)) return undefined;
    const card = judgedCard(log, record);
    return card === null ? unjudged(log, record) : check(card, record, log);
  };
}

export const CARD_CHECKS = {
  opened: (log, record) => {
    const isOpened = record.kind === "opened";
    if (isOpened && record.seq !== 0) {
      return { expected: "opened at seq 0 alone", found: `opened at seq ${record.seq}` };
    }
    if (log.state.epoch > 0 || log.state.isEdgeOpen) return undefined;
    return unless(record.seq === 0 && !isOpened, "opened at seq 0", record.kind);
  },
  issued_once: (log, record) => {
    if (record.kind !== "issued") return undefined;
    const before = log.state.issued(record.card);
    if (before === null) return null;
    if (judgedCard(log, record) === null) return undefined;
    return { expected: "a card that was not issued before", found: record.card };
  },
  supersedes: (log, record) => {
    const step = judgedStep(log, record);
    if (step === undefined || step === EDGE) return step;
    const latest = step === null ? null : step.latest;
    return unless(record.supersedes !== latest, latest ?? "none", record.supersedes ?? "none");
  },
  prior_attempt: (log, record) => {
    const step = judgedStep(log, record);
    if (step === undefined || step === EDGE) return step;
    if (!isReadable(record.envelope)) return undefined;
    const attempt = log.state.attemptOf(record.task);
    return attemptFault(attempt, record.envelope.value);
  },
  not_issued: (log, record) => {
    const isAsk = record.kind === "refused" && record.body.get("gate") === "issue";
    if (record.card === null || record.kind === "issued" || isAsk) return undefined;
    if (log.state.issued(record.card) !== null) return null;
    if (log.state.cards.get(record.card)?.isTouched) return undefined;
    if (log.state.isEdgeOpen && mayBeCarried(log, record)) return EDGE;
    if (log.state.epoch > 0) return undefined;
    return { expected: "an issued record of this card before", found: "none" };
  },
  of: onCard(["resolved", "withdrawn", "dispatched", "settled", "refused"], (card, record) => {
    if (!record.body.has("of")) return undefined;
    const of = record.body.get("of");
    return unless(of !== card.lastSeq, `of ${card.lastSeq}`, String(of));
  }),
  echo: onCard(["resolved", "withdrawn"], (card, record) => {
    for (const name of ["echo", "target"]) {
      const given = record.body.get(name);
      if (given !== undefined && hex(given) !== record.card) {
        return { expected: `${name} ${record.card}`, found: hex(given) };
      }
    }
    return null;
  }),
  approver: onCard(["resolved", "withdrawn"], (card, record) => {
    const { body } = record;
    const id = record.kind === "resolved" ? body.get("approver").get("id") : body.get("by");
    return unless(isBlank(id), "an id that can be seen", "a blank one");
  }),
  decided_once: onCard(["resolved"], (card) =>
    unless(card.decision !== null, "no decision before", String(card.decision)),
  ),
  in_time: onCard(["resolved", "withdrawn", "dispatched"], (card, record, log) => {
    const { state } = log;
    if (card.decision === null && record.kind !== "dispatched") {
      return unless(state.isLate(card, record.at), "a time before not_after", String(record.at));
    }
    if (card.decision !== "approve" || record.kind === "resolved") return undefined;
    if (record.kind === "withdrawn" && card.isDispatched) return undefined;
    return unless(state.isLapsed(card, record.at), "a grant in time", String(record.at));
  }),
  withdrawn: onCard(["resolved", "withdrawn", "dispatched"], (card) =>
    unless(card.isWithdrawn, "a card that was not withdrawn", "a withdrawn one"),
  ),
  latest: onCard(["resolved", "withdrawn", "dispatched"], (card, record, log) =>
    unless(!log.state.isLatest(card), "the latest card of its step", "an earlier one"),
  ),
  withdraw_state: onCard(["withdrawn"], (card) => {
    const over = card.isDispatched ? "a dispatched card" : "a rejected card";
    return unless(card.isDispatched || card.decision === "reject", "an open card or a grant", over);
  }),
  approved: onCard(["dispatched"], (card) =>
    unless(card.decision !== "approve", "an approved card", card.decision ?? "no decision"),
  ),
  dispatched_once: onCard(["dispatched"], (card) =>
    unless(card.isDispatched, "no dispatch before", "one"),
  ),
  rebuilt: onCard(["dispatched"], (card, record, log) => rebuiltFault(card, record, log)),
  settled: onCard(["settled"], (card, record) => {
    if (!card.isDispatched) return { expected: "a dispatch before", found: "none" };
    const isSecond = card.outcome !== null && card.outcome !== "unknown";
    const isAgain = card.outcome === "unknown" && record.body.get("outcome") === "unknown";
    return unless(isSecond || isAgain, "one outcome", `${card.outcome} before`);
  }),
};

/** Whether a card may be from before the left edge: the last event named for it stands there. */
function mayBeCarried({ state, first, scope }, { card, body }) {
  if (scope !== null || state.carried.has(card)) return true;
  return !body.has("of") || first.seq === null || body.get("of") < first.seq;
}

/** The step of an issued record where it may be judged; null where it is new, else undefined. */
function judgedStep(log, record) {
  if (record.kind !== "issued") return undefined;
  const step = log.state.steps.get(record.task);
  if (step?.isEdge ?? log.state.isEdgeOpen) return EDGE;
  const isNamed =
    record.supersedes !== null ||
    (isReadable(record.envelope) && record.envelope.value.has("prior_attempt"));
  if (step === undefined) return log.state.epoch > 0 && isNamed ? undefined : null;
  return step.epoch === log.state.epoch && !log.state.issued(record.card)?.isTouched
    ? step
    : undefined;
}

export function isReadable(envelope) {
  return envelope !== null && envelope.fault === null && !envelope.isOtherFormat;
}

/** What prior_attempt says against the last dispatched card of the step (spec §6.4). */
export function attemptFault(attempt, envelope) {
  const named = envelope.get("prior_attempt");
  const said = named ? `${named.get("outcome")} of ${named.get("card_hash")}` : "none";
  const is = attempt === null ? "none" : `${attempt.outcome} of ${attempt.hash}`;
  return unless(said !== is, is, said);
}

function rebuiltFault(card, record, log) {
  const { body } = record;
  const exceptions = body.get("exceptions");
  if (body.get("policy_outcome") === "deny") {
    return { expected: "no dispatch that policy denies", found: "policy_outcome deny" };
  }
  if (hex(body.get("rebuilt")) === record.card) {
    return unless(exceptions !== undefined, "no exception where nothing differs", "one");
  }
  if (exceptions?.length !== 1 || exceptions[0] !== "basis_drift") {
    return { expected: `rebuilt ${record.card}`, found: hex(body.get("rebuilt")) };
  }
  if (body.get("policy_outcome") !== "allow") {
    return { expected: "policy_outcome allow", found: String(body.get("policy_outcome")) };
  }
  return exceptionFault(card, record.rebuilt, log.rulesOf(card));
}

/** Why the named exception does not hold; what only an absent profile could show is left open. */
function exceptionFault(card, rebuilt, rules) {
  if (rules.isKnown ? !rules.mayDrift : rules.mustReview) {
    return { expected: "profiles that let the basis drift", found: "others" };
  }
  if (rebuilt !== null && !isWellFormed(rebuilt)) {
    return {
      expected: "a well-formed rebuilt envelope",
      found: rebuilt.fault?.expected ?? "another",
    };
  }
  if (rebuilt === null || !isReadable(card.envelope)) return null;
  return driftFault(card.envelope.value, rebuilt.value, rules);
}
