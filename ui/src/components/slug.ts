import { foldText } from "./text-match";

const MAX_CHARS = 63;

/** Slug of a name: lower-case letters, digits and hyphens. */
export const slugOf = (name: string): string =>
  foldText(name)
    .replace(/ß/g, "ss")
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, MAX_CHARS)
    .replace(/^-+|-+$/g, "");

export const isSlug = (text: string): boolean =>
  /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text);
