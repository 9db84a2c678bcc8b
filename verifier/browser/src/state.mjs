/*
 * The state of cards and steps: a fold over the sound records (spec §6.1, §6.2).
 * `epoch` counts the unsound records so far. What was first seen in an older epoch is not judged by
 * the lifecycle, since a lost record could explain it (spec §10.3, rule 7).
 */

export const UNKNOWN = Symbol("unknown");

/** What a check gives where it rests on records before the left edge (spec §15.2). */
export const EDGE = Symbol("rests on records before the left edge");

export class State {
  constructor() {
    this.cards = new Map();
    this.steps = new Map();
    this.counts = new Map();
    this.resets = 0;
    this.epoch = 0;
    this.carried = new Set(); // cards from before the left edge that events here are about
    this.isEdgeOpen = false; // records before the first one may say what this log does not
    this.chainProfile = null;
  }

  /** After an unsound record: what it held may have changed everything before it. */
  lose() {
    this.epoch += 1;
    this.chainProfile = UNKNOWN;
  }

  /** The card, made where it was never seen; such a one counts as not issued. */
  card(hash) {
    let card = this.cards.get(hash);
    if (card === undefined) {
      card = {
        hash,
        isIssued: false,
        issuedSeq: null,
        isForgotten: false,
        isTouched: false,
        isJudged: false,
        epoch: this.epoch,
        step: null,
        notAfter: null,
        grantTtl: null,
        issueResets: 0,
        lastSeq: null,
        decision: null,
        decidedAt: null,
        decidedResets: 0,
        isWithdrawn: false,
        isSuperseded: false,
        isDispatched: false,
        isException: false,
        showsRebuilt: false,
        outcome: null,
        envelope: null,
        presented: null,
        chainProfile: UNKNOWN,
        issuedBody: null,
      };
      this.cards.set(hash, card);
    }
    return card;
  }

  step(task) {
    let step = this.steps.get(task);
    if (step === undefined) {
      step = { latest: null, attempt: null, epoch: this.epoch, isEdge: this.isEdgeOpen };
      this.steps.set(task, step);
    }
    return step;
  }

  issued(hash) {
    const card = this.cards.get(hash);
    return card !== undefined && card.isIssued ? card : null;
  }

  isLate(card, at) {
    return at >= card.notAfter * 1000 || this.resets > card.issueResets;
  }

  isLapsed(card, at) {
    if (card.decision !== "approve") return false;
    if (this.resets > card.decidedResets) return true;
    return card.grantTtl !== null && at >= card.decidedAt + card.grantTtl * 1000;
  }

  isLatest(card) {
    return this.steps.get(card.step)?.latest === card.hash;
  }

  /** Whether the card waits for a decision, expired or not (spec §6.1). */
  isOpen(card) {
    return card.decision === null && !card.isWithdrawn && !card.isSuperseded;
  }

  /** The last dispatched card of a step as {card_hash, outcome}, or null. */
  attemptOf(task) {
    const hash = this.steps.get(task)?.attempt ?? null;
    return hash === null ? null : { hash, outcome: this.cards.get(hash).outcome ?? "unknown" };
  }

  /** Whether a card is still an undispatched grant or open, so that a newer card ends it. */
  canBeSuperseded(card) {
    return (
      this.isOpen(card) || (card.decision === "approve" && !card.isDispatched && !card.isWithdrawn)
    );
  }

  /** Whether a card is ended at a time (spec §15.1). */
  isEnded(card, at) {
    if (card.isDispatched) return card.outcome !== null && card.outcome !== "unknown";
    if (card.isWithdrawn || card.isSuperseded || card.decision === "reject") return true;
    return card.decision === "approve" ? this.isLapsed(card, at) : this.isLate(card, at);
  }

  /** Cards issued below `before` are forgotten, and counts of refusals that ended there (§15.2). */
  forget(before) {
    for (const card of this.cards.values()) {
      if (card.isIssued && card.issuedSeq < before) {
        Object.assign(card, { isIssued: false, isForgotten: true });
      }
    }
    for (const step of this.steps.values()) {
      if (!this.issued(step.latest)) step.latest = null;
      if (!this.issued(step.attempt)) step.attempt = null;
    }
    for (const [key, count] of this.counts) if (count.seq < before) this.counts.delete(key);
  }

  /** The record that names the left edge: what stands before it counts as never issued. */
  closeEdge() {
    this.isEdgeOpen = false;
    this.carried.clear();
    for (const step of this.steps.values()) step.isEdge = false;
  }

  /** Takes a sound record in as it stands (spec §10.3, rule 8). */
  fold(record) {
    if (record.card !== null) this.foldCard(record);
    else if (record.kind === "clock_reset") this.resets += 1;
    else if (record.kind === "pruned") this.forget(record.body.get("before"));
    else if (record.kind === "opened" || record.kind === "configured") {
      if (record.body.has("profile")) this.chainProfile = record.bound.get("profile");
    }
  }

  foldCard(record) {
    if (record.kind === "refused" && record.body.get("gate") === "issue") return;
    const card = this.card(record.card);
    if (record.kind === "issued") this.foldIssued(card, record);
    else if (record.kind === "resolved") {
      card.decision = record.body.get("decision");
      card.decidedAt = record.at;
      card.decidedResets = this.resets;
    } else if (record.kind === "withdrawn") card.isWithdrawn = true;
    else if (record.kind === "dispatched") {
      card.isDispatched = true;
      card.isException = record.body.has("exceptions");
      card.showsRebuilt = record.rebuilt !== null;
      if (card.step !== null) this.step(card.step).attempt = card.hash;
    } else if (record.kind === "settled") card.outcome = record.body.get("outcome");
    if (record.kind !== "refused") card.lastSeq = record.seq;
  }

  foldIssued(card, record) {
    const { body } = record;
    const supersedes = record.supersedes === null ? undefined : this.issued(record.supersedes);
    if (supersedes && this.canBeSuperseded(supersedes)) supersedes.isSuperseded = true;
    Object.assign(card, {
      isIssued: true,
      issuedSeq: record.seq,
      isForgotten: false,
      epoch: this.epoch,
      step: record.task,
      notAfter: body.get("not_after"),
      grantTtl: body.get("grant_ttl") ?? null,
      issueResets: this.resets,
      chainProfile: this.chainProfile,
      presented: record.bound.get("presented") ?? null,
    });
    this.step(card.step).latest = card.hash;
  }
}
