// Layout of an agent's screens: header and tabs.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Copy, GitCompare } from "lucide-react";
import { useState } from "react";
import { Link, Navigate, Outlet, useLocation, useNavigate, useParams } from "react-router";
import { type Agent, agentQuery, duplicateAgent } from "../../api/agents";
import { pinsQuery } from "../../api/pins";
import { peopleOptionsQuery, templateOptionsQuery } from "../../api/select-options";
import { isAdmin } from "../../api/session";
import { Button, ButtonLink } from "../../components/button";
import { DuplicateDialog } from "../../components/duplicate-dialog";
import { escapeText } from "../../components/escape-text";
import { QueryResult } from "../../components/query-states";
import { Tabs, useTitle } from "../../components/screen";
import { toast } from "../../components/toast";
import { useSession } from "../../layout/session-context";
import { compareUrl } from "../compare/references";

const TABS = [
  { to: "workspace", name: "Workspace" },
  { to: "prompt", name: "Prompt" },
  { to: "runs", name: "Runs" },
  { to: "sessions", name: "Sessions" },
  { to: "memory", name: "Memory" },
  { to: "skills", name: "Skills" },
  { to: "items", name: "Items" },
  { to: "connect", name: "Connect" },
  { to: "settings", name: "Settings" },
];

export default function AgentLayout() {
  const { id = "" } = useParams();
  return (
    <QueryResult query={useQuery(agentQuery(id))}>
      {(agent) => (agent.id === id ? <AgentPage agent={agent} /> : <RedirectToId agent={agent} />)}
    </QueryResult>
  );
}

/** Redirects from the slug to the id, which does not change when the agent is renamed. */
function RedirectToId({ agent }: { agent: Agent }) {
  const { pathname, search } = useLocation();
  useQueryClient().setQueryData(agentQuery(agent.id).queryKey, agent);
  const rest = pathname.split("/").slice(3).join("/");
  return <Navigate to={`/agents/${agent.id}/${rest}${search}`} replace />;
}

function AgentPage({ agent }: { agent: Agent }) {
  useTitle(escapeText(agent.name, 60));
  return (
    <div className="agent-layout">
      <header className="agent-header">
        <div className="row wrap">
          <h1 className="bidi truncate">{escapeText(agent.name, 120)}</h1>
          <span className="badge">{agent.isShared ? "shared" : "private"}</span>
          <PendingUpdatesBadge agent={agent} />
          <span className="grow" />
          <ButtonLink small kind="plain" icon={GitCompare} to={compareUrl(`agent:${agent.slug}`)}>
            Compare
          </ButtonLink>
          <DuplicateButton agent={agent} />
        </div>
        <AgentSummary agent={agent} />
        <Tabs label="Agent" tabs={TABS} />
      </header>
      <div className="agent-body">
        <Outlet context={agent} />
      </div>
    </div>
  );
}

function DuplicateButton({ agent }: { agent: Agent }) {
  const [isOpen, setOpen] = useState(false);
  const queries = useQueryClient();
  const navigate = useNavigate();
  if (!isAdmin(useSession())) return null;
  const duplicate = async (body: { slug: string; name: string }) => {
    const { id } = await duplicateAgent(agent.id, body);
    void queries.invalidateQueries();
    toast("Agent duplicated");
    setOpen(false);
    void navigate(`/agents/${id}/workspace`);
  };
  return (
    <>
      <Button small kind="plain" icon={Copy} onClick={() => setOpen(true)}>
        Duplicate
      </Button>
      {isOpen && (
        <DuplicateDialog original={agent.name} duplicate={duplicate} onClose={() => setOpen(false)}>
          The duplicate gets its own files, settings, tags and people. Pinned files stay as
          reviewed. Memories, notes, sessions, keys and items are not duplicated.
        </DuplicateDialog>
      )}
    </>
  );
}

/** Slug, template and human of the agent. */
function AgentSummary({ agent }: { agent: Agent }) {
  const { data: templates } = useQuery(templateOptionsQuery);
  const { data: people } = useQuery(peopleOptionsQuery);
  const template = templates?.find(({ id }) => id === agent.templateId);
  const human = people?.find(({ id }) => id === agent.humanPairId);
  return (
    <div className="agent-summary">
      <span className="mono truncate">{escapeText(agent.slug, 80)}</span>
      {agent.templateId ? (
        <span className="truncate">
          Template:{" "}
          <Link className="bidi" to={`/agent-templates/${encodeURIComponent(agent.templateId)}`}>
            {escapeText(template?.name ?? agent.templateId, 60)}
          </Link>
        </span>
      ) : (
        <span>No template</span>
      )}
      {human ? (
        <span className="truncate">
          Human: <span className="bidi">{escapeText(human.name, 60)}</span>
        </span>
      ) : (
        !agent.humanPairId && <span>No human</span>
      )}
    </div>
  );
}

function PendingUpdatesBadge({ agent }: { agent: Agent }) {
  const { data: pins } = useQuery(pinsQuery(agent.id));
  const pending = pins?.filter((pin) => pin.updateAvailable) ?? [];
  if (pending.length === 0) return null;
  const first = encodeURIComponent(pending[0]?.path ?? "");
  const label = pending.length === 1 ? "1 update available" : `${pending.length} updates available`;
  return (
    <Link className="badge update" to={`workspace?file=${first}`}>
      {label}
    </Link>
  );
}
