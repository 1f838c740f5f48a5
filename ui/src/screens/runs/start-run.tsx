// Starts a run with a snapshot of an agent's workspace.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { toSentence } from "../../api/problem";
import { startRun } from "../../api/runs";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";

export function StartRun({ agentId, onClose }: { agentId: string; onClose: () => void }) {
  const [workflowId, setWorkflow] = useState("");
  const [scope, setScope] = useState("main");
  const queries = useQueryClient();
  const navigate = useNavigate();
  const start = useMutation({
    mutationFn: () => startRun({ agentId, workflowId: workflowId.trim(), scope }),
    meta: { skipErrorToast: true },
    onSuccess: ({ runId }) => {
      void queries.invalidateQueries({ queryKey: ["runs"] });
      navigate(`/runs/${encodeURIComponent(runId)}`);
    },
  });
  const foot = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="primary" type="submit" busy={start.isPending}>
        Start
      </Button>
    </>
  );
  return (
    <Dialog title="Start run" onClose={onClose} onSubmit={() => start.mutate()} footer={foot}>
      <p className="soft">
        Takes a snapshot of the workspace. Carrel does not execute the run: your runtime, or you,
        end it.
      </p>
      <Field label="Workflow" hint="Optional name, for example “daily report”.">
        <input
          className="input"
          maxLength={256}
          value={workflowId}
          onChange={(event) => setWorkflow(event.target.value)}
        />
      </Field>
      <Field
        label="Scope"
        hint="A shared run has no private files."
        error={start.error && toSentence(start.error)}
      >
        <select className="input" value={scope} onChange={(event) => setScope(event.target.value)}>
          <option value="main">main: one person</option>
          <option value="shared">shared: several people</option>
        </select>
      </Field>
    </Dialog>
  );
}
