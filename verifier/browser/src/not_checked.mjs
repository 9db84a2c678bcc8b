/* Why a check was not made, and what no verifier can see from a log (spec §10.1, §10.4). */

const ENDING = ["resolved", "withdrawn", "dispatched"];
const OF_A_CARD = [...ENDING, "settled", "refused"];
const KINDS = {
  rekey: ["rekeyed"],
  recovered: ["recovered"],
  redacted: ["redacted"],
  pruned: ["pruned"],
  issued_body: ["issued", "refused"],
  issued_once: ["issued"],
  supersedes: ["issued"],
  prior_attempt: ["issued"],
  not_issued: OF_A_CARD,
  of: OF_A_CARD,
  echo: ["resolved", "withdrawn"],
  approver: ["resolved", "withdrawn"],
  decided_once: ["resolved"],
  in_time: ENDING,
  withdrawn: ENDING,
  latest: ENDING,
  withdraw_state: ["withdrawn"],
  approved: ["dispatched"],
  dispatched_once: ["dispatched"],
  rebuilt: ["dispatched"],
  settled: ["settled"],
  refusal_reason: ["refused"],
  refusal_count: ["refused"],
};
const OF_ENVELOPES = [
  "card_hash",
  "envelope_canonical",
  "envelope_schema",
  "args_digest",
  "effect_key",
];
const OF_WHOLE = [
  "opening_missing",
  "empty",
  "unreadable",
  "left_edge",
  "expected_count",
  "expected_head",
  "fork",
];
/** What is checked also where nothing was added to what the auditor kept (spec §15.2). */
const OF_END = ["left_edge", "expected_count", "expected_head", "fork"];
export const WHO_MADE_IT =
  "who made the log: whoever holds a key can make HMACs, so they prove nothing to others";
/** In its place where a checkpoint under a given vkey covers every record (spec §10.4). */
export const WHO_SIGNED_IT =
  "that the signer of the checkpoint tells everybody the same: whoever holds its key can sign " +
  "another history, and HMACs prove nothing to others";
const BEYOND = [
  "events that were never appended: a log shows what it holds, not what happened",
  WHO_MADE_IT,
  "who decided: an approver id is what the writer was told",
  "that an echo came from a screen, or that facts came from live systems",
];

const OF_CHECKPOINTS = [
  "checkpoint",
  "checkpoint_key",
  "checkpoint_signature",
  "checkpoint_size",
  "checkpoint_root",
];
const LEFT_OUT = [
  "supersedes",
  "prior_attempt",
  "not_issued",
  "latest",
  "refusal_reason",
  "refusal_count",
  "recovered",
  "left_edge",
  "expected_count",
];
const LEFT_OUT_OF_RECEIPTS = [...LEFT_OUT, "sequence", "kid", "rekey"];

const OF_EXCERPTS = [
  "that no later record of the cards of this excerpt exists",
  "that a card of it was the latest of its step",
  "that every refusal is in it",
  "anything about cards that are not in it",
  "that the log was complete",
];

/** The checks of the events of a card, by their kind. */
export function checksOf(kind) {
  return Object.keys(KINDS).filter(
    (check) => check !== "issued_body" && KINDS[check].includes(kind),
  );
}

/** Why a check that found nothing did not pass either, or an empty text where it passed. */
export function whyNotChecked(check, log, facts) {
  const { tally } = log;
  const name = check.id;
  const { anchors } = facts;
  if (name === "empty" || name === "unreadable") return "";
  if (name === "excerpt" || name === "inclusion") return whyNoProof(name, tally, anchors);
  if (name === "pinned_head") return "give --pin";
  if (name === "required") return "give --require";
  if (OF_CHECKPOINTS.includes(name) || name === "consistency")
    return whyNoCheckpoint(name, tally.records > 0 || facts.kept !== null, anchors);
  if (tally.records === 0 && !(facts.kept && OF_END.includes(name))) return "no record";
  if (tally.sound === 0 && !OF_WHOLE.includes(name)) return "no sound record";
  if (name === "segment_name") return facts.isDirectory ? "" : "not a directory";
  if (log.scope !== null) {
    const leftOut = log.scope.card ? LEFT_OUT_OF_RECEIPTS : LEFT_OUT;
    const isUnknown = name === "expected_head" && facts.expectHead !== null && !facts.hasHead;
    if (leftOut.includes(name) || isUnknown)
      return "it rests on records that an excerpt leaves out";
  }
  return whyNotInLog(check, log, facts);
}

function whyNotInLog(check, log, facts) {
  const { tally } = log;
  const name = check.id;
  const edge = log.edgeEvents.get(name);
  if (edge !== undefined && log.scope === null)
    return `${edge} events rest on records before the left edge`;
  if (name === "tag" || name === "key_missing")
    return log.missingKids.size > 0 ? "a key is missing" : "";
  if (name === "pin") return log.pins.length > 0 ? "" : "no key file pins a record";
  if (OF_ENVELOPES.includes(name)) return tally.envelopesTotal > 0 ? "" : "no envelope";
  if (name === "signature") return "none in the log";
  if (name === "opening_missing")
    return log.withheld.length > 0 ? "openings are withheld, as the auditor allows" : "";
  if (check.group === "policy evidence" || name === "manifest") return whyNoPolicy(name, log);
  if (name in KINDS && !KINDS[name].some((kind) => tally.kinds.has(kind))) return "no such event";
  if (name === "rekey") return log.isProofOpen ? "a new key is missing" : "";
  if (name === "fork") return facts.hasOther ? "" : "no other input of this chain";
  return whyNotExpected(name, facts);
}

function whyNoProof(name, { records }, { isExcerpt, isOther, hasProof, isSigned }) {
  if (!isExcerpt || (name === "inclusion" && records === 0)) return "not an excerpt";
  if (name === "excerpt") return isOther ? "an excerpt of another version" : "";
  if (!hasProof) return "no proof in the excerpt";
  return isSigned ? "" : "no given vkey signed the checkpoint of the proofs";
}

function whyNoCheckpoint(name, isThere, anchors) {
  if (anchors.isExcerpt) return whyNoCheckpointOfExcerpt(name, isThere, anchors);
  if (!isThere) return "no record";
  if (name === "consistency") return anchors.isExtended ? "" : "no consistency proof";
  const why = whyNotLooked(name, anchors);
  if (why !== "" || name !== "checkpoint_root" || anchors.isCompared) return why;
  return "the records leave no root at a size that is signed";
}

/** Why no checkpoint was looked at for one of the rows about checkpoints by themselves. */
function whyNotLooked(name, { looked }) {
  if (looked.length === 0) return "no checkpoint of this chain";
  if (name === "checkpoint_key" && looked.every(({ isEnclosed }) => isEnclosed))
    return "no checkpoint was given";
  const isSeen = name !== "checkpoint_signature" || looked.some(({ isSigned }) => isSigned !== null);
  return isSeen ? "" : "no signature under a given vkey";
}

function whyNoCheckpointOfExcerpt(name, isThere, anchors) {
  const { consistency } = anchors;
  if (!isThere) return "no record";
  if (name === "checkpoint_size") return "an excerpt does not say how many records the log holds";
  if (name === "checkpoint_root") return "an excerpt does not hold every record";
  if (name !== "consistency") return whyNotLooked(name, anchors);
  if (consistency === "holds" || consistency === "fails") return "";
  return consistency === "none"
    ? "no checkpoint to compare"
    : "no given proof holds a given checkpoint and that of the excerpt together";
}

function whyNoPolicy(name, { tally, floor, missingProfiles, state, edge, edgeEvents }) {
  if (name === "profile_form") return tally.profiles > 0 ? "" : "no profile in the log";
  if (name === "claim") return tally.bases > 0 ? "" : "no approval basis";
  if (name === "manifest") return tally.manifests > 0 ? "" : "no review manifest";
  if (name === "auditor_floor") return floor > 0 ? "" : "give --floor";
  if (missingProfiles.size > 0 && name !== "profile") return "a profile is missing";
  if (state.epoch > 0 || edge.isOpened) {
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
  const said = log.scope === null || tally.records === 0 ? [] : [...OF_EXCERPTS];
  if (tally.lostOpenings) {
    said.push("openings that were absent before an unsound record: a redacted event may be lost");
  }
  if (tally.absentOpenings) said.push("the checks of envelopes and openings that are absent");
  if (log.missingKids.size > 0) said.push("the HMACs of records whose key is missing");
  const isLost = log.state.epoch > 0 || log.scope !== null;
  if (isLost && tally.records > 0) {
    said.push("what a missing or unsound record could explain (spec §10.3)");
  }
  if (log.edge.isOpened && log.scope === null) said.push(beforeTheEdge(log));
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

function beforeTheEdge({ first, edgeEvents }) {
  const most = Math.max(0, ...edgeEvents.values());
  const events = most > 0 ? `, and events of earlier cards and steps (${most})` : "";
  return `what rests on records before seq ${first.seq}: the kid and profile in force there${events}`;
}
