import { type ReactNode, useEffect } from "react";
import { NavLink } from "react-router";

interface ScreenProps {
  title: string;
  /** Heading, if it differs from the title. */
  heading?: ReactNode;
  subtitle?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

/** A page with document title, heading, actions and content. */
export function Screen({ title, heading, subtitle, actions, children }: ScreenProps) {
  useTitle(title);
  return (
    <div className="screen">
      <header className="screen-header">
        <div className="title-block">
          <h1 className="bidi">{heading ?? title}</h1>
          {subtitle && <div className="subtitle">{subtitle}</div>}
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

/** Tabs that link to routes. */
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
          className={({ isActive }) => (isActive ? "active" : "")}
        >
          {name}
        </NavLink>
      ))}
    </nav>
  );
}
