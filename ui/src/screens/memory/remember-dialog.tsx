// Creates a memory.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type NewMemory, remember } from "../../api/memories";
import { toSentence } from "../../api/problem";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";
import { toast } from "../../components/toast";

const KINDS = ["feedback", "project", "reference", "user"] as const;
const parseTags = (text: string) =>
  text
    .split(",")
    .map((tag) => tag.trim())
    .filter(Boolean);

export function RememberDialog({ agentId, onClose }: { agentId: string; onClose: () => void }) {
  const [content, setContent] = useState("");
  const [tags, setTags] = useState("");
  const [kind, setKind] = useState("");
  const [scope, setScope] = useState("main");
  const queries = useQueryClient();
  const save = useMutation({
    mutationFn: () =>
      remember(agentId, {
        content,
        tags: parseTags(tags),
        kind: (kind || null) as NewMemory["kind"],
        scope,
      }),
    meta: { skipErrorToast: true },
    onSuccess: ({ isNew }) => {
      void queries.invalidateQueries({ queryKey: ["memories"] });
      toast(isNew ? "Memory saved" : "This memory exists already");
      onClose();
    },
  });
  const footer = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="primary" type="submit" busy={save.isPending} disabled={!content.trim()}>
        Save
      </Button>
    </>
  );
  return (
    <Dialog title="New memory" onClose={onClose} onSubmit={() => save.mutate()} footer={footer}>
      <Field
        label="Content"
        hint="One line, at most 2,000 characters. Secrets are redacted."
        error={save.error && toSentence(save.error)}
      >
        <textarea
          className="input"
          maxLength={2000}
          value={content}
          onChange={(event) => setContent(event.target.value)}
        />
      </Field>
      <Field label="Tags" hint="Comma-separated.">
        <input className="input" value={tags} onChange={(event) => setTags(event.target.value)} />
      </Field>
      <div className="two-fields">
        <Field label="Kind">
          <select className="input" value={kind} onChange={(event) => setKind(event.target.value)}>
            <option value="">none</option>
            {KINDS.map((option) => (
              <option key={option}>{option}</option>
            ))}
          </select>
        </Field>
        <Field label="Scope" hint="Shared memories are never promoted.">
          <select
            className="input"
            value={scope}
            onChange={(event) => setScope(event.target.value)}
          >
            <option value="main">main</option>
            <option value="shared">shared</option>
          </select>
        </Field>
      </div>
    </Dialog>
  );
}
