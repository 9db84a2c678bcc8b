/* Cards of verified logs, for a page: a list that can be searched, and one card in full. */

import { escaped } from "./escape.mjs";
import { stateOf } from "./history.mjs";
import { doubtOf, propertiesOf } from "./properties.mjs";
import { changeLines } from "./changes.mjs";
import { cardLines } from "./text.mjs";

const PAGE = 50;

/** The cards of logs, in the order in which they were first told of. */
export class Cards {
  constructor(logs) {
    const several = logs.length > 1;
    this.rows = logs.flatMap(({ path, log }, at) => {
      const place = several ? `log ${at + 1} of ${logs.length}, ${path}` : path;
      return [...log.histories.cards].map(([hash, history]) => rowOf(place, log, hash, history));
    });
    this.several = several;
    this.rows.forEach((row, index) => (row.index = index));
  }

  /** One page of those that match `filter`: the beginning of a hash, a state, or words of a row. */
  list(filter, from) {
    const wanted = filter.trim().toLowerCase();
    const found =
      wanted === "" ? this.rows : this.rows.filter((row) => row.search.includes(wanted));
    const rows = found.slice(from, from + PAGE);
    return {
      total: found.length,
      from,
      next: from + rows.length,
      several: this.several,
      rows: rows.map(({ hash, place, state, doubt, title, findings, index }) => ({
        hash,
        place,
        state,
        doubt,
        title,
        findings,
        index,
      })),
    };
  }

  /** Everything about one card, in texts that may be shown. */
  show(index) {
    const { hash, place, log, history, state, doubt } = this.rows[index];
    const card = log.state.cards.get(hash);
    const envelope = history.envelope;
    const isReadable = envelope !== null && envelope.fault === null && !envelope.isOtherFormat;
    return {
      hash,
      place,
      state,
      doubt,
      events: history.events,
      blamed: history.blamed,
      lines: isReadable ? cardLines(envelope.value, hash) : null,
      changes: isReadable ? changesOf(log, envelope.value) : null,
      properties: propertiesOf(log, card, history),
    };
  }
}

/** What changed since the card that this one supersedes, or null where it supersedes none. */
function changesOf(log, envelope) {
  const before = envelope.get("supersedes");
  if (before === undefined) return null;
  const there = log.histories.cards.get(before)?.envelope ?? null;
  if (there === null || there.fault !== null || there.isOtherFormat) {
    return ["changes: not shown, the envelope before is not at hand"];
  }
  return changeLines(there.value, envelope, before);
}

function rowOf(place, log, hash, history) {
  const { state, doubt } = standingOf(log, log.state.cards.get(hash));
  const title = titleOf(history.envelope);
  const findings = history.blamed.length;
  const marks = `${doubt === null ? "" : "not sure"} ${findings > 0 ? "finding" : ""}`;
  return {
    hash,
    place,
    log,
    history,
    state,
    doubt,
    title,
    findings,
    search: `${hash} ${state ?? "not known"} ${title} ${marks} ${place}`.toLowerCase(),
  };
}

/** The state of a card at the end of its log, null where hidden, and any doubt (spec §10.4). */
function standingOf(log, card) {
  const state = stateOf(log.state, card, log.tally.endAt);
  if (card?.isIssued) return { state, doubt: doubtOf(log, card) };
  if (state !== null) return { state, doubt: null };
  const isHidden = log.state.epoch > 0 || log.edge.isOpened || log.scope !== null;
  if (isHidden) return { state: null, doubt: "its issue may be lost" };
  return { state: "NOT ISSUED", doubt: null };
}

/** Tool, task and step of an envelope, in words. */
function titleOf(envelope) {
  if (envelope === null || envelope.fault !== null || envelope.isOtherFormat)
    return "no readable envelope";
  const { value } = envelope;
  const task = value.get("task");
  const shown = (text) => `"${escaped(text)}"`;
  return `${shown(value.get("action").get("tool_name"))}, task ${shown(task.get("id"))}, step ${shown(task.get("step"))}`;
}
