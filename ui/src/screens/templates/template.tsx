// One template: its files over the defaults, and its skills.

import { useQuery } from "@tanstack/react-query";
import { Copy, GitCompare, Pencil, Plus, Trash2, TriangleAlert, Users } from "lucide-react";
import { useMemo, useState } from "react";
import { Link, Outlet, useParams } from "react-router";
import type { FileScope } from "../../api/files";
import { isAdmin } from "../../api/session";
import { type Template, templateQuery, templatesQuery } from "../../api/templates";
import { Button, ButtonLink } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { QueryResult } from "../../components/query-states";
import { Screen, Tabs } from "../../components/screen";
import { useSession } from "../../layout/session-context";
import { CreateAgent } from "../agents/create-agent";
import { compareUrl } from "../compare/references";
import { DeleteTemplate, DuplicateTemplate, RenameTemplate } from "./template-dialogs";
import { agentCountLabel, usePendingCounts } from "./templates";

export default function TemplatePage() {
  const { templateId = "" } = useParams();
  const query = useQuery(templateQuery(templateId));
  if (!query.data)
    return (
      <Screen title="Template">
        <QueryResult query={query} label="Loading template">
          {() => null}
        </QueryResult>
      </Screen>
    );
  return <TemplateDetails template={query.data} />;
}

/** Number of agents of a template, from the list if the template has none. */
function useFollowerCount(template: Template): number | undefined {
  const { data } = useQuery({ ...templatesQuery, enabled: template.agentCount === undefined });
  return template.agentCount ?? data?.find(({ id }) => id === template.id)?.agentCount;
}

function TemplateDetails({ template }: { template: Template }) {
  const scope = useMemo<FileScope>(() => ({ kind: "template", id: template.id }), [template.id]);
  const followers = useFollowerCount(template);
  return (
    <Screen
      title={escapeText(template.name, 120)}
      subtitle={
        <span className="breadcrumb">
          <Link to="/agent-templates">Templates</Link> /{" "}
          <code>{escapeText(template.slug, 80)}</code>
        </span>
      }
      actions={<Actions template={template} followers={followers} />}
    >
      <Tabs
        label="Template"
        tabs={[
          { to: ".", name: "Files", end: true },
          { to: "skills", name: "Skills" },
          { to: "updates", name: "Updates" },
        ]}
      />
      <Outlet context={scope} />
    </Screen>
  );
}

function Actions({ template, followers }: { template: Template; followers: number | undefined }) {
  const admin = isAdmin(useSession());
  const pendingCount = usePendingCounts()(template.id);
  const [open, setOpen] = useState<"agent" | "duplicate" | "rename" | "delete" | null>(null);
  const close = () => setOpen(null);
  const encodedId = encodeURIComponent(template.id);
  return (
    <>
      {pendingCount > 0 && (
        <ButtonLink icon={TriangleAlert} to={`/agent-templates/${encodedId}/review`}>
          Review {pendingCount} {pendingCount === 1 ? "update" : "updates"}
        </ButtonLink>
      )}
      <ButtonLink kind="plain" icon={Users} to={`/agents?template=${encodedId}`}>
        Used by {agentCountLabel(followers)}
      </ButtonLink>
      <ButtonLink
        kind="plain"
        icon={GitCompare}
        to={compareUrl(`template:${template.slug}`, "defaults")}
      >
        Compare
      </ButtonLink>
      {admin && (
        <Button kind="plain" icon={Plus} onClick={() => setOpen("agent")}>
          New agent
        </Button>
      )}
      {admin && (
        <Button
          kind="plain"
          icon={Copy}
          aria-label="Duplicate template"
          onClick={() => setOpen("duplicate")}
        />
      )}
      {admin && (
        <Button kind="plain" icon={Pencil} aria-label="Rename" onClick={() => setOpen("rename")} />
      )}
      {admin && (
        <Button
          kind="plain"
          icon={Trash2}
          aria-label="Delete template"
          title={followers ? "Cannot be deleted while agents use it" : undefined}
          disabled={Boolean(followers)}
          onClick={() => setOpen("delete")}
        />
      )}
      {open === "agent" && <CreateAgent templateId={template.id} onClose={close} />}
      {open === "duplicate" && <DuplicateTemplate template={template} onClose={close} />}
      {open === "rename" && <RenameTemplate template={template} onClose={close} />}
      {open === "delete" && <DeleteTemplate template={template} onClose={close} />}
    </>
  );
}
