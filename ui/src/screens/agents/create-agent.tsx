import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { createAgent } from "../../api/agents";
import { toSentence } from "../../api/problem";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";
import { isSlug, slugOf } from "../../components/slug";
import { toast } from "../../components/toast";
import { PersonSelect, TemplateSelect } from "./selects";

const EMPTY_FORM = { name: "", slug: "", templateId: "", humanPairId: "", isShared: false };

interface CreateAgentProps {
  /** Template that is chosen at first. */
  templateId?: string;
  onClose: () => void;
}

export function CreateAgent({ templateId = "", onClose }: CreateAgentProps) {
  const [form, setForm] = useState({ ...EMPTY_FORM, templateId });
  const set = (patch: Partial<typeof EMPTY_FORM>) => setForm({ ...form, ...patch });
  const create = useCreateAgent();
  const slug = form.slug || slugOf(form.name);
  const slugError =
    slug && !isSlug(slug) ? "Use lower-case letters, digits and hyphens (max. 63)." : null;
  const submit = () =>
    create.mutate({
      name: form.name.trim(),
      slug,
      templateId: form.templateId || null,
      humanPairId: form.humanPairId || null,
      isShared: form.isShared,
    });
  const isValid = form.name.trim() !== "" && isSlug(slug);
  const footer = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="primary" type="submit" disabled={!isValid} busy={create.isPending}>
        Create agent
      </Button>
    </>
  );
  return (
    <Dialog
      title="New agent"
      onClose={onClose}
      onSubmit={() => isValid && submit()}
      footer={footer}
    >
      <Field label="Name" hint="Shown in IDENTITY.md.">
        <input
          className="input"
          value={form.name}
          autoComplete="off"
          onChange={(event) => set({ name: event.target.value })}
        />
      </Field>
      <Field label="Slug" hint="Used in URLs and commands." error={slugError}>
        <input
          className="input mono"
          value={slug}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => set({ slug: event.target.value })}
        />
      </Field>
      <TemplateSelect
        value={form.templateId}
        hint="Files are inherited. Pinned files stay at their current version."
        onChange={(templateId) => set({ templateId })}
      />
      <PersonSelect
        label="Human"
        emptyLabel="None"
        value={form.humanPairId}
        hint="The person it works for, described in USER.md."
        onChange={(humanPairId) => set({ humanPairId })}
      />
      <label className="check">
        <input
          type="checkbox"
          checked={form.isShared}
          onChange={(event) => set({ isShared: event.target.checked })}
        />
        Shared: works for several people, with its own items
      </label>
      {create.isError && (
        <div className="notice bad" role="alert">
          {toSentence(create.error)}
        </div>
      )}
    </Dialog>
  );
}

function useCreateAgent() {
  const navigate = useNavigate();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: createAgent,
    meta: { skipErrorToast: true },
    onSuccess: (agent) => {
      void queries.invalidateQueries();
      toast("Agent created");
      void navigate(`/agents/${agent.id}/connect`);
    },
  });
}
