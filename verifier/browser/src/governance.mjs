/* The profiles at hand, and the rules that several of them make together (spec §8.5). */

import { combined, profileOf } from "./profile.mjs";
import { UNKNOWN } from "./state.mjs";

export class Governance {
  /** `files`: digest to the bytes of profiles that were given. */
  constructor(files) {
    this.files = files;
    this.profiles = new Map();
    this.kept = new Map();
  }

  /** The rules of both profiles together; most cards have the same two. */
  rules(chainProfile, cardProfile) {
    const name = `${String(chainProfile)} ${cardProfile}`;
    let rules = this.kept.get(name);
    if (rules === undefined) {
      rules = this.rulesMade(chainProfile, cardProfile);
      this.kept.set(name, rules);
    }
    return rules;
  }

  rulesMade(chainProfile, cardProfile) {
    const wanted = [chainProfile, cardProfile].filter((one) => one !== null && one !== UNKNOWN);
    const found = [...new Set(wanted)].map((digest) => [digest, this.profile(digest)]);
    const known = found.filter(([, one]) => one?.rules).map(([, one]) => one.rules);
    const missing = found.filter(([, one]) => one === null).map(([digest]) => digest);
    return {
      ...combined(known),
      missing,
      any: wanted.length > 0,
      mustReview: known.some((rules) => !rules.mayDrift),
      isKnown: chainProfile !== UNKNOWN && known.length === found.length,
    };
  }

  profile(digest) {
    if (!this.profiles.has(digest) && this.files.has(digest)) {
      this.profiles.set(digest, profileOf(this.files.get(digest)));
    }
    return this.profiles.get(digest) ?? null;
  }

  /** The profile of an opening, which may be malformed: {rules} or {fault}. */
  profileFrom(digest, bytes) {
    this.profiles.set(digest, profileOf(bytes));
    this.kept.clear();
    return this.profiles.get(digest);
  }
}
