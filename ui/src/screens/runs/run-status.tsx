// What has become of a run, by a word, a sign and a colour.

import { CheckCircle2, CircleSlash, LoaderCircle, type LucideIcon, XCircle } from "lucide-react";
import type { Status } from "../../api/runs";

export const STATUSES: Status[] = ["running", "completed", "failed", "cancelled"];

const LOOKS: Record<Status, { icon: LucideIcon; look: string }> = {
  running: { icon: LoaderCircle, look: "accent" },
  completed: { icon: CheckCircle2, look: "good" },
  failed: { icon: XCircle, look: "bad" },
  cancelled: { icon: CircleSlash, look: "" },
};

export function RunStatus({ status }: { status: Status }) {
  const { icon: Icon, look } = LOOKS[status];
  return (
    <span className={`badge ${look}`}>
      <Icon size={13} aria-hidden />
      {status}
    </span>
  );
}
