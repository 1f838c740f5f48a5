// Updates of the defaults from the packaged version.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { PackageCheck, PackageOpen } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";
import { DEFAULTS, fileUrl } from "../../api/files";
import { isAdmin } from "../../api/session";
import { type DefaultsStatus, updateDefaults } from "../../api/templates";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { toast } from "../../components/toast";
import { useSession } from "../../layout/session-context";

type Answer = "take" | "keep";

const updatesAutomatically = ({ state }: DefaultsStatus["files"][number]) =>
  state === "new" || state === "behind";

export function PackagedDefaults({ status }: { status: DefaultsStatus }) {
  const [isOpen, setOpen] = useState(false);
  const admin = isAdmin(useSession());
  const offered = status.files.filter((file) => file.offered);
  const automatic = status.files.filter(updatesAutomatically);
  const edited = status.files.filter(({ state }) => state === "edited" || state === "deleted");
  if (!offered.length && !automatic.length)
    return (
      <p className="row faint">
        <PackageCheck size={15} aria-hidden />
        Up to date with version {status.packaged} of the packaged defaults
        {edited.length > 0 && `; ${edited.length} of ${status.files.length} files changed here`}.
      </p>
    );
  return (
    <div className="notice update" role="status">
      <PackageOpen size={16} aria-hidden />
      <div className="grow">
        <strong>Version {status.packaged} of the packaged defaults is available.</strong>{" "}
        {automatic.length > 0 && `${automatic.length} unedited files will be updated. `}
        {offered.length > 0 && `${offered.length} edited files need a decision.`}
      </div>
      <Button
        small
        disabled={!admin}
        title={admin ? undefined : "Only owners and admins can update"}
        onClick={() => setOpen(true)}
      >
        Update
      </Button>
      {isOpen && <UpdateDialog status={status} onClose={() => setOpen(false)} />}
    </div>
  );
}

function UpdateDialog({ status, onClose }: { status: DefaultsStatus; onClose: () => void }) {
  const queries = useQueryClient();
  const [answers, setAnswers] = useState<Record<string, Answer>>({});
  const offered = status.files.filter((file) => file.offered);
  const automatic = status.files.filter(updatesAutomatically);
  const update = useMutation({
    mutationFn: () => {
      const pathsWith = (answer: Answer) =>
        offered.filter(({ path }) => answers[path] === answer).map(({ path }) => path);
      return updateDefaults({ take: pathsWith("take"), keep: pathsWith("keep") });
    },
    onSuccess: () => {
      toast("Defaults updated");
      void queries.invalidateQueries();
      onClose();
    },
  });
  return (
    <Confirm
      title={`Update defaults to version ${status.packaged}`}
      action="Update"
      busy={update.isPending}
      onConfirm={() => update.mutate()}
      onClose={onClose}
    >
      {automatic.length > 0 && (
        <p>
          Unedited files that will be updated:{" "}
          {automatic.map(({ path }) => escapeText(path, 80)).join(", ")}. Pinned files reach agents
          only after review.
        </p>
      )}
      {offered.map(({ path }) => (
        <fieldset key={path} className="update-option">
          <legend>
            <Link className="mono bidi" to={fileUrl(DEFAULTS, path)} onClick={onClose}>
              {escapeText(path, 120)}
            </Link>
          </legend>
          <UpdateOptions path={path} answers={answers} onAnswer={setAnswers} />
        </fieldset>
      ))}
    </Confirm>
  );
}

const OPTIONS = [
  [undefined, "Decide later"],
  ["take", "Use the new version"],
  ["keep", "Keep ours"],
] as const;

interface UpdateOptionsProps {
  path: string;
  answers: Record<string, Answer>;
  onAnswer: (answers: Record<string, Answer>) => void;
}

function UpdateOptions({ path, answers, onAnswer }: UpdateOptionsProps) {
  const select = (answer: Answer | undefined) => {
    const { [path]: _, ...others } = answers;
    onAnswer(answer ? { ...others, [path]: answer } : others);
  };
  return (
    <div className="row wrap">
      {OPTIONS.map(([answer, label]) => (
        <label key={label} className="check">
          <input
            type="radio"
            name={path}
            checked={answers[path] === answer}
            onChange={() => select(answer)}
          />
          {label}
        </label>
      ))}
    </div>
  );
}
