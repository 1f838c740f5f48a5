// A file that was not there: its path is all that is asked for.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { fileQuery, type Place, putFile } from "../../api/files";
import { sentence } from "../../api/problem";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";
import type { Row } from "./file-rows";
import { wrongWithPath } from "./paths";
import { refresh } from "./use-save-file";

interface NewFileProps {
  place: Place;
  rows: Row[];
  suggestion: string;
  onMade: (path: string) => void;
  onClose: () => void;
}

/** Why a file cannot be made at a path here; null where it can. */
export function wrongWithNew(given: string, rows: Row[]): string | null {
  const path = given.normalize("NFC");
  const wrong = wrongWithPath(path);
  if (wrong) return wrong;
  const clash = rows.find((row) => row.path.toLowerCase() === path.toLowerCase());
  if (clash?.path === path) return "There is a file of that name already.";
  if (clash && (clash.pinned || clash.managed))
    return `It differs from ${clash.path} only in letter case.`;
  return null;
}

export function NewFileDialog({ place, rows, suggestion, onMade, onClose }: NewFileProps) {
  const queries = useQueryClient();
  const [path, setPath] = useState(suggestion);
  const [isTried, setTried] = useState(false);
  const wrong = wrongWithNew(path, rows);
  const make = useMutation({
    meta: { quiet: true },
    mutationFn: () =>
      putFile(place, path.normalize("NFC"), {
        content: "",
        ifNoneMatch: "*",
        acceptTemplateUpdate: place.kind === "agent",
      }),
    onSuccess: async ({ file }) => {
      queries.setQueryData(fileQuery(place, file.path).queryKey, file);
      refresh(queries, place);
      onClose();
      onMade(file.path);
    },
  });
  const said = make.isError ? sentence(make.error) : isTried || path ? wrong : null;
  return (
    <Dialog
      title="New file"
      onClose={onClose}
      onSubmit={() => {
        setTried(true);
        if (!wrong) make.mutate();
      }}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={make.isPending}>
            Make the file
          </Button>
        </>
      }
    >
      <Field
        label="Path"
        wrong={said}
        hint="Folders come with it: notes/house-rules.md makes notes."
      >
        <input
          className="input mono"
          autoComplete="off"
          spellCheck={false}
          value={path}
          onChange={(event) => {
            setPath(event.target.value);
            make.reset();
          }}
        />
      </Field>
    </Dialog>
  );
}
