/* Base64 of RFC 4648 §4 in its one form (spec §13.2). */

/** The bytes of a base64 text with padding and no spare bits, or null. */
export function fromBase64(text) {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) return null;
  const letters = atob(text);
  if (btoa(letters) !== text) return null;
  return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
}
