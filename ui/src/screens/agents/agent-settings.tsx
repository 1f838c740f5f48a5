// All that can be said of an agent itself: who it is, whom it works for, and how it is set up.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { type Agent, deleteAgent } from "../../api/agents";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { Field } from "../../components/field";
import { toast } from "../../components/toast";
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
  const agent = useAgent();
  const admin = isAdmin(useSession());
  return (
    <section className="agent-settings" aria-label="Settings" key={agent.id}>
      {!admin && (
        <div className="notice">Only an owner or an admin changes agents: you may read.</div>
      )}
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
        <h2 className="grow">Delete the agent</h2>
        <Button kind="danger" onClick={() => setConfirming(true)}>
          Delete…
        </Button>
      </header>
      <p className="inside soft">
        It is gone for those who ask for it, and the keys that are bound to it stop working. Runs
        that were kept can still be replayed.
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
      toast("The agent is deleted.");
    },
  });
  // Whoever is gone cannot be looked at: leave first.
  const leaveAndDelete = async () => {
    await navigate("/agents", { flushSync: true });
    remove.mutate();
  };
  const matches = typed === agent.slug;
  const footer = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="danger" type="submit" disabled={!matches}>
        Delete for good
      </Button>
    </>
  );
  return (
    <Dialog
      title={`Delete ${escapeText(agent.name, 60)}?`}
      onClose={onClose}
      onSubmit={() => matches && void leaveAndDelete()}
      footer={footer}
    >
      <p>Its files, memories and items are no longer served to anybody.</p>
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
