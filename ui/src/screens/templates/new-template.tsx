// Creates a template.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { toSentence } from "../../api/problem";
import { createTemplate } from "../../api/templates";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";
import { slugOf } from "../../components/slug";

export function NewTemplateDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [typedSlug, setTypedSlug] = useState<string | null>(null);
  const slug = typedSlug ?? slugOf(name);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const create = useMutation({
    meta: { skipErrorToast: true },
    mutationFn: () => createTemplate({ name: name.trim(), slug }),
    onSuccess: ({ id }) => {
      void queries.invalidateQueries({ queryKey: ["templates"] });
      void navigate(`/agent-templates/${encodeURIComponent(id)}`);
    },
  });
  return (
    <Dialog
      title="New template"
      onClose={onClose}
      onSubmit={() => create.mutate()}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={create.isPending}>
            Create
          </Button>
        </>
      }
    >
      <p className="soft">New templates are empty and inherit every default file.</p>
      <Field label="Name">
        <input
          className="input"
          required
          maxLength={200}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </Field>
      <Field
        label="Slug"
        hint="Lower-case letters, digits and hyphens. Used in URLs and commands."
        error={create.isError ? toSentence(create.error) : null}
      >
        <input
          className="input mono"
          required
          value={slug}
          onChange={(event) => setTypedSlug(event.target.value)}
        />
      </Field>
    </Dialog>
  );
}
