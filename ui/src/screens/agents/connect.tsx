// Connects a runtime or an MCP client to an agent: a key, snippets and the first request.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { CircleCheck, KeyRound } from "lucide-react";
import { useState } from "react";
import type { Agent } from "../../api/agents";
import { type Connection, connectionQuery, keyUseQuery, type Snippet } from "../../api/connection";
import { type CreatedKey, createKey, keysQuery } from "../../api/keys";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { CopyButton } from "../../components/copy-button";
import { escapeText } from "../../components/escape-text";
import { QueryResult } from "../../components/query-states";
import { useTitle } from "../../components/screen";
import { Time } from "../../components/time";
import { useSession } from "../../layout/session-context";
import { useAgent } from "./agent-context";

export default function Connect() {
  useTitle("Connect");
  const agent = useAgent();
  const connection = useQuery(connectionQuery(agent.id));
  const [key, setKey] = useState<CreatedKey | null>(null);
  return (
    <section className="connect stack" aria-label="Connect" key={agent.id}>
      <KeyCard agent={agent} created={key} onCreated={setKey} />
      <QueryResult query={connection} label="Loading snippets">
        {(data) => <SnippetCard connection={data} apiKey={key} />}
      </QueryResult>
    </section>
  );
}

interface KeyCardProps {
  agent: Agent;
  created: CreatedKey | null;
  onCreated: (key: CreatedKey) => void;
}

function KeyCard({ agent, created, onCreated }: KeyCardProps) {
  const admin = isAdmin(useSession());
  const queries = useQueryClient();
  const create = useMutation({
    mutationFn: () =>
      createKey({ name: `connect ${agent.slug}`, kind: "agent", agentId: agent.id }),
    onSuccess: (key) => {
      onCreated(key);
      void queries.invalidateQueries({ queryKey: keysQuery.queryKey, exact: true });
    },
  });
  return (
    <section className="card" aria-label="Key">
      <header>
        <h2 className="grow">Key</h2>
        {admin && (
          <Button
            kind={created ? undefined : "primary"}
            icon={KeyRound}
            busy={create.isPending}
            onClick={() => create.mutate()}
          >
            {created ? "Create another key" : "Create key"}
          </Button>
        )}
      </header>
      <div className="card-body stack">
        {created ? <NewKey apiKey={created} /> : <KnownKeys agent={agent} admin={admin} />}
      </div>
    </section>
  );
}

function NewKey({ apiKey }: { apiKey: CreatedKey }) {
  const { data } = useQuery(keyUseQuery(apiKey.id));
  return (
    <>
      <p>Copy it now. You will not see it again. The snippets below contain it.</p>
      <div className="one-time-secret">
        <output aria-label="API key" className="mono truncate">
          {apiKey.key}
        </output>
        <CopyButton text={apiKey.key} label="Copy API key" />
      </div>
      {data?.lastUsedAt ? (
        <p className="notice good" role="status">
          <CircleCheck size={16} aria-hidden />
          <span className="grow">
            <strong>Connected.</strong> First request <Time at={data.lastUsedAt} />.
          </span>
        </p>
      ) : (
        <p className="notice" role="status">
          <span className="spinner" aria-hidden />
          <span className="grow">Waiting for the first request with this key…</span>
        </p>
      )}
    </>
  );
}

/** Keys of the agent, and when each was used last. */
function KnownKeys({ agent, admin }: { agent: Agent; admin: boolean }) {
  const keys = useQuery(keysQuery);
  const known = keys.data?.filter(({ agentId }) => agentId === agent.id) ?? [];
  if (!admin) return <p className="soft">Only owners and admins can create keys of agents.</p>;
  if (!known.length)
    return <p className="soft">The agent has no key yet. A runtime authenticates with one.</p>;
  return (
    <ul className="lines" aria-label="Keys of the agent">
      {known.slice(0, 20).map((key) => (
        <li key={key.id} className="row wrap">
          <span className="bidi">{escapeText(key.name, 60)}</span>
          <code className="faint">{escapeText(key.prefix, 20)}…</code>
          <span className="faint end">
            {key.lastUsedAt ? (
              <>
                last used <Time at={key.lastUsedAt} />
              </>
            ) : (
              "never used"
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}

const GROUPS: { group: Snippet["group"]; name: string }[] = [
  { group: "runtime", name: "Runtimes" },
  { group: "mcp", name: "MCP clients" },
];

function SnippetCard({
  connection,
  apiKey,
}: {
  connection: Connection;
  apiKey: CreatedKey | null;
}) {
  const [selected, setSelected] = useState("curl");
  const { snippets, keyPlaceholder } = connection;
  const snippet = snippets.find(({ id }) => id === selected) ?? snippets[0];
  return (
    <section className="card" aria-label="Snippets">
      <header>
        <h2>Snippets</h2>
      </header>
      <div className="card-body stack">
        {GROUPS.map(({ group, name }) => (
          <fieldset key={group} className="snippet-choices">
            <legend className="label">{name}</legend>
            {snippets
              .filter((row) => row.group === group)
              .map((row) => (
                <Button
                  key={row.id}
                  small
                  kind={row.id === selected ? "primary" : undefined}
                  aria-pressed={row.id === selected}
                  onClick={() => setSelected(row.id)}
                >
                  {row.name}
                </Button>
              ))}
          </fieldset>
        ))}
        {snippet && (
          <SnippetText
            snippet={snippet}
            text={apiKey ? snippet.text.replaceAll(keyPlaceholder, apiKey.key) : snippet.text}
          />
        )}
      </div>
    </section>
  );
}

function SnippetText({ snippet, text }: { snippet: Snippet; text: string }) {
  return (
    <>
      {snippet.install && (
        <div className="one-time-secret">
          <code className="grow truncate">{snippet.install}</code>
          <CopyButton text={snippet.install} label="Copy install command" />
        </div>
      )}
      {snippet.file && (
        <p className="soft">
          Add to <code>{snippet.file}</code>
        </p>
      )}
      <div className="snippet">
        <CopyButton text={text} label="Copy snippet" />
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling area is reachable by keyboard */}
        <pre className="literal mono" tabIndex={0} role="region" aria-label="Snippet">
          {text}
        </pre>
      </div>
    </>
  );
}
