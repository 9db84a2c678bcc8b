/* The checks of spec §10.1 in their order, and what spec §10.2 and §10.3 say of each. */

/** Each check: id, group, section, claim; `cannot` marks those that only keep from verifying. */
export const CHECKS = [
  row("segment_name", "framing", "§7.1", "every name in segments/ is a segment's, and the number is the seq of its first record"),
  row("framing", "framing", "§3.1", "the input is whole records and nothing else"),
  row("torn_tail", "framing", "§7.4", "a file does not end inside a record"),
  row("limits", "framing", "§3.3", "no record, bare record or opening is over its limit"),
  row("deterministic", "canonical form", "§3.1", "every item is in its one deterministic form"),
  row("shape", "canonical form", "§3.2–3.5, §6.4", "payload, body and openings have exactly the members of their kind"),
  row("version", "canonical form", "§3.2, §2.3", "the version is known", true),
  row("chain", "sequence", "§3.2", "every record names the chain of the first"),
  row("sequence", "sequence", "§3.2", "seq runs 0, 1, 2, …"),
  row("link", "link", "§3.3", "prev is the chain digest of the record before"),
  row("kid", "key lifecycle", "§4.2", "every record is under the kid in force"),
  row("key_missing", "tag", "§4.2", "a secret for the kid is at hand", true),
  row("tag", "tag", "§3.1", "the tag holds under the secret that the kid names"),
  row("rekey", "key lifecycle", "§4.2", "a new kid was never in force, and its proof holds"),
  row("pin", "key lifecycle", "§4.3", "the record that a key file pins is the one in the log"),
  row("time", "time", "§5", "at never goes back but in a clock_reset, whose was is the at before"),
  row("card_hash", "card hash", "§2", "the envelope hashes to card"),
  row("opening_digest", "openings accounted", "§3.4", "every other opening hashes to the digest that binds it"),
  row("envelope_canonical", "envelope schema", "§2.1, §2.2", "the envelope is strict JSON in canonical form"),
  row("envelope_schema", "envelope schema", "§2.3", "the envelope has exactly the members of the schema"),
  row("args_digest", "envelope schema", "§2.5", "args_digest follows from the arguments"),
  row("effect_key", "effect key", "§2.5", "effect_key follows from task, tool, capability and arguments"),
  row("issued_body", "envelope schema", "§3.5, §5", "the body of issued, and of a refusal of the gate issue, repeats the envelope; issued_at is the second of at"),
  row("opened", "lifecycle", "§6.3", "opened stands at seq 0 and only there"),
  row("profile_form", "policy evidence", "§8.5", "a profile is canonical and has exactly the members of its table"),
  row("claim", "policy evidence", "§8.4", "the claimed evidence class is not above the derived one"),
  row("floor", "policy evidence", "§8.5", "an issued card has the evidence, members and grant_ttl that its profiles require"),
  row("manifest", "manifest", "§8.2, §8.5", "the manifest says what the envelope says, covers what is critical, and names the view that was presented"),
  row("fixed_parameter", "policy evidence", "§8.5", "the arguments carry no value for a fixed parameter"),
  row("issued_once", "lifecycle", "§6.3", "a card is issued once"),
  row("supersedes", "lifecycle", "§6.4", "an issued card names the latest card of its step, and no other"),
  row("prior_attempt", "lifecycle", "§6.4", "an issued card names the last dispatched card of its step and its outcome"),
  row("not_issued", "lifecycle", "§6.3", "an event of a card follows its issued record"),
  row("of", "lifecycle", "§3.5", "of is the last event of the card"),
  row("echo", "lifecycle", "§6.3", "a decision or withdrawal echoes its card, and was asked about it"),
  row("approver", "lifecycle", "§6.3", "who decides or withdraws is named"),
  row("decided_once", "lifecycle", "§6.3", "a card is decided once"),
  row("in_time", "lifecycle", "§5, §6.3", "a decision, withdrawal or dispatch falls in its window"),
  row("withdrawn", "lifecycle", "§6.3", "nothing is decided, withdrawn or dispatched after a withdrawal"),
  row("latest", "lifecycle", "§6.3", "only the latest card of a step is decided, withdrawn or dispatched"),
  row("self_approval", "policy evidence", "§8.5", "nobody decides about a card of their own where the profiles deny it"),
  row("assurance", "policy evidence", "§8.5", "an approver is established as firmly as the profiles require"),
  row("withdraw_state", "lifecycle", "§6.3", "what is withdrawn is open or an undispatched grant"),
  row("approved", "lifecycle", "§6.3", "what is dispatched was approved"),
  row("dispatched_once", "lifecycle", "§6.3", "a card is dispatched once"),
  row("rebuilt", "lifecycle", "§6.3, §8.6", "what was rebuilt at dispatch is what was approved, or differs as the named exception allows"),
  row("settled", "lifecycle", "§6.3", "an outcome follows a dispatch, once; unknown may be followed by one real outcome"),
  row("refusal_reason", "refusals true", "§6.4", "the reason of a refusal holds, and no earlier one did"),
  row("refusal_count", "refusals true", "§6.4", "the counts of a refusal run 1 to 8, 16, 32, …"),
  row("recovered", "framing", "§6.3", "recovered names the record before it"),
  row("redacted", "openings accounted", "§6.3", "redacted names an earlier record by its digest"),
  row("opening_missing", "openings accounted", "§3.4", "every absent opening is named by a redacted event"),
  row("profile", "policy evidence", "§8.5", "every profile that a record needs is at hand", true),
  row("auditor_floor", "policy evidence", "§8.7", "every approved card reaches the floor that the auditor set", true),
  row("signature", "policy evidence", "§8.3", "signed decisions are checked", true),
  row("empty", "completeness", "§10.2", "there is at least one record", true),
  row("unreadable", "completeness", "§10.2", "the input can be read", true),
  row("left_edge", "completeness", "§10.2", "the log starts at seq 0", true),
  row("expected_count", "completeness", "§10.2", "the log holds at least the expected number of records"),
  row("expected_head", "completeness", "§10.2", "a record has the expected digest, at the expected place"),
  row("fork", "completeness", "§10.2", "two inputs of one chain never differ at a seq"),
];

/** A finding of these groups makes its record unsound (spec §10.3, rule 2). */
export const UNSOUND_GROUPS = [
  "framing", "canonical form", "sequence", "link", "tag", "key lifecycle", "time", "card hash",
  "envelope schema", "effect key",
];

/** The place of each check in the table, by its id. */
export const ORDER = new Map(CHECKS.map((check, index) => [check.id, index]));

function row(id, group, section, claim, cannot = false) {
  return { id, group, section, claim, cannot };
}
