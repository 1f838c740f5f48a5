import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { createAgent } from "../../api/agents";
import { sentence } from "../../api/problem";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";
import { isSlug, slugOf } from "../../components/slug";
import { toast } from "../../components/toast";
import { PersonChoice, TemplateChoice } from "./selects";

const BLANK = { name: "", slug: "", templateId: "", humanPairId: "", isShared: false };

export function CreateAgent({ onClose }: { onClose: () => void }) {
  const [form, setForm] = useState(BLANK);
  const set = (some: Partial<typeof BLANK>) => setForm({ ...form, ...some });
  const create = useCreation();
  const slug = form.slug || slugOf(form.name);
  const wrong = slug && !isSlug(slug) ? "Small letters, digits and dashes, at most 63." : null;
  const submit = () =>
    create.mutate({
      name: form.name.trim(),
      slug,
      templateId: form.templateId || null,
      humanPairId: form.humanPairId || null,
      isShared: form.isShared,
    });
  const ready = form.name.trim() !== "" && isSlug(slug);
  const foot = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="primary" type="submit" disabled={!ready} busy={create.isPending}>
        Create the agent
      </Button>
    </>
  );
  return (
    <Dialog title="New agent" onClose={onClose} onSubmit={() => ready && submit()} foot={foot}>
      <Field label="Name" hint="What people call it. IDENTITY.md shows it.">
        <input
          className="input"
          value={form.name}
          autoComplete="off"
          onChange={(event) => set({ name: event.target.value })}
        />
      </Field>
      <Field label="Slug" hint="Its name in addresses." wrong={wrong}>
        <input
          className="input mono"
          value={slug}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => set({ slug: event.target.value })}
        />
      </Field>
      <TemplateChoice
        value={form.templateId}
        hint="Its files are inherited from there, and its pinned files stay as they are today."
        onChange={(templateId) => set({ templateId })}
      />
      <PersonChoice
        label="Human"
        nobody="Nobody in particular"
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
          {sentence(create.error)}
        </div>
      )}
    </Dialog>
  );
}

function useCreation() {
  const go = useNavigate();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: createAgent,
    meta: { quiet: true },
    onSuccess: (agent) => {
      void queries.invalidateQueries();
      toast("The agent is there.");
      void go(`/agents/${agent.id}/workspace`);
    },
  });
}
