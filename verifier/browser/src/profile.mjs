/* Profiles (spec §8.5): the document, and the rules of several of them together. */

import { sameBytes } from "./bytes.mjs";
import { CLASSES } from "./envelope.mjs";
import { canonical } from "./jcs.mjs";
import { JsonError, parsedJson } from "./json.mjs";
import { list, members, name, oneOf, pointer } from "./schema.mjs";

export const PROFILE_FORMAT = "cardchain-profile/1";
const MAX_PROFILE = 65536;
const ASSURANCES = ["label", "authenticated", "signed"];
const pointers = list(pointer, 0, 64, (one) => one);
const PROFILE = members({
  format: oneOf(PROFILE_FORMAT),
  "id?": name,
  "version?": name,
  minimum: oneOf(...CLASSES),
  required: pointers,
  grant_ttl: oneOf("required", "optional"),
  self_approval: oneOf("allow", "deny"),
  assurance: oneOf("label", "authenticated"),
  fixed_parameters: list(members({ tool_name: name, path: pointer }), 0, 256),
  critical: pointers,
  basis_drift: oneOf("review", "allow_if_allowed"),
});

/** The profile of a document: {rules}, or {fault} in words. */
export function profileOf(bytes) {
  if (bytes.length > MAX_PROFILE) return { fault: `${bytes.length} bytes` };
  let document;
  try {
    document = parsedJson(bytes);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return { fault: `${error.pointer || "the document"}: ${error.message}` };
  }
  const wrong = PROFILE(document, "");
  if (wrong !== null) return { fault: `expected ${wrong.pointer || "/"}: ${wrong.expected}` };
  if (!sameBytes(canonical(document), bytes)) return { fault: "it is not in canonical form" };
  return { rules: rulesOf(document) };
}

function rulesOf(document) {
  return {
    minimum: CLASSES.indexOf(document.get("minimum")),
    required: document.get("required"),
    needsLimit: document.get("grant_ttl") === "required",
    deniesSelf: document.get("self_approval") === "deny",
    assurance: ASSURANCES.indexOf(document.get("assurance")),
    fixed: document.get("fixed_parameters"),
    critical: document.get("critical"),
    mayDrift: document.get("basis_drift") === "allow_if_allowed",
  };
}

/** Both hold, and of two rules the stricter; without any there are no rules. */
export function combined(several) {
  return {
    minimum: Math.max(0, ...several.map((rules) => rules.minimum)),
    required: several.flatMap((rules) => rules.required),
    needsLimit: several.some((rules) => rules.needsLimit),
    deniesSelf: several.some((rules) => rules.deniesSelf),
    assurance: Math.max(0, ...several.map((rules) => rules.assurance)),
    fixed: several.flatMap((rules) => rules.fixed),
    critical: several.flatMap((rules) => rules.critical),
    mayDrift: several.length > 0 && several.every((rules) => rules.mayDrift),
  };
}

/** Whether an approver's assurance is at least that of the rules. */
export function isAssured(assurance, rules) {
  return ASSURANCES.indexOf(assurance) >= rules.assurance;
}
