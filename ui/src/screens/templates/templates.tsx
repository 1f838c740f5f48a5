// List of templates.

import { useQuery } from "@tanstack/react-query";
import { Layers, LayoutTemplate, Plus, TriangleAlert } from "lucide-react";
import { useMemo, useState } from "react";
import { Link } from "react-router";
import { inboxQuery } from "../../api/inbox";
import { isAdmin } from "../../api/session";
import { type Template, templatesQuery } from "../../api/templates";
import { Button, ButtonLink } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { EmptyState, QueryResult } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { Time } from "../../components/time";
import { useSession } from "../../layout/session-context";
import { NewTemplateDialog } from "./new-template";

export default function Templates() {
  const query = useQuery(templatesQuery);
  const [isCreating, setCreating] = useState(false);
  const admin = isAdmin(useSession());
  const add = (
    <Button kind="primary" icon={Plus} onClick={() => setCreating(true)}>
      New template
    </Button>
  );
  return (
    <Screen
      title="Templates"
      subtitle="Files shared by agents of one kind. Edits reach all agents; pinned files need review."
      actions={
        <>
          <ButtonLink to="/agent-templates/defaults" icon={Layers}>
            Defaults
          </ButtonLink>
          {admin && add}
        </>
      }
    >
      <QueryResult query={query} label="Loading templates">
        {(templates) =>
          templates.length ? (
            <TemplateTable templates={templates} />
          ) : (
            <EmptyState icon={LayoutTemplate} title="No templates yet">
              <p>
                A template contains files that agents of one kind share, over the defaults. Agents
                receive edits at once; pinned files need review first.
              </p>
              {admin ? add : <p className="faint">Only owners and admins can create templates.</p>}
            </EmptyState>
          )
        }
      </QueryResult>
      {isCreating && <NewTemplateDialog onClose={() => setCreating(false)} />}
    </Screen>
  );
}

/** Number of pinned updates that need review, by template. */
export function usePendingCounts(): (templateId: string) => number {
  const { data } = useQuery(inboxQuery(false));
  const counts = useMemo(
    () => new Map(data?.templates.map(({ templateId, pins }) => [templateId, pins])),
    [data],
  );
  return (id) => counts.get(id) ?? 0;
}

function TemplateTable({ templates }: { templates: Template[] }) {
  const pendingCount = usePendingCounts();
  return (
    <div className="table-wrap">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Template</th>
            <th scope="col">Used by</th>
            <th scope="col">Needs review</th>
            <th scope="col">Updated</th>
          </tr>
        </thead>
        <tbody>
          {templates.map((template) => (
            <TemplateRow
              key={template.id}
              template={template}
              pendingCount={pendingCount(template.id)}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

export const agentCountLabel = (count: number | undefined) => {
  if (count === undefined) return "—";
  return count === 1 ? "1 agent" : `${count.toLocaleString("en")} agents`;
};

function TemplateRow({ template, pendingCount }: { template: Template; pendingCount: number }) {
  const { id, name, slug, agentCount, updatedAt } = template;
  return (
    <tr>
      <td>
        <Link className="bidi" to={`/agent-templates/${encodeURIComponent(id)}`}>
          {escapeText(name, 120)}
        </Link>
        <div className="faint mono">{escapeText(slug, 80)}</div>
      </td>
      <td>
        {agentCount ? (
          <Link to={`/agents?template=${encodeURIComponent(id)}`}>
            {agentCountLabel(agentCount)}
          </Link>
        ) : (
          <span className="soft">{agentCountLabel(agentCount)}</span>
        )}
      </td>
      <td>
        {pendingCount > 0 ? (
          <Link className="badge update" to={`/agent-templates/${encodeURIComponent(id)}/review`}>
            <TriangleAlert size={12} aria-hidden /> {pendingCount.toLocaleString("en")}
          </Link>
        ) : (
          <span className="faint">—</span>
        )}
      </td>
      <td>
        <Time at={updatedAt} />
      </td>
    </tr>
  );
}
