/* The worker: verifies away from the page, and answers what the page asks about cards. */

import { Cards } from "./cards.mjs";
import { verify } from "./verify.mjs";

const MOST_FINDINGS = 1000;
let cards = new Cards([]);

const ANSWERS = {
  verify: async ({ request }, say) => {
    const { verdict, logs, pinAfter } = await verify(request, (records) =>
      say({ progress: records }),
    );
    cards = new Cards(logs);
    return { verdict, pinAfter, logs: logs.map(sendable), cards: cards.rows.length };
  },
  list: async ({ filter, from }) => cards.list(filter, from),
  show: async ({ index }) => cards.show(index),
};

/** A report without what only the worker needs; of very many findings the first ones. */
function sendable({ log, records, findings, ...report }) {
  return { ...report, findings: findings.slice(0, MOST_FINDINGS), findingsTotal: findings.length };
}

self.onmessage = async ({ data }) => {
  const say = (message) => self.postMessage({ id: data.id, ...message });
  try {
    say({ answer: await ANSWERS[data.ask](data, say) });
  } catch (error) {
    say({ failure: `${error.name}: ${error.message}` });
  }
};
