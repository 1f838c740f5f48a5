/** References of the API's comparison, as fields of a form. */

export const KINDS = {
  agent: "Agent",
  template: "Template",
  defaults: "Defaults",
  run: "Run",
  workspace: "Workspace",
} as const;
export type ReferenceKind = keyof typeof KINDS;

export interface Reference {
  kind: ReferenceKind;
  name: string;
  /** One file; all files if empty. */
  path: string;
  /** A time in UTC, or v and a number for a version of the file; now if empty. */
  moment: string;
}

const MOMENT = /@(now|v[1-9]\d*|\d{4}-\d\d-\d\dT[^@]*)$/;

export function parseReference(text: string): Reference {
  const moment = MOMENT.exec(text)?.[1] ?? "";
  const rest = text.replace(MOMENT, "");
  const slash = rest.indexOf("/");
  const owner = slash < 0 ? rest : rest.slice(0, slash);
  const [kind = "", ...names] = owner.split(":");
  return {
    kind: kind in KINDS ? (kind as ReferenceKind) : "agent",
    name: names.join(":"),
    path: slash < 0 ? "" : rest.slice(slash + 1),
    moment: moment === "now" ? "" : moment,
  };
}

export function formatReference({ kind, name, path, moment }: Reference): string {
  const owner = kind === "defaults" ? kind : `${kind}:${name.trim()}`;
  const file = path.trim() && `/${path.trim()}`;
  if (kind === "run") return owner + file;
  // Without a moment, the end of a path could be taken for one.
  const at = moment || (MOMENT.test(file) ? "now" : "");
  return owner + file + (at && `@${at}`);
}

export const isComplete = ({ kind, name }: Reference) => kind === "defaults" || name.trim() !== "";

/** Value of an input of a local time for a UTC time, and back. */
export const toLocalInput = (moment: string) => {
  const time = new Date(moment);
  if (!moment || Number.isNaN(time.getTime())) return "";
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
};

export const fromLocalInput = (value: string) =>
  value ? new Date(value).toISOString().replace(".000Z", "Z") : "";

export const compareUrl = (left: string, right = "") => {
  const params = new URLSearchParams({ left, ...(right && { right }) });
  return `/compare?${params}`;
};
