/*
 * Where records stand in the sequence (spec §3.2, §10.3): gaps, surplus and what belongs to them.
 * One edit moves several seqs; the record after a finding may go on from what was found, or from
 * what had been expected.
 */

import { BELONGS } from "./checks_record.mjs";

export class Sequence {
  constructor() {
    this.next = null; // the highest seq found plus 1
    this.other = null; // what would be next if the record of the last finding had kept its place
    this.repeat = null; // the next seq of a run that repeats earlier records
    this.early = new Set(); // seqs that were found before their place
    this.gaps = []; // missing seqs, as [first, last]
    this.filled = new Set();
    this.slack = 0; // records since the last placed one whose seq is not known
    this.afterBytes = false; // bytes since the last placed one that are no record
  }

  /** The first record: after bytes that are none, those may hold the records before it. */
  begin(seq) {
    this.next = seq + 1;
    if (this.afterBytes && seq > 0) this.gaps.push([0, seq - 1]);
    this.afterBytes = false;
  }

  /** A record whose seq is not to be trusted, or null where none can be read: it takes the next. */
  skip(seq) {
    const repeats = this.repeat !== null && (seq === null || seq === this.repeat);
    if (repeats) this.repeat += 1;
    if (seq !== null && seq < this.next) this.repeat = seq + 1;
    if (seq !== null && (repeats || seq < this.next)) return;
    this.gaps.push([this.next, this.next]);
    this.next += 1;
    this.slack += 1;
  }

  /** Gives null where `seq` is right, BELONGS where it is part of an earlier finding, or a fault. */
  place(seq) {
    const found = this.judge(seq);
    this.slack = 0;
    this.afterBytes = false;
    return found;
  }

  judge(seq) {
    const expected = this.next;
    const isSlack = seq < expected && seq >= expected - this.slack;
    if (seq === expected || isSlack || (this.afterBytes && seq > expected))
      return this.goOn(seq, null);
    if (this.fills(seq)) return BELONGS;
    if (seq === this.other) return this.goOn(seq, seq < expected ? BELONGS : null);
    if (seq === this.repeat) {
      this.repeat += 1;
      return BELONGS;
    }
    if (this.early.delete(seq)) return BELONGS;
    return this.misplaced(seq);
  }

  goOn(seq, found) {
    if (seq > this.next) this.gaps.push([this.next, seq - 1]);
    Object.assign(this, { next: seq + 1, other: null, repeat: null });
    return found;
  }

  misplaced(seq) {
    const expected = this.next;
    if (seq > expected) {
      this.gaps.push([expected, seq - 1]);
      this.early.add(seq);
    }
    this.repeat = seq < expected ? seq + 1 : null;
    this.other = expected + 1;
    this.next = Math.max(expected, seq + 1);
    return { expected: `seq ${expected}`, found: `seq ${seq}` };
  }

  fills(seq) {
    const isGap = this.gaps.some(([first, last]) => seq >= first && seq <= last);
    if (!isGap || this.filled.has(seq)) return false;
    this.filled.add(seq);
    return true;
  }
}

/** In a range every record between its ends is there (spec §14.3). */
export function holeBefore(record, lastSeq, { from }) {
  if (from === undefined || record.seq === null || lastSeq === null) return null;
  const expected = Math.max(lastSeq + 1, from);
  if (record.seq <= expected) return null;
  return { expected: `seq ${expected}`, found: `seq ${record.seq}` };
}
