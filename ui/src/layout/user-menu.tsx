import { useMutation, useQueryClient } from "@tanstack/react-query";
import { LogOut, Monitor, Moon, Sun, UserRound } from "lucide-react";
import { useId, useState } from "react";
import { signOut } from "../api/session";
import { Button } from "../components/button";
import { plain } from "../components/escape-text";
import { useSession } from "./session-context";
import { applyTheme, type Theme, theme } from "./theme";

const THEMES: { value: Theme; name: string; icon: typeof Sun }[] = [
  { value: "light", name: "Light", icon: Sun },
  { value: "dark", name: "Dark", icon: Moon },
  { value: "system", name: "System", icon: Monitor },
];

/** Who one is, how the desk looks, and the way out. */
export function PersonMenu() {
  const session = useSession();
  const id = useId();
  const [chosen, setChosen] = useState(theme);
  const queries = useQueryClient();
  const leave = useMutation({
    mutationFn: signOut,
    onSettled: () => {
      queries.clear();
      location.assign("/sign-in");
    },
  });
  return (
    <>
      <Button kind="plain" icon={UserRound} aria-label="You and your settings" popoverTarget={id} />
      <div id={id} popover="auto" className="menu">
        <div className="menu-head">
          <strong className="bidi">{plain(session.person?.name ?? "Service", 60)}</strong>
          <span className="faint">{session.role ?? session.kind}</span>
        </div>
        <fieldset className="row" aria-label="Theme">
          {THEMES.map(({ value, name, icon }) => (
            <Button
              key={value}
              small
              icon={icon}
              kind={chosen === value ? "primary" : "plain"}
              aria-pressed={chosen === value}
              aria-label={name}
              onClick={() => {
                applyTheme(value);
                setChosen(value);
              }}
            />
          ))}
        </fieldset>
        <a className="button plain" href="/docs">
          API description
        </a>
        <Button icon={LogOut} kind="plain" busy={leave.isPending} onClick={() => leave.mutate()}>
          Sign out
        </Button>
      </div>
    </>
  );
}
