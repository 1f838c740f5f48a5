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

export function CreateAgent({ onClose }: { onClose: () => void }) {
  const [form, setForm] = useState(EMPTY_FORM);
  const set = (patch: Partial<typeof EMPTY_FORM>) => setForm({ ...form, ...patch });
  const create = useCreateAgent();
  const slug = form.slug || slugOf(form.name);
  const slugError = slug && !isSlug(slug) ? "Small letters, digits and dashes, at most 63." : null;
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
        Create the agent
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
      <Field label="Name" hint="What people call it. IDENTITY.md shows it.">
        <input
          className="input"
          value={form.name}
          autoComplete="off"
          onChange={(event) => set({ name: event.target.value })}
        />
      </Field>
      <Field label="Slug" hint="Its name in addresses." error={slugError}>
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
        hint="Its files are inherited from there, and its pinned files stay as they are today."
        onChange={(templateId) => set({ templateId })}
      />
      <PersonSelect
        label="Human"
        emptyLabel="Nobody in particular"
        value={form.humanPairId}
        hint="The person whom it works for: USER.md tells it about them."
        onChange={(humanPairId) => set({ humanPairId })}
      />
      <label className="check">
        <input
          type="checkbox"
          checked={form.isShared}
          onChange={(event) => set({ isShared: event.target.checked })}
        />
        Shared: it works for several people and has items of its own
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
      toast("The agent is there.");
      void navigate(`/agents/${agent.id}/workspace`);
    },
  });
}
