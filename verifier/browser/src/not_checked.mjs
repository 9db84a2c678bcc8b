/* Why a check was not made, and what no verifier can see from a log (spec §10.1, §10.4). */

const ENDING = ["resolved", "withdrawn", "dispatched"];
const OF_A_CARD = [...ENDING, "settled", "refused"];
const KINDS = {
  rekey: ["rekeyed"], recovered: ["recovered"], redacted: ["redacted"], pruned: ["pruned"],
  issued_body: ["issued", "refused"], issued_once: ["issued"], supersedes: ["issued"],
  prior_attempt: ["issued"], not_issued: OF_A_CARD, of: OF_A_CARD,
  echo: ["resolved", "withdrawn"], approver: ["resolved", "withdrawn"], decided_once: ["resolved"],
  in_time: ENDING, withdrawn: ENDING, latest: ENDING, withdraw_state: ["withdrawn"],
  approved: ["dispatched"], dispatched_once: ["dispatched"], rebuilt: ["dispatched"],
  settled: ["settled"], refusal_reason: ["refused"], refusal_count: ["refused"],
};
const OF_ENVELOPES = ["card_hash", "envelope_canonical", "envelope_schema", "args_digest", "effect_key"];
const OF_WHOLE = [
  "opening_missing", "empty", "unreadable", "left_edge", "expected_count", "expected_head", "fork",
];
const BEYOND = [
  "events that were never appended: a log shows what it holds, not what happened",
  "who made the log: whoever holds a key can make HMACs, so they prove nothing to others",
  "who decided: an approver id is what the writer was told",
  "that an echo came from a screen, or that facts came from live systems",
];

/** Why a check that found nothing did not pass either, or an empty text where it passed. */
export function whyNotChecked(check, log, facts) {
  const { tally } = log;
  const name = check.id;
  if (name === "empty" || name === "unreadable") return "";
  if (tally.records === 0) return "no record";
  if (tally.sound === 0 && !OF_WHOLE.includes(name)) return "no sound record";
  if (name === "segment_name") return facts.isDirectory ? "" : "not a directory";
  if (name === "tag") return log.missingKids.size > 0 ? "a key is missing" : "";
  if (name === "pin") return log.pins.length > 0 ? "" : "no key file pins a record";
  if (OF_ENVELOPES.includes(name)) return tally.envelopesTotal > 0 ? "" : "no envelope";
  if (name === "signature") return "none in the log";
  if (check.group === "policy evidence" || name === "manifest") return whyNoPolicy(name, log);
  if (name in KINDS) return KINDS[name].some((kind) => tally.kinds.has(kind)) ? "" : "no such event";
  if (name === "fork") return facts.hasOther ? "" : "no other input of this chain";
  return whyNotExpected(name, facts);
}

function whyNoPolicy(name, { tally, floor, missingProfiles, state }) {
  if (name === "profile_form") return tally.profiles > 0 ? "" : "no profile in the log";
  if (name === "claim") return tally.bases > 0 ? "" : "no approval basis";
  if (name === "manifest") return tally.manifests > 0 ? "" : "no review manifest";
  if (name === "auditor_floor") return floor > 0 ? "" : "give --floor";
  if (missingProfiles.size > 0 && name !== "profile") return "a profile is missing";
  if (state.epoch > 0) {
    return "a missing or unsound record may have changed the profile in force";
  }
  return tally.governed > 0 ? "" : "no card under a profile";
}

function whyNotExpected(name, { expectHead, expectCount, isUnreadable }) {
  if (name === "expected_count" && expectCount === null) return "give --expect-count";
  if (name === "expected_head" && expectHead === null) return "give --expect-head";
  const isEnd = name === "expected_count" || name === "expected_head";
  return isEnd && isUnreadable ? "the log could not be read to its end" : "";
}

/** What was not proven, in sentences. */
export function notProven(log) {
  const { tally } = log;
  const said = [];
  if (tally.lostOpenings) {
    said.push("openings that were absent before an unsound record: a redacted event may be lost");
  }
  if (tally.absentOpenings) said.push("the checks of envelopes and openings that are absent");
  if (log.missingKids.size > 0) said.push("the HMACs of records whose key is missing");
  if (log.state.epoch > 0 && tally.records > 0) {
    said.push("what a missing or unsound record could explain (spec §10.3)");
  }
  if (tally.asserted > 0) {
    said.push(`the reasons of ${tally.asserted} refusals that only the writer could see`);
  }
  if (tally.witnesses > 0) {
    said.push(
      "what approval bases and manifests assert: verdicts, engines, labels, " +
        "what their digests stand for, and that a selector is complete",
    );
  }
  for (const kind of ["anchored", "pruned"]) {
    const number = tally.kinds.get(kind);
    if (number !== undefined) said.push(`what the ${number} ${kind} events say`);
  }
  return [...said, ...BEYOND];
}
