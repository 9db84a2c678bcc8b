/* Rebuilt envelopes that differ from their card (spec §8.6). */

import { differingMembers } from "./envelope.mjs";
import { claimFault, floorFault } from "./policy.mjs";

/** Whether an examined envelope keeps every rule of spec §2. */
export function isWellFormed(examined) {
  return examined.fault === null && !examined.isOtherFormat;
}

/** Why two envelopes are no drift of the basis that the named exception allows, or null. */
export function driftFault(card, rebuilt, rules) {
  const other = differingMembers(card, rebuilt).find((member) => member !== "approval_basis");
  if (other !== undefined)
    return { expected: "a difference in the basis alone", found: `/${other}` };
  const [was, is] = [card.get("approval_basis"), rebuilt.get("approval_basis")];
  if (was === undefined || is === undefined)
    return { expected: "a basis before and now", found: "none" };
  if (was.get("profile") !== is.get("profile")) {
    return { expected: `profile ${was.get("profile")}`, found: is.get("profile") };
  }
  if (is.get("verdict") !== "allow") return { expected: "verdict allow", found: is.get("verdict") };
  return claimFault(rebuilt) ?? floorFault(rebuilt, rules);
}
