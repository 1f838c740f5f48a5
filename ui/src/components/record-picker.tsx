// Field that picks one record; typing searches on the server.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, type ReactNode, useDeferredValue, useId, useState } from "react";
import { type RecordOption, type RecordOptions, recordOptions } from "../api/record-options";
import { escapeText } from "./escape-text";
import { Field } from "./field";

interface PickerProps {
  label: string;
  emptyLabel: string;
  value: string;
  onChange: (id: string) => void;
  hint?: ReactNode;
  disabled?: boolean;
}

export const PersonPicker = (props: PickerProps) => (
  <RecordPicker {...props} options={recordOptions.people} />
);

export const TemplatePicker = (props: PickerProps) => (
  <RecordPicker {...props} options={recordOptions.templates} />
);

export const AgentPicker = (props: PickerProps) => (
  <RecordPicker {...props} options={recordOptions.agents} />
);

const NO_OPTION: RecordOption = { id: "", name: "", detail: "" };

function RecordPicker({
  label,
  emptyLabel,
  value,
  onChange,
  hint,
  disabled,
  options: { load, search },
}: PickerProps & { options: RecordOptions }) {
  const listId = useId();
  const [typed, setTyped] = useState<string | null>(null);
  const [active, setActive] = useState(0);
  const isOpen = typed !== null;
  const selected = useQuery({ ...load(value), enabled: value !== "" });
  const words = useDeferredValue(typed ?? "");
  const found = useQuery({
    ...search(words),
    enabled: isOpen,
    placeholderData: keepPreviousData,
  });
  // The options shown while the server searches are those of the words before.
  const isCurrent = !found.isPlaceholderData && words === typed;
  const options = [...(typed ? [] : [NO_OPTION]), ...(found.data?.items ?? [])];
  const close = () => setTyped(null);
  const choose = (option: RecordOption | undefined) => {
    if (option) onChange(option.id);
    close();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      if (!isOpen) setTyped("");
      else setActive((active + step + options.length) % Math.max(options.length, 1));
    } else if (event.key === "Enter" && isOpen) {
      event.preventDefault();
      if (isCurrent) choose(options[active]);
    } else if (event.key === "Escape" && isOpen) {
      // A dialog around the field stays open.
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  };
  const text = value === "" ? emptyLabel : (selected.data?.name ?? value);
  const more = (found.data?.total ?? 0) - (found.data?.items.length ?? 0);
  return (
    <div className="picker">
      <Field label={label} hint={hint}>
        <input
          className="input"
          role="combobox"
          autoComplete="off"
          spellCheck={false}
          disabled={disabled}
          aria-expanded={isOpen}
          aria-controls={listId}
          aria-activedescendant={isOpen ? `${listId}-${active}` : undefined}
          placeholder={text}
          value={typed ?? escapeText(text, 80)}
          onFocus={() => setActive(0)}
          onClick={() => setTyped(typed ?? "")}
          onBlur={close}
          onKeyDown={onKeyDown}
          onChange={(event) => {
            setTyped(event.target.value);
            setActive(0);
          }}
        />
      </Field>
      <div id={listId} role="listbox" aria-label={label} hidden={!isOpen} className="picker-list">
        {options.map((option, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the input
          <div
            key={option.id}
            id={`${listId}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={option.id === value}
            className={index === active ? "active" : undefined}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => choose(option)}
          >
            <span className="bidi">{escapeText(option.name, 60) || emptyLabel}</span>
            {option.detail && <span className="faint bidi">{escapeText(option.detail, 80)}</span>}
          </div>
        ))}
        {found.data && typed && options.length === 0 && (
          <div role="option" aria-selected={false} aria-disabled tabIndex={-1}>
            Nothing found
          </div>
        )}
        {more > 0 && (
          <div role="option" aria-selected={false} aria-disabled tabIndex={-1} className="faint">
            {more.toLocaleString("en")} more: type to search
          </div>
        )}
      </div>
    </div>
  );
}
