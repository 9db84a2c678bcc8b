/* JSON pointers (RFC 6901) into the values of the strict reader. */

/** What stands at `pointer`, as {value}, or null where nothing does. */
export function valueAt(document, pointer) {
  let value = document;
  for (const step of stepsOf(pointer)) {
    if (value instanceof Map && value.has(step)) value = value.get(step);
    else if (Array.isArray(value) && isIndex(step, value.length)) value = value[Number(step)];
    else return null;
  }
  return { value };
}

export function stepsOf(pointer) {
  if (pointer === "") return [];
  const steps = pointer.slice(1).split("/");
  return steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function isIndex(step, length) {
  return /^(?:0|[1-9][0-9]*)$/.test(step) && Number(step) < length;
}
