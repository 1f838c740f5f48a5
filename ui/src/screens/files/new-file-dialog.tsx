// Creates an empty file.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type FileScope, fileQuery, putFile } from "../../api/files";
import { toSentence } from "../../api/problem";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";
import type { TreeRow } from "./file-rows";
import { validatePath } from "./paths";
import { refreshFiles } from "./use-save-file";

interface NewFileProps {
  scope: FileScope;
  rows: TreeRow[];
  suggestion: string;
  onCreated: (path: string) => void;
  onClose: () => void;
}

/** Why a file cannot be created at a path; null if it can. */
export function validateNewPath(input: string, rows: TreeRow[]): string | null {
  const path = input.normalize("NFC");
  const pathError = validatePath(path);
  if (pathError) return pathError;
  const existing = rows.find((row) => row.path.toLowerCase() === path.toLowerCase());
  if (existing?.path === path) return "This file exists already.";
  if (existing && (existing.pinned || existing.managed))
    return `Differs from ${existing.path} only in letter case.`;
  return null;
}

export function NewFileDialog({ scope, rows, suggestion, onCreated, onClose }: NewFileProps) {
  const queries = useQueryClient();
  const [path, setPath] = useState(suggestion);
  const [isSubmitted, setSubmitted] = useState(false);
  const pathError = validateNewPath(path, rows);
  const create = useMutation({
    meta: { skipErrorToast: true },
    mutationFn: () =>
      putFile(scope, path.normalize("NFC"), {
        content: "",
        ifNoneMatch: "*",
        acceptTemplateUpdate: scope.kind === "agent",
      }),
    onSuccess: async ({ file }) => {
      queries.setQueryData(fileQuery(scope, file.path).queryKey, file);
      refreshFiles(queries, scope);
      onClose();
      onCreated(file.path);
    },
  });
  const error = create.isError ? toSentence(create.error) : isSubmitted || path ? pathError : null;
  return (
    <Dialog
      title="New file"
      onClose={onClose}
      onSubmit={() => {
        setSubmitted(true);
        if (!pathError) create.mutate();
      }}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={create.isPending}>
            Create file
          </Button>
        </>
      }
    >
      <Field
        label="Path"
        error={error}
        hint="For example notes/rules.md. Folders are created automatically."
      >
        <input
          className="input mono"
          autoComplete="off"
          spellCheck={false}
          value={path}
          onChange={(event) => {
            setPath(event.target.value);
            create.reset();
          }}
        />
      </Field>
    </Dialog>
  );
}
