import { folded } from "./text-match";

const LONGEST = 63;

/** A name as it could stand in an address: letters, digits and dashes. */
export const slugOf = (name: string): string =>
  folded(name)
    .replace(/ß/g, "ss")
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, LONGEST)
    .replace(/^-+|-+$/g, "");

export const isSlug = (text: string): boolean =>
  /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text);
