import { type ReactNode, useEffect } from "react";
import { NavLink } from "react-router";

interface ScreenProps {
  title: string;
  /** What stands in the heading where it is more than the title. */
  heading?: ReactNode;
  under?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

/** A whole page: its title in the tab of the browser and at the top, what can be done, the rest. */
export function Screen({ title, heading, under, actions, children }: ScreenProps) {
  useTitle(title);
  return (
    <div className="screen">
      <header className="screen-head">
        <div className="titles">
          <h1 className="bidi">{heading ?? title}</h1>
          {under && <div className="under">{under}</div>}
        </div>
        {actions && <div className="row wrap">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

export function useTitle(title: string) {
  useEffect(() => {
    document.title = `${title.slice(0, 200)} · Carrel`;
  }, [title]);
}

/** Tabs that are addresses. */
export function Tabs({
  label,
  tabs,
}: {
  label: string;
  tabs: { to: string; name: ReactNode; end?: boolean }[];
}) {
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map(({ to, name, end }) => (
        <NavLink
          key={to}
          to={to}
          end={end ?? false}
          className={({ isActive }) => (isActive ? "on" : "")}
        >
          {name}
        </NavLink>
      ))}
    </nav>
  );
}
