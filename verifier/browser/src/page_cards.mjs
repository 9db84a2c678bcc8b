/* The cards: a list that can be filtered, and one card as its approver saw it. */

import { byId, button, element, fill, isolated, isolatedLines, table, utc } from "./dom.mjs";
import { escaped } from "./escape.mjs";

/** Shows the cards that `ask` gives; `ask` sends a question to the worker. */
export class CardList {
  constructor(ask) {
    this.ask = ask;
    this.filter = "";
    this.round = 0;
    byId("filter").addEventListener("input", () => this.search());
    byId("find").addEventListener("submit", (event) => {
      event.preventDefault();
      this.openFirst();
    });
  }

  async begin(count) {
    byId("cards").hidden = count === 0;
    byId("filter").value = "";
    fill(byId("card"));
    if (count > 0) await this.search();
  }

  async search() {
    this.filter = byId("filter").value;
    this.round += 1;
    const round = this.round;
    const found = await this.ask({ ask: "list", filter: this.filter, from: 0 });
    if (round === this.round) this.showList(found);
  }

  showList({ total, from, next, several, rows }) {
    const shown = total === 0 ? "No card matches." : `Cards ${from + 1} to ${next} of ${total}.`;
    byId("found").textContent = shown;
    const turn = (label, to) =>
      button(label, async () => {
        this.showList(await this.ask({ ask: "list", filter: this.filter, from: to }));
      });
    fill(
      byId("list"),
      rows.length === 0
        ? null
        : table(
            "Cards found",
            ["Card hash", "State", "What", "Findings", ...(several ? ["Log"] : [])],
            rows.map((row) => this.rowView(row, several)),
          ),
      element(
        "p",
        { class: "turn" },
        from > 0 ? turn("Earlier cards", Math.max(0, from - 50)) : null,
        next < total ? turn("Later cards", next) : null,
      ),
    );
  }

  rowView({ index, hash, place, state, doubt, title, findings }, several) {
    const beginning = hash.slice(0, 16);
    const label = `show card ${beginning}${several ? ` of ${escaped(place)}` : ""}`;
    return [
      button(beginning, () => this.open(index), { class: "link", "aria-label": label }),
      state === null ? "not known" : `${state}${doubt === null ? "" : " (not sure)"}`,
      isolated(title),
      findings === 0 ? "none" : String(findings),
      ...(several ? [escaped(place)] : []),
    ];
  }

  async openFirst() {
    await this.search();
    const found = await this.ask({ ask: "list", filter: this.filter, from: 0 });
    if (found.total > 0) await this.open(found.rows[0].index);
  }

  async open(index) {
    const card = await this.ask({ ask: "show", index });
    fill(byId("card"), cardView(card));
    byId("card-heading").focus();
  }
}

function cardView({ hash, place, state, doubt, events, lines, changes, properties, blamed }) {
  return element(
    "article",
    { class: "card", "aria-labelledby": "card-heading" },
    element("h3", { id: "card-heading", tabindex: "-1" }, "Card ", element("code", {}, hash)),
    element(
      "p",
      {},
      `State at the end of ${escaped(place)}: `,
      element("strong", {}, state ?? "not known"),
      doubt === null ? null : ` (not sure: ${doubt})`,
    ),
    blamed.length === 0
      ? null
      : element(
          "p",
          { class: "bad" },
          "Findings on this card: ",
          element("code", {}, blamed.join(", ")),
        ),
    element("h4", {}, "As the approver saw it"),
    lines === null
      ? element("p", {}, "The envelope of this card is absent, or cannot be read; it is not shown.")
      : element(
          "pre",
          {},
          isolatedLines([...(changes === null ? [] : [...changes, ""]), ...lines].join("\n")),
        ),
    element("p", {}, "Hash to echo: ", element("code", {}, hash)),
    element("h4", {}, "What happened to it"),
    table(
      "Events of this card",
      ["Seq", "Time", "Event", "Details"],
      events.map((event) => [
        event.seq === null ? "unknown" : String(event.seq),
        utc(event.at),
        event.kind,
        isolated(`${event.words}${event.isSound ? "" : " (not relied on: see the findings)"}`),
      ]),
    ),
    properties === null ? null : propertiesView(properties),
  );
}

function propertiesView({ execution, provenance, presentation }) {
  const row = (name, { outcome, detail }) => [name, outcome, escaped(detail)];
  return element(
    "section",
    {},
    element("h4", {}, "What can be said of its approval"),
    table(
      "Properties of the approval",
      ["Property", "Outcome", "Why"],
      [
        row("execution integrity", execution),
        row("decision provenance", provenance),
        row("presentation integrity", presentation),
      ],
    ),
  );
}
