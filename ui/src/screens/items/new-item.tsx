import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { putItem } from "../../api/items";
import { Field } from "../../components/field";
import { FormDialog } from "../../components/form-dialog";
import { toast } from "../../components/toast";

interface NewItemProps {
  agentId: string;
  onClose: () => void;
  onMade: (key: string) => void;
}

export function NewItem({ agentId, onClose, onMade }: NewItemProps) {
  const [key, setKey] = useState("");
  const [value, setValue] = useState("");
  const queries = useQueryClient();
  const make = useMutation({
    mutationFn: () => putItem(agentId, key, value),
    meta: { quiet: true },
    onSuccess: ({ item, warning }) => {
      void queries.invalidateQueries({ queryKey: ["items"] });
      toast(warning ?? "The item is written.");
      onClose();
      onMade(item.key);
    },
  });
  return (
    <FormDialog
      title="New item"
      action="Write"
      busy={make.isPending}
      error={make.error}
      onSubmit={() => make.mutate()}
      onClose={onClose}
    >
      <Field label="Key" hint="1 to 256 characters, such as shopping/list.">
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
