// Names a duplicate of an agent or a template.

import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { escapeText } from "./escape-text";
import { Field } from "./field";
import { FormDialog } from "./form-dialog";
import { isSlug, slugOf } from "./slug";

interface DuplicateDialogProps {
  /** Name of the original. */
  original: string;
  /** What is duplicated, and what is not. */
  children: ReactNode;
  duplicate: (body: { slug: string; name: string }) => Promise<unknown>;
  onClose: () => void;
}

export function DuplicateDialog({ original, children, duplicate, onClose }: DuplicateDialogProps) {
  const [name, setName] = useState(`${original} copy`);
  const [typedSlug, setTypedSlug] = useState<string | null>(null);
  const slug = typedSlug ?? slugOf(name);
  const create = useMutation({
    meta: { skipErrorToast: true },
    mutationFn: () => duplicate({ slug, name: name.trim() }),
  });
  return (
    <FormDialog
      title={`Duplicate ${escapeText(original, 60)}`}
      action="Duplicate"
      busy={create.isPending}
      error={create.error}
      disabled={!name.trim() || !isSlug(slug)}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <p className="soft">{children}</p>
      <Field label="Name">
        <input
          className="input"
          maxLength={200}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </Field>
      <Field label="Slug" hint="Lower-case letters, digits and hyphens. Used in URLs and commands.">
        <input
          className="input mono"
          spellCheck={false}
          value={slug}
          onChange={(event) => setTypedSlug(event.target.value)}
        />
      </Field>
    </FormDialog>
  );
}
