// What may be the path of a file, as the server has it.

const encoder = new TextEncoder();
const byteLength = (text: string) => encoder.encode(text).length;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;

const LONE_SURROGATE = /\p{Cs}/u;

/** Why a text cannot be the path of a file; null where it can. */
export function validatePath(input: string): string | null {
  const path = input.normalize("NFC");
  if (!path) return "Give it a name, such as notes/house-rules.md.";
  if (LONE_SURROGATE.test(path)) return "It is not valid Unicode.";
  if (CONTROL.test(path)) return "It holds a control character.";
  if (path.includes("\\")) return "Use / between folders, not a backslash.";
  if (path.startsWith("/")) return "It begins with /: paths are relative.";
  if (path.endsWith("/")) return "It ends in /: a file needs a name, and its folders come with it.";
  if (byteLength(path) > 1024) return "It is longer than 1,024 bytes.";
  for (const segment of path.split("/")) {
    if (!segment) return "It has two / in a row.";
    if (segment === "." || segment === "..") return `It has a “${segment}” in it.`;
    if (byteLength(segment) > 255) return "A part of it is longer than 255 bytes.";
  }
  return null;
}

export const fileName = (path: string) => path.slice(path.lastIndexOf("/") + 1);
