/* Policy evidence of one envelope (spec §8): pure functions that give a fault in words, or null. */

import { CLASSES } from "./envelope.mjs";
import { canonicalText } from "./jcs.mjs";
import { valueAt } from "./pointer.mjs";

/** The class that the envelope claims, as its place in CLASSES. */
export function claimedClass(envelope) {
  const basis = envelope.get("approval_basis");
  return basis === undefined ? 0 : CLASSES.indexOf(basis.get("evidence_class"));
}

/** The highest class that the envelope witnesses (spec §8.4). */
export function derivedClass(envelope) {
  const basis = envelope.get("approval_basis");
  if (basis === undefined) return 0;
  if (basis.has("policy_sha256")) return 3;
  const rules = basis.get("rules").length;
  if (rules === 0) return 0;
  const selection = basis.get("selection");
  const isSelection = selection !== undefined && selection.get("count") >= rules;
  return isSelection && basis.has("combining") && basis.has("default") ? 2 : 1;
}

export function claimFault(envelope) {
  const [claimed, derived] = [claimedClass(envelope), derivedClass(envelope)];
  if (claimed <= derived) return null;
  return { expected: `at most ${CLASSES[derived]}`, found: CLASSES[claimed] };
}

/** What an envelope lacks of minimum, required members and grant_ttl (spec §8.5). */
export function floorFault(envelope, rules) {
  const claimed = claimedClass(envelope);
  if (claimed < rules.minimum) {
    return { expected: `evidence class ${CLASSES[rules.minimum]}`, found: CLASSES[claimed] };
  }
  const absent = rules.required.find((pointer) => valueAt(envelope, pointer) === null);
  if (absent !== undefined) return { expected: `a member at ${absent}`, found: "none" };
  if (!rules.needsLimit || envelope.has("grant_ttl")) return null;
  return { expected: "a grant_ttl", found: "none" };
}

/** Where the arguments carry a value that the operator fixes (spec §8.5). */
export function fixedFault(envelope, rules) {
  const action = envelope.get("action");
  const supplied = rules.fixed.find(
    (fixed) =>
      fixed.get("tool_name") === action.get("tool_name") &&
      valueAt(action.get("arguments"), fixed.get("path")) !== null,
  );
  if (supplied === undefined) return null;
  return { expected: `no value at ${supplied.get("path")} of the arguments`, found: "one" };
}

/** What a manifest says that the envelope does not, or leaves out (spec §8.2, §8.5). */
export function manifestFault(envelope, critical) {
  const manifest = envelope.get("review_manifest");
  if (manifest === undefined) return null;
  const fields = manifest.get("fields");
  const ids = new Set(fields.map((field) => field.get("id")));
  if (ids.size !== fields.length) return { expected: "different ids", found: "an id twice" };
  const wrong = fields.find((field) => !says(envelope, field));
  if (wrong !== undefined) {
    return { expected: `what the envelope has at ${wrong.get("path")}`, found: "something else" };
  }
  const paths = fields.map((field) => field.get("path"));
  const cut = critical.find((path) => valueAt(envelope, path) !== null && !paths.includes(path));
  return cut === undefined ? null : { expected: `a field for ${cut}`, found: "none" };
}

function says(envelope, field) {
  const path = field.get("path");
  if (path === "/review_manifest" || path.startsWith("/review_manifest/")) return false;
  const there = valueAt(envelope, path);
  return there !== null && canonicalText(there.value) === canonicalText(field.get("value"));
}

/** Whether the subject of the envelope is the approver. */
export function isOwn(envelope, approverId) {
  return envelope.get("subject")?.get("id") === approverId;
}
