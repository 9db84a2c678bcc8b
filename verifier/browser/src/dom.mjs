/* Elements of the page. Text enters it in this file only, and only as text. */

/** An element with attributes and children: nodes, texts, or null for none. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value !== null) made.setAttribute(attribute, value);
  }
  made.append(...children.flat().filter((child) => child !== null));
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
    { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
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

/** Unix milliseconds as a UTC time. */
export function utc(at) {
  if (at === null || at > 8.64e15) return "unknown";
  return new Date(at).toISOString();
}
