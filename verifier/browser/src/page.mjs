/* The page: takes files, asks the worker, shows its answers. Nothing leaves this computer. */

import { byId, button, element, fill } from "./dom.mjs";
import { escaped } from "./escape.mjs";
import { chosen, dropped, nothing, sorted } from "./inputs.mjs";
import { CardList } from "./page_cards.mjs";
import { logView, pinView, verdictView } from "./page_report.mjs";

/** Sends questions to a worker made of the engine in this page, one answer for each. */
class Engine {
  constructor() {
    this.waiting = new Map();
    this.last = 0;
    this.start();
  }

  start() {
    const source = new Blob([byId("engine").textContent], { type: "text/javascript" });
    const url = URL.createObjectURL(source);
    this.worker = new Worker(trusted(url), { name: "cardchain-verify" });
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.worker.onerror = (event) => this.stop(event.message || "the worker could not start");
  }

  ask(question, heard = () => undefined) {
    this.last += 1;
    const id = this.last;
    return new Promise((give, fail) => {
      this.waiting.set(id, { give, fail, heard });
      this.worker.postMessage({ id, ...question });
    });
  }

  hear({ id, answer, failure, progress }) {
    const waiting = this.waiting.get(id);
    if (waiting === undefined) return;
    if (progress !== undefined) {
      waiting.heard(progress);
      return;
    }
    this.waiting.delete(id);
    if (failure === undefined) waiting.give(answer);
    else waiting.fail(new Error(failure));
  }

  /** Ends everything under way; a new worker is ready afterwards. */
  stop(why) {
    this.worker.terminate();
    for (const { fail } of this.waiting.values()) fail(new Error(why));
    this.waiting.clear();
    this.start();
  }
}

/** The address of the worker, in the one form that the policy of the page lets through. */
function trusted(url) {
  if (globalThis.trustedTypes === undefined) return url;
  const policy =
    policies.worker ??
    globalThis.trustedTypes.createPolicy("cardchain-worker", { createScriptURL: (made) => made });
  policies.worker = policy;
  return policy.createScriptURL(url);
}

const policies = {};
let choice = nothing();
const engine = new Engine();
const cards = new CardList((question) => engine.ask(question));

/** Verifies a request of the engine, shows the report and gives it. */
async function verify(request) {
  working(true);
  try {
    const report = await engine.ask({ ask: "verify", request }, (records) => {
      byId("status").textContent = `Verifying: ${records} records so far.`;
    });
    await show(report);
    return report;
  } catch (error) {
    fill(
      byId("report"),
      element(
        "div",
        { class: "verdict open" },
        element("h2", { id: "verdict", tabindex: "-1" }, "NO VERDICT"),
        element(
          "p",
          {},
          `The verification did not end: ${escaped(error.message)}. ` +
            "Nothing is proven. Try again, or use the command cardchain-verify.",
        ),
      ),
    );
    byId("verdict").focus();
    return null;
  } finally {
    working(false);
  }
}

async function show(report) {
  fill(
    byId("report"),
    verdictView(report),
    pinView(report),
    report.logs.map((log, index) => logView(log, index, report.logs.length)),
  );
  await cards.begin(report.cards);
  byId("verdict").focus();
}

function working(isBusy) {
  byId("verify").disabled = isBusy;
  byId("cancel").hidden = !isBusy;
  byId("status").textContent = isBusy ? "Verifying." : "";
  if (isBusy) {
    fill(byId("report"));
    byId("cards").hidden = true;
  }
}

/** Takes files in, sorted by what they are. */
async function take(files) {
  const found = await sorted(files);
  for (const kind of Object.keys(choice)) choice[kind].push(...found[kind]);
  showChosen();
  return found;
}

const KINDS = [
  ["inputs", "to verify"],
  ["keys", "key"],
  ["vkeys", "public key"],
  ["checkpoints", "checkpoint or proof"],
  ["after", "checkpoint to go on after"],
  ["profiles", "profile"],
  ["pins", "pin"],
  ["unused", "not used: no log, key or anything else known"],
];

function showChosen() {
  fill(
    byId("chosen"),
    KINDS.flatMap(([kind, label]) =>
      choice[kind].map((one, index) => chosenLine(kind, label, one.path ?? one.name, index)),
    ),
  );
  byId("verify").disabled = choice.inputs.length === 0;
}

function chosenLine(kind, label, name, index) {
  const remove = button(
    "Remove",
    () => {
      choice[kind].splice(index, 1);
      showChosen();
      byId(choice.inputs.length === 0 ? "logs" : "verify").focus();
    },
    { "aria-label": `remove ${escaped(name)}` },
  );
  return element("li", {}, `${label}: ${escaped(name)} `, remove);
}

const FIELDS = [
  ["head", /^[0-9a-fA-F]{64}$/, "64 hexadecimal digits"],
  ["count", /^[1-9][0-9]{0,14}$/, "a whole number from 1 on"],
  ["since", /^(?:0|[1-9][0-9]{0,14}):[0-9a-fA-F]{64}$/, "a seq, a colon and 64 hexadecimal digits"],
];

/** The texts of the fields, or null where one is wrong and says so. */
function fieldTexts() {
  const texts = {};
  for (const [id, form, expected] of FIELDS) {
    const field = byId(id);
    texts[id] = field.value.trim().toLowerCase();
    const isWrong = texts[id] !== "" && !form.test(texts[id]);
    field.setCustomValidity(isWrong ? `Expected ${expected}, or nothing.` : "");
    if (!isWrong) continue;
    field.closest("details").open = true;
    field.reportValidity();
    return null;
  }
  return texts;
}

/** The request that the page states, or null where a field is wrong. */
function requestOf() {
  const texts = fieldTexts();
  if (texts === null) return null;
  const [seq, digest] = texts.since.split(":");
  return {
    inputs: choice.inputs,
    keys: choice.keys,
    vkeys: choice.vkeys,
    checkpoints: choice.checkpoints,
    profiles: choice.profiles,
    pin: choice.pins.at(-1) ?? null,
    expectHead: texts.head || null,
    expectCount: texts.count === "" ? null : Number(texts.count),
    since: choice.after.at(-1) ?? (texts.since === "" ? null : { seq: Number(seq), digest }),
    floor: byId("floor").value,
    require: ["pinned", "signed"].filter((word) => byId(`require-${word}`).checked),
    allowWithheld: byId("withheld").checked,
  };
}

async function run() {
  const request = requestOf();
  return request === null || request.inputs.length === 0 ? null : verify(request);
}

function listen() {
  for (const id of ["logs", "folder"]) {
    byId(id).addEventListener("change", (event) => take(chosen(event.target)));
  }
  const kinds = {
    keys: "keys",
    vkeys: "vkeys",
    checkpoints: "checkpoints",
    after: "after",
    profiles: "profiles",
    pin: "pins",
  };
  for (const [id, kind] of Object.entries(kinds)) {
    byId(id).addEventListener("change", (event) => {
      choice[kind].push(...chosen(event.target).map(({ path, file }) => ({ name: path, file })));
      showChosen();
    });
  }
  byId("verify").addEventListener("click", run);
  byId("cancel").addEventListener("click", () => engine.stop("it was cancelled"));
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("#report details")) details.open = true;
  });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", async (event) => {
    event.preventDefault();
    try {
      const found = await take(await dropped(event.dataTransfer));
      if (found.inputs.length > 0) await run();
    } catch (error) {
      byId("status").textContent =
        `What was dropped cannot be read (${error.name}): ` + "choose it with the buttons instead.";
    }
  });
}

listen();
showChosen();
if (globalThis.crypto?.subtle === undefined) {
  byId("status").textContent =
    "This browser offers no WebCrypto here. Open the file from disk, or over https.";
  byId("verify").disabled = true;
}
/** For programs that drive the page: what the drop handler calls. */
globalThis.cardchain = Object.freeze({
  take,
  run,
  verify,
  clear: () => {
    choice = nothing();
    showChosen();
  },
});
