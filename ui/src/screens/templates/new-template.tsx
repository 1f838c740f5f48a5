// A new template: a name, and the short one that addresses and commands use.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { sentence } from "../../api/problem";
import { createTemplate } from "../../api/templates";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";
import { slugOf } from "../../components/slug";

export function NewTemplateDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [given, setGiven] = useState<string | null>(null);
  const slug = given ?? slugOf(name);
  const queries = useQueryClient();
  const go = useNavigate();
  const make = useMutation({
    meta: { quiet: true },
    mutationFn: () => createTemplate({ name: name.trim(), slug }),
    onSuccess: ({ id }) => {
      void queries.invalidateQueries({ queryKey: ["templates"] });
      void go(`/agent-templates/${encodeURIComponent(id)}`);
    },
  });
  return (
    <Dialog
      title="New template"
      onClose={onClose}
      onSubmit={() => make.mutate()}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={make.isPending}>
            Create
          </Button>
        </>
      }
    >
      <p className="soft">It begins with nothing of its own: all of the defaults show through.</p>
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
        hint="Small letters, digits and hyphens, for addresses and commands."
        wrong={make.isError ? sentence(make.error) : null}
      >
        <input
          className="input mono"
          required
          value={slug}
          onChange={(event) => setGiven(event.target.value)}
        />
      </Field>
    </Dialog>
  );
}
