/* What happened to each card, for people: events in words, its state, and its envelope. */

import { escaped } from "./escape.mjs";
import { hex } from "./bytes.mjs";

const TELLS = {
  issued: (body) => (body.has("supersedes") ? `supersedes ${hex(body.get("supersedes"))}` : ""),
  resolved: (body) =>
    `${body.get("decision")} by ${person(body.get("approver"))}, over ${quoted(body.get("channel"))}`,
  refused: (body) => {
    const by = body.has("approver") ? `, asked by ${person(body.get("approver"))}` : "";
    return `at the gate ${body.get("gate")}: ${body.get("reason")}, count ${body.get("count")}${by}`;
  },
  withdrawn: (body) => `${body.get("reason")}, by ${quoted(body.get("by"))}`,
  dispatched: (body) => {
    const exceptions = body.get("exceptions") ?? [];
    return exceptions.length === 0 ? "" : `under ${exceptions.map(quoted).join(", ")}`;
  },
  settled: (body) => body.get("outcome"),
};

function quoted(text) {
  return `"${escaped(text)}"`;
}

function person(approver) {
  return `${quoted(approver.get("id"))} (${approver.get("assurance")})`;
}

/** The events of the cards of one log: card hash to {events, envelope, blamed}. */
export class Histories {
  constructor() {
    this.cards = new Map();
  }

  of(hash) {
    let history = this.cards.get(hash);
    if (history === undefined) {
      history = { events: [], envelope: null, blamed: [] };
      this.cards.set(hash, history);
    }
    return history;
  }

  /** Notes a record about a card; `isSound` says whether it was folded into the state. */
  take(record, isSound) {
    if (!record.card) return;
    const history = this.of(record.card);
    history.events.push({
      seq: record.seq,
      at: record.at,
      kind: record.kind,
      isSound,
      words: TELLS[record.kind](record.body),
    });
    const isWhole = record.openingDigests.get("envelope") === record.card;
    if (history.envelope === null && isWhole) history.envelope = record.envelope;
  }

  blame(record, check) {
    if (record.card) this.of(record.card).blamed.push(check);
  }
}

/** The state of a card (spec §6.1) at the time `at` of the last record; null where never issued. */
export function stateOf(state, card, at) {
  if (card?.isForgotten) return "ENDED";
  if (!card?.isIssued) return null;
  if (card.isDispatched) return settledState(card.outcome);
  if (card.isWithdrawn) return "WITHDRAWN";
  if (card.isSuperseded) return "SUPERSEDED";
  if (card.decision === "reject") return "REJECTED";
  if (card.decision === "approve") return state.isLapsed(card, at) ? "LAPSED" : "APPROVED";
  return state.isLate(card, at) ? "EXPIRED" : "OPEN";
}

function settledState(outcome) {
  if (outcome === null) return "DISPATCHED";
  return outcome === "unknown" ? "UNKNOWN" : `SETTLED, ${outcome}`;
}
