// Renames or deletes a template.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { toSentence } from "../../api/problem";
import {
  deleteTemplate,
  duplicateTemplate,
  renameTemplate,
  type Template,
} from "../../api/templates";
import { Button } from "../../components/button";
import { Confirm, Dialog } from "../../components/dialog";
import { DuplicateDialog } from "../../components/duplicate-dialog";
import { escapeText } from "../../components/escape-text";
import { Field } from "../../components/field";
import { toast } from "../../components/toast";

interface DialogProps {
  template: Template;
  onClose: () => void;
}

export function RenameTemplate({ template, onClose }: DialogProps) {
  const [name, setName] = useState(template.name);
  const [slug, setSlug] = useState(template.slug);
  const queries = useQueryClient();
  const rename = useMutation({
    meta: { skipErrorToast: true },
    mutationFn: () => renameTemplate(template.id, { name: name.trim(), slug }),
    onSuccess: () => {
      for (const key of ["templates", "agents", "inbox"])
        void queries.invalidateQueries({ queryKey: [key] });
      toast("Template renamed");
      onClose();
    },
  });
  return (
    <Dialog
      title="Rename template"
      onClose={onClose}
      onSubmit={() => rename.mutate()}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={rename.isPending}>
            Rename
          </Button>
        </>
      }
    >
      <p className="soft">Files and agents of the template do not change.</p>
      <Field label="Name">
        <input
          className="input"
          required
          maxLength={200}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </Field>
      <Field label="Slug" error={rename.isError ? toSentence(rename.error) : null}>
        <input
          className="input mono"
          required
          value={slug}
          onChange={(event) => setSlug(event.target.value)}
        />
      </Field>
    </Dialog>
  );
}

export function DuplicateTemplate({ template, onClose }: DialogProps) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const duplicate = async (body: { slug: string; name: string }) => {
    const { id } = await duplicateTemplate(template.id, body);
    void queries.invalidateQueries({ queryKey: ["templates"] });
    toast("Template duplicated");
    onClose();
    void navigate(`/agent-templates/${encodeURIComponent(id)}`);
  };
  return (
    <DuplicateDialog original={template.name} duplicate={duplicate} onClose={onClose}>
      The duplicate gets all files of the template. Its agents stay where they are.
    </DuplicateDialog>
  );
}

export function DeleteTemplate({ template, onClose }: DialogProps) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const remove = useMutation({
    meta: { skipErrorToast: true },
    mutationFn: () => deleteTemplate(template.id),
    onSuccess: () => {
      toast(`Deleted ${escapeText(template.name, 80)}`);
      void navigate("/agent-templates", { replace: true });
      void queries.invalidateQueries({ queryKey: ["templates", "list"] });
    },
  });
  return (
    <Confirm
      title={`Delete ${escapeText(template.name, 80)}?`}
      action="Delete"
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>Its files are deleted. No agent uses this template.</p>
      {remove.isError && (
        <p className="notice bad" role="alert">
          {toSentence(remove.error)}
        </p>
      )}
    </Confirm>
  );
}
