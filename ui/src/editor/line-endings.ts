// The editor knows one way to end a line; what is saved keeps the way that the file had.

/** How most lines of a text end. */
export function endingOf(text: string): "\n" | "\r\n" | "\r" {
  const both = text.split("\r\n").length - 1;
  const feeds = text.split("\n").length - 1 - both;
  const returns = text.split("\r").length - 1 - both;
  if (both > feeds && both >= returns) return "\r\n";
  return returns > feeds ? "\r" : "\n";
}

export const forEditing = (text: string) => text.replace(/\r\n?/g, "\n");

export const asStored = (text: string, ending: string) =>
  ending === "\n" ? text : text.replaceAll("\n", ending);
