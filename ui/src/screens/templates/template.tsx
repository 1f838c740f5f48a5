// One template: what it is called, who follows it, and its files over the defaults.

import { useQuery } from "@tanstack/react-query";
import { Pencil, Trash2, TriangleAlert, Users } from "lucide-react";
import { useMemo, useState } from "react";
import { Link, useParams } from "react-router";
import type { Place } from "../../api/files";
import { isAdmin } from "../../api/session";
import { type Template, templateQuery, templatesQuery } from "../../api/templates";
import { Button, ButtonLink } from "../../components/button";
import { plain } from "../../components/escape-text";
import { Shown } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { useSession } from "../../layout/session-context";
import { Workspace } from "../files/file-browser";
import { DeleteTemplate, RenameTemplate } from "./template-dialogs";
import { usedBy, useWaiting } from "./templates";

export default function TemplatePage() {
  const { templateId = "" } = useParams();
  const query = useQuery(templateQuery(templateId));
  if (!query.data)
    return (
      <Screen title="Template">
        <Shown query={query} what="Loading the template">
          {() => null}
        </Shown>
      </Screen>
    );
  return <Found template={query.data} />;
}

/** How many follow it: the list says so where the template itself does not. */
function useFollowers(template: Template): number | undefined {
  const { data } = useQuery({ ...templatesQuery, enabled: template.agentCount === undefined });
  return template.agentCount ?? data?.find(({ id }) => id === template.id)?.agentCount;
}

function Found({ template }: { template: Template }) {
  const place = useMemo<Place>(() => ({ kind: "template", id: template.id }), [template.id]);
  const followers = useFollowers(template);
  return (
    <Screen
      title={plain(template.name, 120)}
      under={
        <span className="crumbs">
          <Link to="/agent-templates">Templates</Link> / <code>{plain(template.slug, 80)}</code>
        </span>
      }
      actions={<Actions template={template} followers={followers} />}
    >
      <Workspace place={place} />
    </Screen>
  );
}

function Actions({ template, followers }: { template: Template; followers: number | undefined }) {
  const admin = isAdmin(useSession());
  const waits = useWaiting()(template.id);
  const [open, setOpen] = useState<"rename" | "delete" | null>(null);
  const close = () => setOpen(null);
  const address = encodeURIComponent(template.id);
  return (
    <>
      {waits > 0 && (
        <ButtonLink icon={TriangleAlert} to={`/agent-templates/${address}/review`}>
          Review {waits} {waits === 1 ? "update" : "updates"}
        </ButtonLink>
      )}
      <ButtonLink kind="plain" icon={Users} to={`/agents?template=${address}`}>
        Used by {usedBy(followers)}
      </ButtonLink>
      {admin && (
        <Button kind="plain" icon={Pencil} aria-label="Rename" onClick={() => setOpen("rename")} />
      )}
      {admin && (
        <Button
          kind="plain"
          icon={Trash2}
          aria-label="Delete the template"
          title={followers ? "Agents follow it: it can be deleted when none do" : undefined}
          disabled={Boolean(followers)}
          onClick={() => setOpen("delete")}
        />
      )}
      {open === "rename" && <RenameTemplate template={template} onClose={close} />}
      {open === "delete" && <DeleteTemplate template={template} onClose={close} />}
    </>
  );
}
