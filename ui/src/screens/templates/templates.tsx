// All templates: who follows them, what waits for a review, and the way to the defaults.

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
      subtitle="What agents of one kind have in common. An edit reaches all who follow; a pinned file waits for a review."
      actions={
        <>
          <ButtonLink to="/agent-templates/defaults" icon={Layers}>
            Defaults
          </ButtonLink>
          {admin && add}
        </>
      }
    >
      <QueryResult query={query} label="Loading the templates">
        {(templates) =>
          templates.length ? (
            <TemplateTable templates={templates} />
          ) : (
            <EmptyState icon={LayoutTemplate} title="No templates yet">
              <p>
                A template holds the files that agents of one kind share, over the defaults that all
                agents share. Agents that follow it see every edit at once; a pinned file waits
                until somebody has reviewed it.
              </p>
              {admin ? add : <p className="faint">Owners and admins make templates.</p>}
            </EmptyState>
          )
        }
      </QueryResult>
      {isCreating && <NewTemplateDialog onClose={() => setCreating(false)} />}
    </Screen>
  );
}

/** How many pinned files wait for a review, by template. */
export function usePendingCounts(): (templateId: string) => number {
  const { data } = useQuery(inboxQuery(false));
  const counts = useMemo(() => {
    const byTemplate = new Map<string | null, number>();
    for (const { templateId } of data?.pins ?? [])
      byTemplate.set(templateId, (byTemplate.get(templateId) ?? 0) + 1);
    return byTemplate;
  }, [data]);
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
            <th scope="col">Waits for review</th>
            <th scope="col">Changed</th>
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
            <TriangleAlert size={12} aria-hidden /> {pendingCount}
          </Link>
        ) : (
          <span className="faint">nothing</span>
        )}
      </td>
      <td>
        <Time at={updatedAt} />
      </td>
    </tr>
  );
}
