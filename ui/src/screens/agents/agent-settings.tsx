// Settings of an agent: identity, owner, template and config.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { type Agent, deleteAgent } from "../../api/agents";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { Field } from "../../components/field";
import { useTitle } from "../../components/screen";
import { toast } from "../../components/toast";
import { DISCARD_DRAFTS } from "../../components/unsaved-changes-guard";
import { useSession } from "../../layout/session-context";
import { useAgent } from "./agent-context";
import {
  DreamingSettings,
  OtherConfigSettings,
  RuntimeSettings,
  SandboxSettings,
} from "./config-settings";
import {
  HumanSettings,
  NameSettings,
  SharingSettings,
  TemplateSettings,
} from "./identity-settings";

export default function AgentSettings() {
  useTitle("Settings");
  const agent = useAgent();
  const admin = isAdmin(useSession());
  return (
    <section className="agent-settings" aria-label="Settings" key={agent.id}>
      {!admin && <div className="notice">Read-only: only owners and admins can change agents.</div>}
      <NameSettings agent={agent} />
      <HumanSettings agent={agent} />
      <TemplateSettings agent={agent} />
      <SharingSettings agent={agent} />
      <RuntimeSettings agent={agent} />
      <SandboxSettings agent={agent} />
      <DreamingSettings agent={agent} />
      <OtherConfigSettings agent={agent} />
      {admin && <DeleteAgentCard agent={agent} />}
    </section>
  );
}

function DeleteAgentCard({ agent }: { agent: Agent }) {
  const [isConfirming, setConfirming] = useState(false);
  return (
    <section className="card">
      <header>
        <h2 className="grow">Delete agent</h2>
        <Button kind="danger" onClick={() => setConfirming(true)}>
          Delete…
        </Button>
      </header>
      <p className="card-body soft">
        The agent is no longer available, and its API keys stop working. Runs with a snapshot can
        still be replayed.
      </p>
      {isConfirming && <DeleteAgentDialog agent={agent} onClose={() => setConfirming(false)} />}
    </section>
  );
}

function DeleteAgentDialog({ agent, onClose }: { agent: Agent; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const navigate = useNavigate();
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () => deleteAgent(agent.id),
    onSuccess: () => {
      queries.removeQueries({ queryKey: ["agent", agent.id] });
      void queries.invalidateQueries();
      toast("Agent deleted");
    },
  });
  // Leave the agent's pages first: their queries would fail after the delete.
  const leaveAndDelete = async () => {
    await navigate("/agents", { flushSync: true, state: DISCARD_DRAFTS });
    remove.mutate();
  };
  const matches = typed === agent.slug;
  const footer = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="danger" type="submit" disabled={!matches}>
        Delete agent
      </Button>
    </>
  );
  return (
    <Dialog
      title={`Delete ${escapeText(agent.name, 60)}?`}
      onClose={onClose}
      onSubmit={() => matches && void leaveAndDelete()}
      unguarded
      footer={footer}
    >
      <p>Its files, memories and items will no longer be available. This cannot be undone.</p>
      <Field label={`Type ${agent.slug} to confirm`}>
        <input
          className="input mono"
          autoComplete="off"
          spellCheck={false}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
      </Field>
    </Dialog>
  );
}
