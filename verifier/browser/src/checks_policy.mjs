/* The checks of policy evidence (spec §8), at the first record that shows an envelope. */

import { isReadable, unjudged } from "./checks_card.mjs";
import { CLASSES } from "./envelope.mjs";
import {
  claimFault,
  claimedClass,
  fixedFault,
  floorFault,
  isOwn,
  manifestFault,
} from "./policy.mjs";
import { isAssured } from "./profile.mjs";
import { needsProfiles } from "./checks_refusal.mjs";

const unless = (fault, expected, found) => (fault ? { expected, found } : null);

/** A check of the evidence of a card, made once, with the rules that it was issued under. */
function onEvidence(check) {
  return (log, record) => {
    const card = evidenceCard(log, record);
    return card === null
      ? undefined
      : check(record.envelope.value, log.rulesOf(card), card, record);
  };
}

/** The card whose evidence this record is the first to show, or null. */
export function evidenceCard(log, record) {
  if (record.card === null || !isReadable(record.envelope)) return null;
  if (record.kind === "refused" && record.body.get("gate") === "issue") return null;
  const card = log.cardOf(record);
  if (record.kind !== "issued" && !card.isIssued && log.state.isEdgeOpen) return null;
  return card.isJudged || card.isTouched ? null : card;
}

export const POLICY_CHECKS = {
  profile_form: (log, record) => {
    const bytes =
      record.kind === "opened" || record.kind === "configured"
        ? record.openings.get("profile")
        : undefined;
    if (bytes === undefined) return undefined;
    const { fault } = log.governance.profileFrom(record.bound.get("profile"), bytes);
    return unless(fault, "a profile in canonical form", fault);
  },
  claim: onEvidence((envelope) =>
    envelope.has("approval_basis") ? claimFault(envelope) : undefined,
  ),
  floor: onEvidence((envelope, rules) => (rules.any ? floorFault(envelope, rules) : undefined)),
  manifest: onEvidence((envelope, rules, card, record) => {
    const manifest = envelope.get("review_manifest");
    if (manifest === undefined) return undefined;
    const wrong = manifestFault(envelope, rules.critical);
    if (wrong !== null) return wrong;
    const presented = record.kind === "issued" ? record.bound.get("presented") : card.presented;
    const view = manifest.get("view_digest");
    if (view === undefined || !presented) return null;
    return unless(presented !== view, `the presented text ${view}`, presented);
  }),
  fixed_parameter: onEvidence((envelope, rules) =>
    rules.any ? fixedFault(envelope, rules) : undefined,
  ),
  self_approval: (log, record) => {
    const card = decidedCard(log, record);
    if (card === null) return undefined;
    if (!card.isIssued) return unjudged(log, record);
    if (!isReadable(card.envelope)) return undefined;
    const rules = log.rulesOf(card);
    if (!rules.any) return undefined;
    const isDenied = rules.deniesSelf && isOwn(card.envelope.value, approverOf(record).get("id"));
    return unless(isDenied, "an approver other than the subject", "the subject");
  },
  assurance: (log, record) => {
    const card = decidedCard(log, record);
    if (card === null) return undefined;
    if (!card.isIssued) return unjudged(log, record);
    const rules = log.rulesOf(card);
    if (!rules.any) return undefined;
    const assurance = approverOf(record).get("assurance");
    return unless(!isAssured(assurance, rules), "an approver of more assurance", assurance);
  },
  profile: (log, record) => {
    const card = evidenceCard(log, record) ?? decidedCard(log, record);
    const rules = card !== null ? log.rulesOf(card) : log.refusalRules(record);
    if (rules === null || (card === null && !needsProfiles(log, record))) return undefined;
    const missing = rules.missing.find((digest) => !log.missingProfiles.has(digest));
    if (missing === undefined) return rules.any && rules.isKnown ? null : undefined;
    log.missingProfiles.add(missing);
    return { expected: `the profile ${missing}`, found: "none" };
  },
  auditor_floor: (log, record) => {
    if (log.floor === 0 || record.kind !== "resolved") return undefined;
    if (record.body.get("decision") !== "approve") return undefined;
    const card = log.cardOf(record);
    const envelope = isReadable(record.envelope) ? record.envelope : card.envelope;
    if (!isReadable(envelope)) return { expected: CLASSES[log.floor], found: "no envelope" };
    const claimed = claimedClass(envelope.value);
    return unless(claimed < log.floor, `evidence class ${CLASSES[log.floor]}`, CLASSES[claimed]);
  },
  signature: (log, record) => {
    if (record.kind !== "resolved") return undefined;
    if (approverOf(record).get("assurance") !== "signed") return undefined;
    return { expected: "a version that checks signatures", found: "a signed decision" };
  },
};

function approverOf(record) {
  return record.body.get("approver");
}

/** The card that a resolved record decides, where no finding has touched it, or null. */
function decidedCard(log, record) {
  if (record.kind !== "resolved") return null;
  const card = log.cardOf(record);
  if (card.isTouched) return null;
  return isReadable(record.envelope) && card.envelope === null
    ? { ...card, envelope: record.envelope }
    : card;
}
