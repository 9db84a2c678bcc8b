/* The reasons of refusals (spec §6.4): closed, in order, per gate. */

export const REASONS = {
  issue: [
    "profile_unknown",
    "claimed_above_derived",
    "evidence_below_floor",
    "manifest_mismatch",
    "fixed_parameter_supplied",
    "open_exists",
    "supersedes_wrong",
    "attempt_unnamed",
  ],
  resolve: [
    "hash_mismatch",
    "missing_approver",
    "already_resolved",
    "expired",
    "withdrawn",
    "not_latest",
    "self_approval",
    "approver_unverified",
  ],
  withdraw: [
    "hash_mismatch",
    "missing_approver",
    "already_dispatched",
    "already_resolved",
    "withdrawn",
    "not_latest",
    "expired",
  ],
  dispatch: [
    "unknown_card",
    "not_approved",
    "already_dispatched",
    "withdrawn",
    "not_latest",
    "grant_expired",
    "mismatch",
    "policy_denied",
    "approver_not_authorised",
    "evidence_below_floor",
  ],
  settle: ["unknown_card", "not_dispatched", "already_settled"],
};

/** Nothing in a chain shows these: they are counted, never passed. */
export const ASSERTED = [
  "profile_unknown",
  "approver_unverified",
  "policy_denied",
  "approver_not_authorised",
];

/** The count that is recorded after `count`: 1 to 8, then the powers of two. */
export function countAfter(count) {
  return count < 8 ? count + 1 : count * 2;
}
