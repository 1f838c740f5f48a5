import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { putItem } from "../../api/items";
import { Field } from "../../components/field";
import { FormDialog } from "../../components/form-dialog";
import { toast } from "../../components/toast";

interface NewItemProps {
  agentId: string;
  onClose: () => void;
  onCreated: (key: string) => void;
}

export function NewItem({ agentId, onClose, onCreated }: NewItemProps) {
  const [key, setKey] = useState("");
  const [value, setValue] = useState("");
  const queries = useQueryClient();
  const create = useMutation({
    mutationFn: () => putItem(agentId, key, value),
    meta: { skipErrorToast: true },
    onSuccess: ({ item, warning }) => {
      void queries.invalidateQueries({ queryKey: ["items"] });
      toast(warning ?? "Item created");
      onClose();
      onCreated(item.key);
    },
  });
  return (
    <FormDialog
      title="New item"
      action="Create"
      busy={create.isPending}
      error={create.error}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <Field label="Key" hint="1 to 256 characters, for example shopping/list.">
        <input
          className="input mono"
          required
          maxLength={256}
          value={key}
          onChange={(event) => setKey(event.target.value)}
        />
      </Field>
      <Field label="Value">
        <textarea
          className="input mono"
          rows={8}
          value={value}
          onChange={(event) => setValue(event.target.value)}
        />
      </Field>
    </FormDialog>
  );
}
