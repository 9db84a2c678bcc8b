/* What a log holds (spec §10.4). */

export class Tally {
  constructor() {
    Object.assign(this, {
      records: 0,
      sound: 0,
      envelopes: 0,
      envelopesTotal: 0,
      decisions: 0,
      decisionsTotal: 0,
      contained: 0,
      badDispatches: 0,
      asserted: 0,
      profiles: 0,
      bases: 0,
      manifests: 0,
      governed: 0,
      witnesses: 0,
      firstSeq: null,
      lastSeq: null,
      startAt: null,
      endAt: null,
      absentOpenings: false,
      lostOpenings: false,
    });
    this.kinds = new Map();
    this.exceptions = new Map();
  }

  /**
   * Counts a record; `isGood` says that no check failed on it, and that its card is judged.
   * `isWrong`: a check failed, and the record is sound: an unsound one says nothing of what ran.
   */
  take(record, { isWrong, isGood }) {
    this.records += 1;
    if (record.seq !== null) {
      this.firstSeq ??= record.seq;
      this.lastSeq = Math.max(record.seq, this.lastSeq ?? 0);
    }
    if (record.kind === undefined) return;
    this.startAt ??= record.at;
    this.endAt = record.at;
    this.kinds.set(record.kind, (this.kinds.get(record.kind) ?? 0) + 1);
    const envelope = record.openingDigests.get("envelope");
    if (envelope !== undefined) {
      this.envelopesTotal += 1;
      if (envelope === record.card) this.envelopes += 1;
    }
    if (record.kind === "resolved") {
      this.decisionsTotal += 1;
      if (isGood) this.decisions += 1;
    }
    if (record.kind === "dispatched" && isWrong) this.badDispatches += 1;
  }

  /** Counts what only sound records say. */
  takeSound(record, isAsserted) {
    this.sound += 1;
    if (record.kind === "refused") {
      if (record.body.get("gate") === "resolve") this.contained += 1;
      if (isAsserted) this.asserted += 1;
    }
    if (record.kind === "dispatched") {
      for (const name of new Set(record.body.get("exceptions") ?? [])) {
        this.exceptions.set(name, (this.exceptions.get(name) ?? 0) + 1);
      }
    }
    const hasProfile = record.card === null && record.body.has("profile");
    if (hasProfile) this.profiles += 1;
    if (record.bound.size > record.openings.size) this.absentOpenings = true;
  }

  /** Counts the evidence of a card, where its envelope is shown first. */
  takeEvidence(envelope) {
    const hasBasis = envelope.has("approval_basis");
    const hasManifest = envelope.has("review_manifest");
    if (hasBasis) this.bases += 1;
    if (hasManifest) this.manifests += 1;
    if (hasBasis || hasManifest) this.witnesses += 1;
    if (hasBasis) this.governed += 1;
  }
}
