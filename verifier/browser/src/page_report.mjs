/* The report: the verdict first, then everything that it rests on (spec §10). */

import { element, table, utc } from "./dom.mjs";
import { escaped } from "./escape.mjs";
import { wordsOf } from "./words.mjs";

const VERDICTS = {
  VERIFIED: {
    sign: "\u2713",
    kind: "good",
    says: "Every record is authenticated, and no check fails.",
  },
  "CANNOT VERIFY": {
    sign: "?",
    kind: "open",
    says: "Something that is needed is missing. Nothing was found to be wrong; nothing is proven.",
  },
  BROKEN: { sign: "\u2717", kind: "bad", says: "A check fails. Do not rely on this log." },
};
const MOST_WITHHELD = 100;
const OUTCOMES = {
  PASS: ["\u2713", "good"],
  FAIL: ["\u2717", "bad"],
  "NOT CHECKED": ["\u2013", "open"],
};

/** The verdict over all logs, as a heading that can be focused, and what it means. */
export function verdictView({ verdict, logs }) {
  const { sign, kind, says } = VERDICTS[verdict];
  const several = logs.length > 1 ? ` This is the worst verdict of ${logs.length} logs.` : "";
  return element(
    "div",
    { class: `verdict ${kind}` },
    element(
      "h2",
      { id: "verdict", tabindex: "-1" },
      element("span", { class: "sign", "aria-hidden": "true" }, sign),
      " ",
      verdict,
    ),
    element("p", {}, says + several),
  );
}

/** The pin file to keep from now on (spec §16.2), where the auditor uses one. */
export function pinView({ pinAfter }) {
  if (pinAfter === null) return null;
  return element(
    "section",
    {},
    element("h3", {}, "Pin file to keep from now on"),
    element("p", {}, "This page writes no file. Put this in place of your pin file:"),
    element("pre", {}, JSON.stringify(pinAfter, null, 2)),
  );
}

/** Everything about one log. */
export function logView(log, index, count) {
  const heading =
    count > 1 ? `Log ${index + 1} of ${count}: ${escaped(log.path)}` : escaped(log.path);
  return element(
    "section",
    { class: "log", "aria-labelledby": `log-${index}` },
    element("h2", { id: `log-${index}` }, heading),
    count > 1
      ? element("p", {}, "Verdict of this log: ", element("strong", {}, log.verdict))
      : null,
    log.scope === "" ? null : element("p", {}, `This is a ${log.scope}.`),
    assuranceView(log),
    findingsView(log),
    warningsView(log),
    countsView(log),
    checksView(log),
    notProvenView(log),
    withheldView(log),
    inputsView(log),
  );
}

const ASSURANCE = {
  "integrity only":
    "Nothing that was kept outside vouches for the log: its end may be missing, " +
    "and who holds the secrets could have made it again.",
  pinned: "It holds what you kept from before",
  signed: "A checkpoint of a signer whose key you gave holds",
};

function assuranceView({ assurance, pinnedTo, signedTo }) {
  if (assurance.length === 0) return null;
  const reach = { pinned: pinnedTo, signed: signedTo };
  const line = (word) => [
    element("strong", {}, word),
    `: ${ASSURANCE[word]}${word in reach ? `, up to seq ${reach[word]}.` : ""}`,
  ];
  return element(
    "section",
    {},
    element("h3", {}, "What the verdict rests on"),
    element(
      "ul",
      {},
      assurance.map((word) => element("li", {}, line(word))),
    ),
  );
}

function withheldView({ withheld }) {
  if (withheld.length === 0) return null;
  const shown = withheld.slice(0, MOST_WITHHELD);
  return element(
    "section",
    {},
    element("h3", {}, "Withheld openings"),
    element(
      "ul",
      {},
      shown.map(({ seq, openings }) => element("li", {}, `seq ${seq}: ${openings.join(", ")}`)),
    ),
    withheld.length > shown.length
      ? element("p", {}, `${withheld.length - shown.length} more records have some.`)
      : null,
  );
}

function findingsView({ findings, findingsTotal }) {
  if (findingsTotal === 0) return element("p", { class: "none" }, "No findings.");
  const left = findingsTotal - findings.length;
  return element(
    "section",
    {},
    element("h3", {}, `Findings (${findingsTotal})`),
    element("ol", { class: "findings" }, findings.map(findingView)),
    left > 0 ? element("p", {}, `${left} more findings are not listed.`) : null,
  );
}

function findingView(finding) {
  const { cause, next } = wordsOf(finding);
  const places = [escaped(finding.file)];
  if (finding.offset !== null) places.push(`offset ${finding.offset}`);
  if (finding.seq !== null) places.push(`seq ${finding.seq}`);
  const line = (name, value) => [element("dt", {}, name), element("dd", {}, value)];
  return element(
    "li",
    {},
    element("p", { class: "reason" }, element("code", {}, finding.check)),
    element(
      "dl",
      {},
      line("Where", places.join(", ")),
      line("Expected", escaped(finding.expected)),
      line("Found", escaped(finding.found)),
      line("Likely cause", cause),
      line("Next step", next),
    ),
  );
}

function warningsView({ warnings }) {
  if (warnings.length === 0) return null;
  return element(
    "section",
    {},
    element("h3", {}, "Warnings"),
    element("p", {}, "These do not change the verdict."),
    element(
      "ul",
      {},
      warnings.map((warning) => element("li", {}, escaped(warning))),
    ),
  );
}

function countsView({ counts }) {
  const kinds = Object.entries(counts.kinds).sort(([one], [other]) => (one < other ? -1 : 1));
  const dispatched =
    counts.containedDispatched === 0
      ? "none of them dispatched"
      : `${counts.containedDispatched} dispatches broke a rule`;
  const lines = [
    `${counts.envelopes} of ${counts.envelopesTotal} envelopes still hash to their card hash.`,
    `${counts.decisions} of ${counts.decisionsTotal} decisions echoed an issued, unexpired envelope.`,
    `${counts.contained} late or wrong decisions were contained, ${dispatched}.`,
  ];
  return element(
    "section",
    {},
    element("h3", {}, "Counts"),
    element(
      "ul",
      {},
      lines.map((line) => element("li", {}, line)),
    ),
    table(
      "What the log holds",
      ["What", "Number"],
      [
        ["records", String(counts.records)],
        ["cards", String(counts.cards)],
        ...kinds.map(([kind, number]) => [`events: ${escaped(kind)}`, String(number)]),
        ["refusals whose reason is only asserted", String(counts.asserted)],
        ...Object.entries(counts.exceptions).map(([name, number]) => [
          `dispatched under ${escaped(name)}`,
          String(number),
        ]),
      ],
    ),
  );
}

function notProvenView({ notChecked, lastSeq, complete }) {
  const end =
    lastSeq !== null && !complete
      ? [`that the log ends at seq ${lastSeq}: give an expected head or count to check that`]
      : [];
  return element(
    "section",
    {},
    element("h3", {}, "What is not proven"),
    element(
      "ul",
      {},
      [...notChecked, ...end].map((line) => element("li", {}, escaped(line))),
    ),
  );
}

function inputsView({ inputs, chain, kids, firstSeq, lastSeq, startAt, endAt, head }) {
  const facts = [
    ["chain", chain ?? "unknown"],
    ["keys in force", kids.join(", ") || "none"],
    ["seq", firstSeq === null ? "none" : `${firstSeq} to ${lastSeq}`],
    ["time", startAt === null ? "none" : `${utc(startAt)} to ${utc(endAt)}`],
    ["head", head ?? "none"],
  ];
  return element(
    "section",
    {},
    element("h3", {}, "What was read"),
    table(
      "Files",
      ["File", "Bytes", "SHA-256"],
      inputs.map(({ file, bytes, sha256 }) => [
        escaped(file),
        String(bytes),
        element("code", {}, sha256),
      ]),
    ),
    table(
      "The log",
      ["What", "Value"],
      facts.map(([name, value]) => [name, element("code", {}, value)]),
    ),
  );
}

function checksView({ rows }) {
  const number = (outcome) => rows.filter((row) => row.outcome === outcome).length;
  const summary =
    `Checks: ${number("PASS")} passed, ${number("FAIL")} failed, ` +
    `${number("NOT CHECKED")} not made`;
  return element(
    "details",
    { class: "checks" },
    element("summary", {}, element("h3", {}, summary)),
    table(
      "Checks of the specification",
      ["Check", "Outcome", "Claim", "Section", "Why"],
      rows.map((row) => {
        const [sign, kind] = OUTCOMES[row.outcome];
        return [
          element("code", {}, row.check),
          element(
            "span",
            { class: `outcome ${kind}` },
            element("span", { "aria-hidden": "true" }, `${sign} `),
            row.outcome,
          ),
          row.claim,
          row.section,
          escaped(row.detail),
        ];
      }),
    ),
  );
}
