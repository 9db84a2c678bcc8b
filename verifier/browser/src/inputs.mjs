/* What is to be verified: files sorted into logs, keys and what the auditor kept. */

import { PIN_FORMAT } from "./anchors.mjs";
import { textOf } from "./bytes.mjs";
import { KEY_FORMAT } from "./keys.mjs";
import { PROFILE_FORMAT } from "./profile.mjs";

const MOST_OF_A_DOCUMENT = 1048576;
const LOG_NAMES = /\.(?:cbor|cbor\.gz|excerpt)$/;
const KIND_OF_FORMAT = new Map([
  [KEY_FORMAT, "keys"],
  [PROFILE_FORMAT, "profiles"],
  [PIN_FORMAT, "pins"],
]);

/** An empty choice: logs as {path, file} or {path, entries}, everything else as {name, file}. */
export function nothing() {
  const kinds = ["inputs", "keys", "vkeys", "checkpoints", "after", "profiles", "pins", "unused"];
  return Object.fromEntries(kinds.map((kind) => [kind, []]));
}

/**
 * Sorts files {path, file}, as they were dropped, by what they are.
 * A folder with `segments/` is one input, with everything in it.
 */
export async function sorted(files) {
  const found = nothing();
  const ledgers = new Map();
  for (const { path, file } of files) {
    const at = path.lastIndexOf("/segments/");
    if (at !== -1) ledgers.set(path.slice(0, at), []);
    else if (LOG_NAMES.test(path)) found.inputs.push({ path, file });
  }
  for (const one of files) {
    const ledger = [...ledgers.keys()].find((folder) => one.path.startsWith(`${folder}/`));
    if (ledger !== undefined) {
      ledgers.get(ledger).push({ name: one.path.slice(ledger.length + 1), file: one.file });
    } else if (!LOG_NAMES.test(one.path))
      await sortDocument({ name: one.path, file: one.file }, found);
  }
  for (const [path, entries] of ledgers) found.inputs.push({ path, entries });
  return found;
}

/** Sorts a file that is no log by its name by what stands in it; the strict readers judge it later. */
async function sortDocument(document, found) {
  const text =
    document.file.size > MOST_OF_A_DOCUMENT
      ? null
      : textOf(new Uint8Array(await document.file.arrayBuffer()));
  const kind = text === null ? null : kindOf(text);
  if (kind !== null) found[kind].push(document);
  else if (document.name.includes("/")) found.unused.push(document);
  else found.inputs.push({ path: document.name, file: document.file });
}

function kindOf(text) {
  if (/^\s*\{/.test(text)) return KIND_OF_FORMAT.get(formatOf(text)) ?? "unused";
  if (text.startsWith("old ") || /^cardchain\/[0-9a-f]{32}\n/.test(text)) return "checkpoints";
  return /^[^\s+]+\+[0-9a-f]{8}\+\S+$/m.test(text) ? "vkeys" : null;
}

function formatOf(text) {
  try {
    return JSON.parse(text)?.format;
  } catch {
    return undefined;
  }
}

/**
 * The files of a drop, folders walked through: [{path, file}].
 * On a page from disk Chromium opens a dropped folder by its handle alone, other browsers know
 * entries alone. What a drop holds can be asked for only before the first wait.
 */
export async function dropped(transfer) {
  const items = [...transfer.items]
    .filter((item) => item.kind === "file")
    .map((item) => ({
      file: item.getAsFile(),
      entry: item.webkitGetAsEntry?.() ?? null,
      handle: item.getAsFileSystemHandle?.().catch(() => null) ?? null,
    }));
  const files = [];
  for (const { file, entry, handle } of items) {
    if (!entry?.isDirectory) {
      if (file !== null) files.push({ path: file.name, file });
      continue;
    }
    const folder = await handle;
    if (folder === null) await walkEntry(entry, "", files);
    else await walkHandle(folder, "", files);
  }
  return files;
}

async function walkHandle(handle, folder, files) {
  const path = `${folder}${handle.name}`;
  if (handle.kind === "file") files.push({ path, file: await handle.getFile() });
  else for await (const one of handle.values()) await walkHandle(one, `${path}/`, files);
}

async function walkEntry(entry, folder, files) {
  const path = `${folder}${entry.name}`;
  if (entry.isFile) {
    files.push({ path, file: await new Promise((give, fail) => entry.file(give, fail)) });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((give, fail) => reader.readEntries(give, fail));
    if (some.length === 0) return;
    for (const one of some) await walkEntry(one, `${path}/`, files);
  }
}

/** The files of an input element, which can then take the same ones again: [{path, file}]. */
export function chosen(input) {
  const files = [...input.files].map((file) => ({
    path: file.webkitRelativePath || file.name,
    file,
  }));
  input.value = "";
  return files;
}
