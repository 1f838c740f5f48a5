// What can be done with a run: do it again, end it, let go of what it holds.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { RotateCcw, Square, Trash2 } from "lucide-react";
import { useState } from "react";
import { useNavigate } from "react-router";
import { deleteSnapshot, endRun, type Run, type RunStatus, startRun } from "../../api/runs";
import { hasPermission } from "../../api/session";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { Field } from "../../components/field";
import { toast } from "../../components/toast";
import { useSession } from "../../layout/session-context";

export function RunActions({ run }: { run: Run }) {
  const [open, setOpen] = useState<"end" | "let go" | null>(null);
  const close = () => setOpen(null);
  const replay = useReplay(run.runId);
  if (!hasPermission(useSession(), "runs:write")) return null;
  return (
    <>
      {run.kept && (
        <Button icon={RotateCcw} busy={replay.isPending} onClick={() => replay.mutate()}>
          Replay
        </Button>
      )}
      {run.status === "running" ? (
        <Button icon={Square} onClick={() => setOpen("end")}>
          End run
        </Button>
      ) : (
        run.kept && (
          <Button kind="danger" icon={Trash2} onClick={() => setOpen("let go")}>
            Let go
          </Button>
        )
      )}
      {open === "end" && <EndRunDialog run={run} onClose={close} />}
      {open === "let go" && <DeleteSnapshotDialog run={run} onClose={close} />}
    </>
  );
}

function useReplay(id: string) {
  const navigate = useNavigate();
  return useMutation({
    mutationFn: () => startRun({ replayOf: id }),
    onSuccess: ({ runId }) => {
      toast("A replay was started: it sees the very same files.");
      navigate(`/runs/${encodeURIComponent(runId)}`);
    },
  });
}

/** Changes the run, shows what became of it, and closes the dialog. */
function useRunMutation(change: () => Promise<Run>, successText: string, onClose: () => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: (run) => {
      queries.setQueryData(["run", run.runId], run);
      void queries.invalidateQueries({ queryKey: ["runs"] });
      toast(successText);
      onClose();
    },
  });
}

const END_STATUSES: RunStatus[] = ["completed", "failed", "cancelled"];

function EndRunDialog({ run, onClose }: { run: Run; onClose: () => void }) {
  const [status, setStatus] = useState<RunStatus>("completed");
  const end = useRunMutation(() => endRun(run.runId, status), `The run is ${status}.`, onClose);
  return (
    <Confirm
      title="End this run"
      action="End run"
      busy={end.isPending}
      onConfirm={() => end.mutate()}
      onClose={onClose}
    >
      <p>An ended run stays as it ended.</p>
      <Field label="How did it end?">
        <select
          className="input"
          value={status}
          onChange={(event) => setStatus(event.target.value as RunStatus)}
        >
          {END_STATUSES.map((option) => (
            <option key={option}>{option}</option>
          ))}
        </select>
      </Field>
    </Confirm>
  );
}

function DeleteSnapshotDialog({ run, onClose }: { run: Run; onClose: () => void }) {
  const remove = useRunMutation(
    () => deleteSnapshot(run.runId),
    "The snapshot was let go.",
    onClose,
  );
  return (
    <Confirm
      title="Let go of this snapshot?"
      action="Let go"
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>
        There is no way back: its files and its prompt cannot be looked at any more, and it cannot
        be replayed. Replays that were started before keep what they hold.
      </p>
    </Confirm>
  );
}
