/* What a finding means, for people: the likely cause, and what to do next (spec §10.3). */

const AGAIN = "Take the export again, or compare it with another copy of the log.";
const CARD = "Look at the events of this card, below, and at those around it.";
const AROUND = "Look at the events before and after it in the ledger.";

const WORDS = {
  segment_name: [
    "A file was renamed or put there, or begins with another record.",
    "Compare the names in segments/ with those of another copy.",
  ],
  framing: ["Bytes were changed, inserted or lost, so that no record can be read there.", AGAIN],
  torn_tail: ["The file was cut, by an interrupted copy or by someone.", AGAIN],
  limits: ["A length was changed, or the record was not made by this software.", AGAIN],
  deterministic: ["The record was encoded again by other software, or changed.", AGAIN],
  shape: [
    "A member was added, removed or changed, or an opening was put beside the record.",
    AGAIN,
  ],
  version: [
    "Newer software wrote the record, whose tag holds, or the excerpt.",
    "Verify with the software that wrote the log.",
  ],
  chain: ["A record of another ledger was put in.", AGAIN],
  sequence: ["Records were removed, repeated or moved.", AGAIN],
  link: ["The record before was replaced, or this one comes from another history.", AGAIN],
  kid: [
    "The key id was changed, or someone wrote under a key that is not in force.",
    "List the keys of the ledger, and ask who holds them.",
  ],
  key_missing: [
    "No key file with this kid was given. This accuses nobody.",
    "Add the key file of this kid and verify again.",
  ],
  tag: [
    "The record was changed after it was written, or written by someone without the key. " +
      "A wrong key file cannot be the cause, because the kid follows from the secret.",
    AGAIN,
  ],
  rekey: [
    "An old key was brought back, or who wrote the record did not hold the new key.",
    "List the keys of the ledger, and ask who holds them.",
  ],
  pin: [
    "The log was rewritten by someone with the key, or the key file is of another history.",
    "Compare the pin in the key file with a copy of the log kept elsewhere.",
  ],
  time: ["The record was not written by this ledger: its clock never runs backwards.", AROUND],
  excerpt: ["The excerpt was changed, or not made by this software.", "Ask for the excerpt again."],
  checkpoint: [
    "The file is no checkpoint, or one of another log.",
    "Compare it with the checkpoint that you kept, or ask for it again.",
  ],
  checkpoint_key: [
    "No given vkey signed it, or this browser cannot check Ed25519. This accuses nobody.",
    "Add the vkey of the signer, from a source that you trust.",
  ],
  checkpoint_signature: [
    "The checkpoint was changed after it was signed, or signed by someone else.",
    "Compare it with the checkpoint that you kept, and ask the signer.",
  ],
  checkpoint_size: [
    "The end of the log was cut off, or the log was rolled back.",
    "Take the export again, and find out who could change the log.",
  ],
  checkpoint_root: [
    "Records were made again after they were signed, by someone with the secret.",
    "Compare the log with another copy, and find out who could change it.",
  ],
  inclusion: [
    "The record was changed, or is not the one that was signed.",
    "Ask for the excerpt again.",
  ],
  consistency: [
    "The log was made again between two checkpoints, or the proof is of another log.",
    "Keep both checkpoints, and ask the signer for a proof between them.",
  ],
  card_hash: [
    "The envelope was changed after it was hashed.",
    "Compare the envelope with another copy; SHA-256 of its bytes is the card hash.",
  ],
  opening_digest: ["What was kept beside the record was changed.", AGAIN],
  envelope_canonical: ["The card was made by software that does not keep to the format.", CARD],
  envelope_schema: ["The card was made by software that does not keep to the format.", CARD],
  args_digest: ["The card was made with the digest of other arguments.", CARD],
  effect_key: ["The card was made with the key of another effect.", CARD],
  issued_body: ["The record says something else about the card than the card itself.", CARD],
  opened: ["The log was not begun by this software, or begins a second time.", AROUND],
  profile_form: ["The ledger was configured with a document that is no profile.", AROUND],
  claim: ["The card claims more evidence than it carries.", CARD],
  floor: ["The card was issued below what its profiles ask for.", CARD],
  manifest: ["The approver was shown something else than the card, or not all of it.", CARD],
  fixed_parameter: ["The request carried a value that the operator had fixed.", CARD],
  issued_once: ["An old card was put before an approver again.", CARD],
  supersedes: ["A card was issued beside another one of its step.", CARD],
  prior_attempt: ["The approver was not told what happened to the attempt before.", CARD],
  not_issued: ["Something was decided about a card that nobody was shown.", CARD],
  of: ["The writer did not know the last event of the card.", CARD],
  echo: ["Another card was on the screen than the one decided about.", CARD],
  approver: ["A decision was taken in nobody's name.", CARD],
  decided_once: ["A decision was replayed or replaced.", CARD],
  in_time: ["A card was decided, or a grant used, after its time.", CARD],
  withdrawn: ["A withdrawn card was used.", CARD],
  latest: ["A card was used that another one had replaced.", CARD],
  self_approval: ["Someone decided about a card of their own.", CARD],
  assurance: ["The decision was taken without knowing for sure by whom.", CARD],
  withdraw_state: ["A card was withdrawn that was over.", CARD],
  approved: ["Something ran without an approval.", CARD],
  dispatched_once: ["One approval was used twice.", CARD],
  rebuilt: ["Something else was about to run than what was approved.", CARD],
  settled: ["An outcome was recorded for something that never ran, or twice.", CARD],
  refusal_reason: ["A request was refused for a reason that the log contradicts.", AROUND],
  refusal_count: ["Refusals were left out or counted wrongly.", AROUND],
  recovered: ["Records were put in or lost around a recovery.", AROUND],
  redacted: ["The redaction is of another record than it says.", AROUND],
  pruned: ["Records were given up that are still needed, or others than it says.", AROUND],
  opening_missing: [
    "An opening was removed without a record of it.",
    "Take it from another copy of the log, or ask who holds the ledger.",
  ],
  profile: [
    "No opening and no file has the bytes of the profile. This accuses nobody.",
    "Add the profile file; SHA-256 of its bytes is the digest asked for.",
  ],
  auditor_floor: ["The approval rests on less evidence than you ask for.", CARD],
  signature: [
    "This version does not check the signatures of approvers.",
    "Verify with software that does.",
  ],
  empty: [
    "The file or folder holds no log; or it ends before what you kept, was rewritten up to there, " +
      "or is another log. Nothing was verified.",
    "Check that it is the right file, and compare it with an older copy.",
  ],
  unreadable: [
    "The file is missing, damaged, no log, or may not be read.",
    "Check the file, or take the export again.",
  ],
  left_edge: ["The beginning of the log was not given, or was removed.", "Give the whole log."],
  expected_count: [
    "The end of the log was cut off, or the log was rolled back.",
    "Take the export again, and find out who could change the log.",
  ],
  expected_head: [
    "The end of the log was cut off or replaced, or the digest is of another log.",
    "Take the export again, and find out who could change the log.",
  ],
  pinned_head: [
    "The log was cut, rolled back or made again since you looked last.",
    "Keep the pin file, compare with another copy, and find out who could change the log.",
  ],
  required: [
    "What you kept and gave does not vouch for this log as you ask.",
    "Give a pin file, a kept checkpoint or the vkey of the signer; or ask for less.",
  ],
  fork: [
    "The ledger was copied or restored, and both were written to.",
    "Compare the two logs from this seq on.",
  ],
};

/** Of a root that rests on a frontier, which nobody signed (spec §13.5). */
const OVER_A_FRONTIER = [
  "The frontier file at the left edge was changed, or the log was rewritten below the " +
    "checkpoint, or another history was signed.",
  "Hold the whole log against the checkpoint: the archive and the segments in one file.",
];

/** {cause, next} of a finding, in sentences. */
export function wordsOf({ check, isOverFrontier = false }) {
  const [cause, next] = isOverFrontier ? OVER_A_FRONTIER : WORDS[check];
  return { cause, next };
}
