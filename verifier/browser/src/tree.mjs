/* Merkle trees of RFC 6962 §2.1 over chain digests (spec §13.1, §13.6). Hashes are 32 bytes. */

import { joined, sameBytes } from "./bytes.mjs";

const NODE = Uint8Array.of(1);

async function nodeOf(left, right) {
  const digest = await crypto.subtle.digest("SHA-256", joined(NODE, left, right));
  return new Uint8Array(digest);
}

/**
 * The complete subtrees over `leaves`, whose first has the index `before`.
 * `frontier`: the roots of the complete subtrees below `before`, largest first, or none.
 * Gives a list by height of {start, nodes}, or null where the frontier does not fit.
 */
export async function subtreesOf(leaves, before, frontier) {
  const seeds = new Map();
  const heights = heightsOf(before);
  if (heights.length !== frontier.length) return null;
  heights.forEach((height, at) => seeds.set(height, frontier[at]));
  const levels = [];
  for (
    let start = before, nodes = leaves, height = 0;
    nodes.length > 0 || seeds.size > 0;
    height += 1
  ) {
    if (seeds.has(height)) {
      nodes = [seeds.get(height), ...nodes];
      start -= 1;
      seeds.delete(height);
    }
    levels.push({ start, nodes });
    const pairs = Array.from({ length: Math.floor(nodes.length / 2) }, (_, at) =>
      nodeOf(nodes[2 * at], nodes[2 * at + 1]),
    );
    nodes = await Promise.all(pairs);
    start = Math.floor(start / 2);
  }
  return levels;
}

/** The heights of the complete subtrees that a size consists of, largest first. */
function heightsOf(size) {
  const heights = [];
  for (let left = size, height = 0; left > 0; left = Math.floor(left / 2), height += 1) {
    if (left % 2 === 1) heights.unshift(height);
  }
  return heights;
}

/** The root at `size`, of the subtrees that `subtreesOf` gave. */
export async function rootAt(levels, size) {
  let root = null;
  for (let left = size, height = 0; left > 0; left = Math.floor(left / 2), height += 1) {
    if (left % 2 === 0) continue;
    const { start, nodes } = levels[height];
    const node = nodes[left - 1 - start];
    root = root === null ? node : await nodeOf(node, root);
  }
  return root;
}

/** Whether the record with this leaf hash stands at `index` in a tree (RFC 9162 §2.1.3.2). */
export async function includes({ index, path }, leaf, { size, root }) {
  if (index >= size) return false;
  let [at, last, hash] = [index, size - 1, leaf];
  for (const other of path) {
    if (last === 0) return false;
    if (at % 2 === 1 || at === last) {
      hash = await nodeOf(other, hash);
      [at, last] = climbed(at, last);
    } else hash = await nodeOf(hash, other);
    [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  }
  return last === 0 && sameBytes(hash, root);
}

/** Up the right edge of a tree, past the levels at which a node has no sibling. */
function climbed(at, last) {
  let [one, other] = [at, last];
  while (one % 2 === 0 && one !== 0) [one, other] = [one / 2, Math.floor(other / 2)];
  return [one, other];
}

/** Whether a newer tree extends an older one (RFC 9162 §2.1.4.2). */
export async function extendsTree(older, newer, path) {
  if (older.size > newer.size) return false;
  if (older.size === newer.size) return path.length === 0 && sameBytes(older.root, newer.root);
  let [at, last] = [older.size - 1, newer.size - 1];
  while (at % 2 === 1) [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  const hashes = at === 0 ? [older.root, ...path] : path;
  if (hashes.length === 0) return false;
  let [was, is] = [hashes[0], hashes[0]];
  for (const other of hashes.slice(1)) {
    if (last === 0) return false;
    if (at % 2 === 1 || at === last) {
      [was, is] = [await nodeOf(other, was), await nodeOf(other, is)];
      [at, last] = climbed(at, last);
    } else is = await nodeOf(is, other);
    [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  }
  return last === 0 && sameBytes(was, older.root) && sameBytes(is, newer.root);
}
