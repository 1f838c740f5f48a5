// Validation of file paths, as on the server.

const encoder = new TextEncoder();
const byteLength = (text: string) => encoder.encode(text).length;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are rejected
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;

const LONE_SURROGATE = /\p{Cs}/u;

/** Why a path is invalid; null if it is valid. */
export function validatePath(input: string): string | null {
  const path = input.normalize("NFC");
  if (!path) return "Enter a path, for example notes/rules.md.";
  if (LONE_SURROGATE.test(path)) return "Not valid Unicode.";
  if (CONTROL.test(path)) return "Control characters are not allowed.";
  if (path.includes("\\")) return "Use / instead of a backslash.";
  if (path.startsWith("/")) return "Paths are relative: remove the leading /.";
  if (path.endsWith("/")) return "Add a file name after the last /.";
  if (byteLength(path) > 1024) return "Longer than 1,024 bytes.";
  for (const segment of path.split("/")) {
    if (!segment) return "Two / in a row are not allowed.";
    if (segment === "." || segment === "..")
      return `“${segment}” is not allowed as a path segment.`;
    if (byteLength(segment) > 255) return "A path segment is longer than 255 bytes.";
  }
  return null;
}

export const fileName = (path: string) => path.slice(path.lastIndexOf("/") + 1);
