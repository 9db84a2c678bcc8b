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
    this.gaps = [];
    this.filled = new Set();
    this.slack = 0; // records since the last placed one whose seq is not known
    this.afterBytes = false; // bytes since the last placed one that are no record
  }

  /** Gives null where `seq` is right, BELONGS where it is part of an earlier finding, or a fault. */
  place(seq) {
    const found = this.next === null ? null : this.judge(seq);
    this.slack = 0;
    this.afterBytes = false;
    return found;
  }

  /** A record whose seq cannot be read, or is not to be trusted: it takes the one expected. */
  skip() {
    if (this.next !== null) this.next += 1;
    this.slack += 1;
  }

  begin(seq) {
    this.next = seq + 1;
  }

  judge(seq) {
    const expected = this.next;
    const isSlack = seq < expected && seq >= expected - this.slack;
    if (seq === expected || isSlack || seq === this.other || (this.afterBytes && seq > expected)) {
      const isTwice = seq === this.other && seq < expected;
      if (seq > expected) this.gaps.push([expected, seq - 1]);
      Object.assign(this, { next: seq + 1, other: null, repeat: null });
      return isTwice ? BELONGS : null;
    }
    if (this.fills(seq)) return BELONGS;
    if (seq === this.repeat) {
      this.repeat += 1;
      return BELONGS;
    }
    if (seq > expected) this.gaps.push([expected, seq - 1]);
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
