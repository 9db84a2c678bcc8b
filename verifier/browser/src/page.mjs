/* The page: takes files, asks the worker, shows its answers. Nothing leaves this computer. */

import { byId, button, element, fill } from "./dom.mjs";
import { escaped } from "./escape.mjs";
import { chosen, dropped, sorted } from "./inputs.mjs";
import { CardList } from "./page_cards.mjs";
import { logView, verdictView } from "./page_report.mjs";

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
  const policy = policies.worker ??
    globalThis.trustedTypes.createPolicy("cardchain-worker", { createScriptURL: (made) => made });
  policies.worker = policy;
  return policy.createScriptURL(url);
}

const policies = {};
const chosenFiles = { inputs: [], keys: [], profiles: [], unused: [] };
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
    fill(byId("report"), element("div", { class: "verdict open" },
      element("h2", { id: "verdict", tabindex: "-1" }, "NO VERDICT"),
      element("p", {}, `The verification did not end: ${escaped(error.message)}. ` +
        "Nothing is proven. Try again, or use the command cardchain-verify.")));
    byId("verdict").focus();
    return null;
  } finally {
    working(false);
  }
}

async function show(report) {
  fill(byId("report"), verdictView(report),
    report.logs.map((log, index) => logView(log, index, report.logs.length)));
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
  for (const kind of Object.keys(chosenFiles)) chosenFiles[kind].push(...found[kind]);
  showChosen();
  return found;
}

function showChosen() {
  const line = (kind, label, name, index) => element("li", {}, `${label}: ${escaped(name)} `,
    button("Remove", () => {
      chosenFiles[kind].splice(index, 1);
      showChosen();
      byId("verify").focus();
    }, { "aria-label": `remove ${escaped(name)}` }));
  const lines = (kind, label, nameOf) =>
    chosenFiles[kind].map((one, index) => line(kind, label, nameOf(one), index));
  fill(byId("chosen"),
    lines("inputs", "log", (one) => one.path), lines("keys", "key", (one) => one.name),
    lines("profiles", "profile", (one) => one.name),
    lines("unused", "not used, neither log nor key nor profile", (one) => one));
  byId("verify").disabled = chosenFiles.inputs.length === 0;
}

/** The request that the form states, or null where a field is wrong and says so. */
function requestOf() {
  const head = byId("head").value.trim().toLowerCase();
  const count = byId("count").value.trim();
  const wrong = [
    [byId("head"), head !== "" && !/^[0-9a-f]{64}$/.test(head), "64 hexadecimal digits"],
    [byId("count"), count !== "" && !/^[1-9][0-9]{0,15}$/.test(count), "a whole number from 1 on"],
  ];
  for (const [field, isWrong, expected] of wrong) {
    field.setCustomValidity(isWrong ? `Expected ${expected}, or nothing.` : "");
    if (isWrong) {
      field.reportValidity();
      return null;
    }
  }
  const { inputs, keys, profiles } = chosenFiles;
  return {
    inputs, keys, profiles, expectHead: head || null, expectCount: count === "" ? null : Number(count),
    floor: byId("floor").value,
  };
}

async function run() {
  const request = requestOf();
  return request === null || request.inputs.length === 0 ? null : verify(request);
}

/** The files of an input element, which can then take the same ones again. */
function emptied(input) {
  const files = chosen(input);
  input.value = "";
  return files;
}

function listen() {
  for (const id of ["logs", "folder"]) {
    byId(id).addEventListener("change", (event) => take(emptied(event.target)));
  }
  for (const kind of ["keys", "profiles"]) {
    byId(kind).addEventListener("change", (event) => {
      const files = emptied(event.target);
      chosenFiles[kind].push(...files.map(({ path, file }) => ({ name: path, file })));
      showChosen();
    });
  }
  byId("verify").addEventListener("click", run);
  byId("cancel").addEventListener("click", () => engine.stop("it was cancelled"));
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", async (event) => {
    event.preventDefault();
    const found = await take(await dropped(event.dataTransfer));
    if (found.inputs.length > 0) await run();
  });
}

listen();
showChosen();
if (globalThis.crypto?.subtle === undefined) {
  byId("status").textContent =
    "This browser offers no WebCrypto here. Open the file from disk, or over https.";
  byId("verify").disabled = true;
}
globalThis.cardchain = Object.freeze({ take, run, verify });
