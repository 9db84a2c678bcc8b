/* The three properties of an approval, kept apart (spec §8). */

import { CLASSES } from "./envelope.mjs";
import { claimedClass } from "./policy.mjs";
import { CHECKS } from "./table.mjs";

const PROVENANCE = ["claim", "floor", "fixed_parameter", "self_approval", "assurance"];
const PRESENTATION = ["manifest"];
const EXECUTION = CHECKS.map((check) => check.id).filter(
  (id) => !PROVENANCE.includes(id) && !PRESENTATION.includes(id),
);

/** {execution, provenance, presentation}, each {outcome, detail}, of an approved card, or null. */
export function propertiesOf(log, card, history) {
  if (!card?.isIssued || card.decision !== "approve") return null;
  const doubt = doubtOf(log, card);
  const general = doubt === null ? null : notChecked(doubt);
  const { blamed } = history;
  const envelope =
    card.envelope?.fault === null && !card.envelope.isOtherFormat ? card.envelope.value : null;
  return {
    execution: failed(blamed, EXECUTION) ?? general ?? execution(card, envelope),
    provenance: failed(blamed, PROVENANCE) ?? general ?? provenance(log, card, envelope),
    presentation: failed(blamed, PRESENTATION) ?? general ?? presentation(envelope),
  };
}

/** Why nothing sure can be said of a card of a log, or null where it can. */
export function doubtOf(log, card) {
  if (log.absentKids.size > 0) return "a key is missing";
  return card.epoch === log.state.epoch ? null : "a missing or unsound record stands after it";
}

function failed(blamed, ids) {
  const found = blamed.filter((check) => ids.includes(check));
  return found.length === 0 ? null : { outcome: "FAIL", detail: found.join(", ") };
}

function execution(card, envelope) {
  if (!card.isDispatched) return notChecked("not dispatched");
  if (!card.isException) return passed("what was rebuilt at dispatch is what was approved");
  if (envelope === null || !card.showsRebuilt) {
    return notChecked("an exception, and an envelope is absent");
  }
  return passed("what was rebuilt differs as the exception basis_drift allows");
}

function provenance(log, card, envelope) {
  if (envelope === null) return notChecked("the envelope is absent");
  if (!envelope.has("approval_basis")) return notChecked("no approval basis");
  const rules = log.rulesOf(card);
  if (rules.missing.length > 0) {
    return notChecked(`the profile ${rules.missing.join(", ")} is not at hand`);
  }
  if (!rules.isKnown) return notChecked("the profile in force is not known");
  const claimed = claimedClass(envelope);
  if (claimed < log.floor) {
    return notChecked(`the floor of the auditor is above ${CLASSES[claimed]}`);
  }
  return passed(`evidence class ${CLASSES[claimed]}, claimed and derived`);
}

function presentation(envelope) {
  if (envelope === null) return notChecked("the envelope is absent");
  const manifest = envelope.get("review_manifest");
  if (manifest === undefined) return notChecked("no review manifest");
  return passed(`${manifest.get("fields").length} fields say what the envelope says`);
}

function passed(detail) {
  return { outcome: "PASS", detail };
}

function notChecked(detail) {
  return { outcome: "NOT CHECKED", detail };
}
