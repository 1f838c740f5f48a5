// Actions of a run: replay, end, delete snapshot.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { GitCompare, RotateCcw, Square, Trash2 } from "lucide-react";
import { useState } from "react";
import { useNavigate } from "react-router";
import { deleteSnapshot, endRun, type Run, type RunStatus, startRun } from "../../api/runs";
import { hasPermission } from "../../api/session";
import { Button, ButtonLink } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { Field } from "../../components/field";
import { toast } from "../../components/toast";
import { useSession } from "../../layout/session-context";
import { compareUrl } from "../compare/references";

export function RunActions({ run }: { run: Run }) {
  const [open, setOpen] = useState<"replay" | "end" | "delete snapshot" | null>(null);
  const close = () => setOpen(null);
  if (!hasPermission(useSession(), "runs:write")) return <CompareLink run={run} />;
  return (
    <>
      <CompareLink run={run} />
      {run.kept && (
        <Button icon={RotateCcw} onClick={() => setOpen("replay")}>
          Replay
        </Button>
      )}
      {run.status === "running" || run.status === "abandoned" ? (
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
      {open === "replay" && <ReplayDialog run={run} onClose={close} />}
      {open === "end" && <EndRunDialog run={run} onClose={close} />}
      {open === "delete snapshot" && <DeleteSnapshotDialog run={run} onClose={close} />}
    </>
  );
}

function CompareLink({ run }: { run: Run }) {
  if (!run.kept) return null;
  const right = run.replayOf ? `run:${run.replayOf}` : run.agentId && `agent:${run.agentId}@now`;
  return (
    <ButtonLink icon={GitCompare} to={compareUrl(`run:${run.runId}`, right || "")}>
      Compare
    </ButtonLink>
  );
}

function ReplayDialog({ run, onClose }: { run: Run; onClose: () => void }) {
  const navigate = useNavigate();
  const replay = useMutation({
    mutationFn: () => startRun({ replayOf: run.runId }),
    onSuccess: ({ runId }) => {
      toast("Replay started");
      navigate(`/runs/${encodeURIComponent(runId)}`);
    },
  });
  return (
    <Confirm
      title="Replay this run?"
      action="Start replay"
      busy={replay.isPending}
      onConfirm={() => replay.mutate()}
      onClose={onClose}
    >
      <p>
        Starts a new run with the same snapshot: its {run.workspace.length} files and its prompt are
        the same to the byte, whatever was changed since.
      </p>
      <p>
        Carrel does not execute it. Your runtime drives the new run, with tools that write to the
        live workspace. Without a report it becomes abandoned.
      </p>
    </Confirm>
  );
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
  const [reason, setReason] = useState("");
  const end = useRunMutation(
    () => endRun(run.runId, status, reason.trim()),
    `Run ${status}`,
    onClose,
  );
  return (
    <Confirm
      title="End run"
      action="End run"
      busy={end.isPending}
      onConfirm={() => end.mutate()}
      onClose={onClose}
    >
      <p>The status cannot be changed afterwards.</p>
      {run.status === "abandoned" && (
        <p>The run stopped reporting; its page keeps saying when it was abandoned.</p>
      )}
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
      <Field label="Reason" hint="Optional.">
        <textarea
          className="input"
          rows={2}
          maxLength={4000}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
        />
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
