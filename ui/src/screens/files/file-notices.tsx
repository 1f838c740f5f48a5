// What is to be known of a file before one goes on: what waits, what others did, what went wrong.

import { useQuery } from "@tanstack/react-query";
import { AlertTriangle, GitMerge, Info, KeyRound, Lock, TriangleAlert } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Link } from "react-router";
import { useAuthorNames } from "../../api/authors";
import { type FileScope, historyQuery } from "../../api/files";
import { toSentence } from "../../api/problem";
import { Button } from "../../components/button";
import { ReviewDialog } from "../review/review-dialog";
import type { OpenFileProps } from "./file-pane";
import type { Draft } from "./use-draft";
import type { useSaveFile } from "./use-save-file";

interface FileNoticesProps extends OpenFileProps {
  draft: Draft;
  saving: ReturnType<typeof useSaveFile>;
  isManaged: boolean;
}

export function FileNotices(props: FileNoticesProps) {
  const { scope, row, isDeleted, canWrite, draft, saving, isManaged, pairingUrl } = props;
  return (
    <div className="file-notices">
      {row.file.error && (
        <Notice kind="bad" icon={AlertTriangle}>
          {toSentence(row.file.error)}
        </Notice>
      )}
      {scope.kind === "agent" && row.file.updateAvailable && <UpdateNotice {...props} />}
      {isManaged && <ManagedNotice url={pairingUrl} />}
      {!canWrite && !isManaged && (
        <Notice icon={Lock}>You can read this file. Owners and admins change it.</Notice>
      )}
      {draft.newer && (
        <NewerVersionNotice
          scope={scope}
          path={row.path}
          onCompare={() =>
            saving.setConflict({
              base: draft.base.content ?? "",
              mine: draft.text(),
              theirs: draft.newer,
            })
          }
        />
      )}
      {isDeleted && (
        <Notice kind="update" icon={TriangleAlert}>
          This file was deleted meanwhile. {canWrite && "Its text is still here: "}
          {canWrite && "saving makes the file anew."}
        </Notice>
      )}
      {saving.warning && <SecretsNotice warning={saving.warning} />}
      {saving.problem && (
        <Notice kind="bad" icon={AlertTriangle} isAlert>
          <strong>Not saved.</strong> {toSentence(saving.problem)}
        </Notice>
      )}
    </div>
  );
}

interface NoticeProps {
  kind?: "bad" | "update";
  icon: typeof Info;
  isAlert?: boolean;
  action?: ReactNode;
  children: ReactNode;
}

function Notice({ kind, icon: Icon, isAlert, action, children }: NoticeProps) {
  return (
    <div className={`notice ${kind ?? ""}`} role={isAlert ? "alert" : "status"}>
      <Icon size={16} aria-hidden />
      <div className="grow">{children}</div>
      {action}
    </div>
  );
}

/** The layers beneath offer something newer than was reviewed. */
function UpdateNotice({ scope, row, canWrite }: FileNoticesProps) {
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
      {isOpen && <ReviewDialog agentId={scope.id} path={row.path} onClose={() => setOpen(false)} />}
    </>
  );
}

const ManagedNotice = ({ url }: { url?: string }) => (
  <Notice icon={Info}>
    Carrel writes this file from the profile of the paired person, and writes it anew when the
    profile or the pairing changes. It is changed there, not here:{" "}
    {url && (
      <>
        <Link to={url}>the pairing</Link>,{" "}
      </>
    )}
    <Link to="/settings/people">the person’s profile</Link>.
  </Notice>
);

function NewerVersionNotice({
  scope,
  path,
  onCompare,
}: {
  scope: FileScope;
  path: string;
  onCompare: () => void;
}) {
  const authorName = useAuthorNames();
  const { data } = useQuery(historyQuery(scope, path));
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
      <strong>Changed {newest ? `by ${authorName(newest.author)} ` : ""}meanwhile.</strong> Your
      text is untouched. Saving shows both, and you choose.
    </Notice>
  );
}

function SecretsNotice({ warning }: { warning: string }) {
  return (
    <Notice kind="update" icon={KeyRound} isAlert>
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
