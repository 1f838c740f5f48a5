// Texts of others, made fit to be shown in a line: what they say, and nothing that it does.

const INVISIBLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is to be shown
  /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;

/** A name in one line, what is invisible or turns the writing around shown by a mark, not too long. */
export function plain(text: string, most = 200): string {
  const shown = text.replace(INVISIBLE, "\u2423");
  return shown.length > most ? `${shown.slice(0, most)}…` : shown;
}
