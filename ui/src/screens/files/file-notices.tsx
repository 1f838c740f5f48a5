// What is to be known of a file before one goes on: what waits, what others did, what went wrong.

import { useQuery } from "@tanstack/react-query";
import { AlertTriangle, GitMerge, Info, KeyRound, Lock, TriangleAlert } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Link } from "react-router";
import { useAuthors } from "../../api/authors";
import { historyQuery, type Place } from "../../api/files";
import { sentence } from "../../api/problem";
import { Button } from "../../components/button";
import { ReviewDialog } from "../review/review-dialog";
import type { FoundProps } from "./file-pane";
import type { Draft } from "./use-draft";
import type { useSaving } from "./use-save-file";

interface NoticesProps extends FoundProps {
  draft: Draft;
  saving: ReturnType<typeof useSaving>;
  managed: boolean;
}

export function Notices(props: NoticesProps) {
  const { place, row, gone, canWrite, draft, saving, managed, humanAddress } = props;
  return (
    <div className="file-notices">
      {row.file.error && (
        <Notice kind="bad" icon={AlertTriangle}>
          {sentence(row.file.error)}
        </Notice>
      )}
      {place.kind === "agent" && row.file.updateAvailable && <Waiting {...props} />}
      {managed && <Managed address={humanAddress} />}
      {!canWrite && !managed && (
        <Notice icon={Lock}>You can read this file. Owners and admins change it.</Notice>
      )}
      {draft.meanwhile && (
        <Meanwhile
          place={place}
          path={row.path}
          onCompare={() =>
            saving.setConflict({
              base: draft.base.content ?? "",
              mine: draft.text(),
              theirs: draft.meanwhile,
            })
          }
        />
      )}
      {gone && (
        <Notice kind="update" icon={TriangleAlert}>
          This file was deleted meanwhile. {canWrite && "Its text is still here: "}
          {canWrite && "saving makes the file anew."}
        </Notice>
      )}
      {saving.warning && <Secrets warning={saving.warning} />}
      {saving.problem && (
        <Notice kind="bad" icon={AlertTriangle} alert>
          <strong>Not saved.</strong> {sentence(saving.problem)}
        </Notice>
      )}
    </div>
  );
}

interface NoticeProps {
  kind?: "bad" | "update";
  icon: typeof Info;
  alert?: boolean;
  action?: ReactNode;
  children: ReactNode;
}

function Notice({ kind, icon: Icon, alert, action, children }: NoticeProps) {
  return (
    <div className={`notice ${kind ?? ""}`} role={alert ? "alert" : "status"}>
      <Icon size={16} aria-hidden />
      <div className="grow">{children}</div>
      {action}
    </div>
  );
}

/** The layers beneath offer something newer than was reviewed. */
function Waiting({ place, row, canWrite }: NoticesProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Notice
        kind="update"
        icon={TriangleAlert}
        action={
          <Button small onClick={() => setOpen(true)} disabled={!row.pinned}>
            Review
          </Button>
        }
      >
        <strong>Update available.</strong> What lies beneath has changed since this was reviewed.
        {!canWrite && " Owners and admins accept it."}
      </Notice>
      {isOpen && <ReviewDialog agentId={place.id} path={row.path} onClose={() => setOpen(false)} />}
    </>
  );
}

const Managed = ({ address }: { address?: string }) => (
  <Notice icon={Info}>
    Carrel writes this file from the profile of the paired person, and writes it anew when the
    profile or the pairing changes. It is changed there, not here:{" "}
    {address && (
      <>
        <Link to={address}>the pairing</Link>,{" "}
      </>
    )}
    <Link to="/settings/people">the person’s profile</Link>.
  </Notice>
);

function Meanwhile({
  place,
  path,
  onCompare,
}: {
  place: Place;
  path: string;
  onCompare: () => void;
}) {
  const author = useAuthors();
  const { data } = useQuery(historyQuery(place, path));
  const newest = data?.items[0];
  return (
    <Notice
      kind="update"
      icon={GitMerge}
      action={
        <Button small onClick={onCompare}>
          Compare
        </Button>
      }
    >
      <strong>Changed {newest ? `by ${author(newest.author)} ` : ""}meanwhile.</strong> Your text is
      untouched. Saving shows both, and you choose.
    </Notice>
  );
}

function Secrets({ warning }: { warning: string }) {
  return (
    <Notice kind="update" icon={KeyRound} alert>
      {warning === "redacted" ? (
        <>
          <strong>A secret was taken out.</strong> What is stored says <code>[REDACTED:…]</code> in
          its place.
        </>
      ) : (
        <>
          <strong>Saved, but look again:</strong> it {warning}.
        </>
      )}
    </Notice>
  );
}
