/* Elements of the page. Text enters it in this file only, and only as text. */

/** An element with attributes and children: nodes, texts, or null for none. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value !== null) made.setAttribute(attribute, value);
  }
  for (const child of children.flat()) if (child !== null) made.append(child);
  return made;
}

/** Puts `children` in place of everything in `parent`. */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat().filter((child) => child !== null));
}

export function byId(id) {
  return document.getElementById(id);
}

/** A button that calls `act`. */
export function button(label, act, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", act);
  return made;
}

/** A table with a caption, column heads and rows of cells; the first cell of a row is its head. */
export function table(caption, heads, rows) {
  const cells = ([first, ...rest]) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, first),
      rest.map((cell) => element("td", {}, cell)),
    );
  return element(
    "div",
    { class: "wide", tabindex: "0", role: "group", "aria-label": caption },
    element(
      "table",
      {},
      element("caption", {}, caption),
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          heads.map((head) => element("th", { scope: "col" }, head)),
        ),
      ),
      element("tbody", {}, rows.map(cells)),
    ),
  );
}

const STRING = /"(?:\n\\|\\.|[^"\\\n])*"/gu; // of spec §9.1, over the lines in which it is cut

/**
 * The parts of a text whose strings stand alone: letters that run from right to left in one turn
 * nothing behind it around.
 */
export function isolated(text) {
  return pieces(text).map(([piece, isString]) => (isString ? alone(piece) : piece));
}

/** The lines of such a text as blocks: a browser takes its time over one of very many lines. */
export function isolatedLines(text) {
  const lines = [[]];
  for (const [piece, isString] of pieces(text)) {
    piece.split("\n").forEach((part, at) => {
      if (at > 0) {
        lines.at(-1).push("\n");
        lines.push([]);
      }
      lines.at(-1).push(isString ? alone(part) : part);
    });
  }
  return lines.map((parts) => element("span", { class: "line" }, parts));
}

function alone(string) {
  return element("bdi", {}, string);
}

/** The pieces of a text, each with whether it is a string. */
function pieces(text) {
  const found = [];
  let at = 0;
  for (const { 0: string, index } of text.matchAll(STRING)) {
    found.push([text.slice(at, index), false], [string, true]);
    at = index + string.length;
  }
  return [...found, [text.slice(at), false]];
}

/** Unix milliseconds as a UTC time. */
export function utc(at) {
  if (at === null || at > 8.64e15) return "unknown";
  return new Date(at).toISOString();
}
