// List of templates.

import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Layers, LayoutTemplate, Plus, TriangleAlert } from "lucide-react";
import { useDeferredValue, useMemo, useState } from "react";
import { Link } from "react-router";
import { inboxQuery } from "../../api/inbox";
import { isAdmin } from "../../api/session";
import { type Template, templatePagesQuery } from "../../api/templates";
import { Button, ButtonLink } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { SearchField } from "../../components/field";
import { PagedRows } from "../../components/paged-rows";
import { EmptyState } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { Time } from "../../components/time";
import { useSession } from "../../layout/session-context";
import { NewTemplateDialog } from "./new-template";

export default function Templates() {
  const [filter, setFilter] = useState("");
  const q = useDeferredValue(filter.trim());
  const query = useInfiniteQuery({ ...templatePagesQuery(q), placeholderData: keepPreviousData });
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
      {(query.hasNextPage || filter) && (
        <SearchField label="Filter templates" value={filter} onChange={setFilter} />
      )}
      <PagedRows query={query} noun="templates">
        {(templates) =>
          templates.length ? (
            <TemplateTable templates={templates} />
          ) : q ? (
            <p className="faint">No matching templates</p>
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
      </PagedRows>
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
