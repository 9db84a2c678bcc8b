/* Cards of verified logs, for a page: a list that can be searched, and one card in full. */

import { escaped } from "./escape.mjs";
import { stateOf } from "./history.mjs";
import { propertiesOf } from "./properties.mjs";
import { changeLines } from "./changes.mjs";
import { cardLines } from "./text.mjs";

const PAGE = 50;

/** The cards of logs, in the order in which they were first told of. */
export class Cards {
  constructor(logs) {
    this.rows = logs.flatMap(({ path, log }) =>
      [...log.histories.cards].map(([hash, history]) => rowOf(path, log, hash, history)),
    );
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
      rows: rows.map(({ hash, state, title, findings, index }) => ({
        hash,
        state,
        title,
        findings,
        index,
      })),
    };
  }

  /** Everything about one card, in texts that may be shown. */
  show(index) {
    const { hash, path, log, history, state } = this.rows[index];
    const card = log.state.cards.get(hash);
    const envelope = history.envelope;
    const isReadable = envelope !== null && envelope.fault === null && !envelope.isOtherFormat;
    return {
      hash,
      path,
      state,
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

function rowOf(path, log, hash, history) {
  const state =
    stateOf(log.state, log.state.cards.get(hash), log.tally.endAt) ?? "never issued here";
  const title = titleOf(history.envelope);
  const findings = history.blamed.length;
  return {
    hash,
    path,
    log,
    history,
    state,
    title,
    findings,
    search: `${hash} ${state} ${title} ${findings > 0 ? "finding" : ""} ${path}`.toLowerCase(),
  };
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
