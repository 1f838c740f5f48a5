import { useMutation, useQueryClient } from "@tanstack/react-query";
import { LogOut, Monitor, Moon, Sun, UserRound } from "lucide-react";
import { useId, useState } from "react";
import { signOut } from "../api/session";
import { Button } from "../components/button";
import { escapeText } from "../components/escape-text";
import { useSession } from "./session-context";
import { applyTheme, loadTheme, type Theme } from "./theme";

const THEMES: { value: Theme; name: string; icon: typeof Sun }[] = [
  { value: "light", name: "Light", icon: Sun },
  { value: "dark", name: "Dark", icon: Moon },
  { value: "system", name: "System", icon: Monitor },
];

/** Menu with the user's name, the theme and sign-out. */
export function UserMenu() {
  const session = useSession();
  const id = useId();
  const [selected, setSelected] = useState(loadTheme);
  const queries = useQueryClient();
  const signOutMutation = useMutation({
    mutationFn: signOut,
    onSettled: () => {
      queries.clear();
      location.assign("/sign-in");
    },
  });
  return (
    <>
      <Button kind="plain" icon={UserRound} aria-label="User menu" popoverTarget={id} />
      <div id={id} popover="auto" className="menu">
        <div className="menu-header">
          <strong className="bidi">{escapeText(session.person?.name ?? "Service", 60)}</strong>
          <span className="faint">{session.role ?? session.kind}</span>
        </div>
        <fieldset className="row" aria-label="Theme">
          {THEMES.map(({ value, name, icon }) => (
            <Button
              key={value}
              small
              icon={icon}
              kind={selected === value ? "primary" : "plain"}
              aria-pressed={selected === value}
              aria-label={name}
              onClick={() => {
                applyTheme(value);
                setSelected(value);
              }}
            />
          ))}
        </fieldset>
        <a className="button plain" href="/docs">
          API docs
        </a>
        <Button
          icon={LogOut}
          kind="plain"
          busy={signOutMutation.isPending}
          onClick={() => signOutMutation.mutate()}
        >
          Sign out
        </Button>
      </div>
    </>
  );
}
