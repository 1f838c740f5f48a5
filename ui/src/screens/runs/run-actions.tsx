// Actions of a run: replay, end, delete snapshot.

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
  const [open, setOpen] = useState<"end" | "delete snapshot" | null>(null);
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
          <Button kind="danger" icon={Trash2} onClick={() => setOpen("delete snapshot")}>
            Delete snapshot
          </Button>
        )
      )}
      {open === "end" && <EndRunDialog run={run} onClose={close} />}
      {open === "delete snapshot" && <DeleteSnapshotDialog run={run} onClose={close} />}
    </>
  );
}

function useReplay(id: string) {
  const navigate = useNavigate();
  return useMutation({
    mutationFn: () => startRun({ replayOf: id }),
    onSuccess: ({ runId }) => {
      toast("Replay started with the same snapshot");
      navigate(`/runs/${encodeURIComponent(runId)}`);
    },
  });
}

/** Changes the run, updates its query and closes the dialog. */
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
  const end = useRunMutation(() => endRun(run.runId, status), `Run ${status}`, onClose);
  return (
    <Confirm
      title="End run"
      action="End run"
      busy={end.isPending}
      onConfirm={() => end.mutate()}
      onClose={onClose}
    >
      <p>The status cannot be changed afterwards.</p>
      <Field label="Status">
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
  const remove = useRunMutation(() => deleteSnapshot(run.runId), "Snapshot deleted", onClose);
  return (
    <Confirm
      title="Delete snapshot?"
      action="Delete snapshot"
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>
        Files and prompt of this run will no longer be available, and it cannot be replayed.
        Existing replays keep their snapshot. This cannot be undone.
      </p>
    </Confirm>
  );
}
