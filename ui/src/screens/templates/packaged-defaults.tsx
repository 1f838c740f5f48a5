// How the defaults stand to those that Carrel comes with: what follows by itself, what is offered.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { PackageCheck, PackageOpen } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";
import { addressOf, DEFAULTS } from "../../api/files";
import { isAdmin } from "../../api/session";
import { type DefaultsStatus, updateDefaults } from "../../api/templates";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { plain } from "../../components/escape-text";
import { toast } from "../../components/toast";
import { useSession } from "../../layout/session-context";

type Answer = "take" | "keep";

const follows = ({ state }: DefaultsStatus["files"][number]) =>
  state === "new" || state === "behind";

export function PackagedDefaults({ status }: { status: DefaultsStatus }) {
  const [isOpen, setOpen] = useState(false);
  const admin = isAdmin(useSession());
  const offered = status.files.filter((file) => file.offered);
  const following = status.files.filter(follows);
  const edited = status.files.filter(({ state }) => state === "edited" || state === "deleted");
  if (!offered.length && !following.length)
    return (
      <p className="row faint">
        <PackageCheck size={15} aria-hidden />
        Up to date with version {status.packaged} of the packaged defaults
        {edited.length > 0 && `; ${edited.length} of ${status.files.length} changed here, and kept`}
        .
      </p>
    );
  return (
    <div className="notice update" role="status">
      <PackageOpen size={16} aria-hidden />
      <div className="grow">
        <strong>Version {status.packaged} of the packaged defaults is here.</strong>{" "}
        {following.length > 0 && `${following.length} that nobody edited will follow. `}
        {offered.length > 0 &&
          `${offered.length} that you edited are offered, and stay as they are until you take them.`}
      </div>
      <Button
        small
        disabled={!admin}
        title={admin ? undefined : "For owners and admins"}
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
  const following = status.files.filter(follows);
  const update = useMutation({
    mutationFn: () => {
      const of = (answer: Answer) =>
        offered.filter(({ path }) => answers[path] === answer).map(({ path }) => path);
      return updateDefaults({ take: of("take"), keep: of("keep") });
    },
    onSuccess: () => {
      toast("The defaults are brought up.");
      void queries.invalidateQueries();
      onClose();
    },
  });
  return (
    <Confirm
      title={`Update the defaults to version ${status.packaged}`}
      action="Update"
      busy={update.isPending}
      onConfirm={() => update.mutate()}
      onClose={onClose}
    >
      {following.length > 0 && (
        <p>
          These follow, since nobody edited them:{" "}
          {following.map(({ path }) => plain(path, 80)).join(", ")}. Pinned ones reach agents only
          after a review.
        </p>
      )}
      {offered.map(({ path }) => (
        <fieldset key={path} className="offer">
          <legend>
            <Link className="mono bidi" to={addressOf(DEFAULTS, path)} onClick={onClose}>
              {plain(path, 120)}
            </Link>
          </legend>
          <Choice path={path} answers={answers} onAnswer={setAnswers} />
        </fieldset>
      ))}
    </Confirm>
  );
}

const CHOICES = [
  [undefined, "Decide later"],
  ["take", "Take the new one in place of ours"],
  ["keep", "Keep ours, and ask no more"],
] as const;

interface ChoiceProps {
  path: string;
  answers: Record<string, Answer>;
  onAnswer: (answers: Record<string, Answer>) => void;
}

function Choice({ path, answers, onAnswer }: ChoiceProps) {
  const choose = (answer: Answer | undefined) => {
    const { [path]: _, ...others } = answers;
    onAnswer(answer ? { ...others, [path]: answer } : others);
  };
  return (
    <div className="row wrap">
      {CHOICES.map(([answer, label]) => (
        <label key={label} className="check">
          <input
            type="radio"
            name={path}
            checked={answers[path] === answer}
            onChange={() => choose(answer)}
          />
          {label}
        </label>
      ))}
    </div>
  );
}
