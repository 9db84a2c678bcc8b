/* What is to be verified: files sorted into logs, ledger folders, keys and profiles. */

import { textOf } from "./bytes.mjs";
import { KEY_FORMAT } from "./keys.mjs";
import { PROFILE_FORMAT } from "./profile.mjs";

const MOST_OF_A_DOCUMENT = 1048576;

/**
 * Sorts files {path, file}, as they were dropped, by what they are.
 * Gives {inputs, keys, profiles, unused}; a folder with `segments/` is one input.
 */
export async function sorted(files) {
  const found = { inputs: [], keys: [], profiles: [], unused: [] };
  const ledgers = new Map();
  for (const { path, file } of files) {
    const ledger = ledgerOf(path);
    if (ledger !== null) addTo(ledgers, ledger.path, { name: ledger.name, file });
    else if (path.endsWith(".json")) await sortDocument({ name: path, file }, found);
    else if (/\.cbor(\.gz)?$/.test(path) || !path.includes("/")) found.inputs.push({ path, file });
    else if (!isHousekeeping(path)) found.unused.push(path);
  }
  for (const [path, entries] of ledgers) found.inputs.push({ path, entries });
  return found;
}

/** The ledger folder that a path lies in, by its `segments/`, and its name in there; or null. */
function ledgerOf(path) {
  const at = path.lastIndexOf("/segments/");
  if (at === -1) return null;
  return { path: path.slice(0, at), name: path.slice(at + 1) };
}

function addTo(ledgers, path, entry) {
  if (!ledgers.has(path)) ledgers.set(path, []);
  ledgers.get(path).push(entry);
}

function isHousekeeping(path) {
  return path.endsWith("/lock");
}

async function sortDocument(document, found) {
  const format = await formatOf(document.file);
  if (format === KEY_FORMAT) found.keys.push(document);
  else if (format === PROFILE_FORMAT) found.profiles.push(document);
  else found.unused.push(document.name);
}

/** What a JSON document says its format is; the strict reader judges it later. */
async function formatOf(file) {
  if (file.size > MOST_OF_A_DOCUMENT) return null;
  try {
    const text = textOf(new Uint8Array(await file.arrayBuffer()));
    return JSON.parse(text ?? "null")?.format ?? null;
  } catch {
    return null;
  }
}

/** The files of a drop, folders walked through: [{path, file}]. */
export async function dropped(transfer) {
  const items = [...transfer.items].filter((item) => item.kind === "file");
  const entries = items.map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile());
  const files = [];
  for (const entry of entries) {
    if (entry instanceof File) files.push({ path: entry.name, file: entry });
    else if (entry !== null) await walk(entry, "", files);
  }
  return files;
}

async function walk(entry, folder, files) {
  const path = `${folder}${entry.name}`;
  if (entry.isFile) {
    files.push({ path, file: await new Promise((give, fail) => entry.file(give, fail)) });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((give, fail) => reader.readEntries(give, fail));
    if (some.length === 0) return;
    for (const one of some) await walk(one, `${path}/`, files);
  }
}

/** The files of an input element: [{path, file}], with folders where one was chosen. */
export function chosen(input) {
  return [...input.files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
}
