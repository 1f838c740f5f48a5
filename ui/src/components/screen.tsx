import { type ReactNode, useEffect, useRef } from "react";
import { NavLink, useLocation } from "react-router";

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

/** Scrolls the tabs of a small window to the active one. */
function useActiveTabInView() {
  const nav = useRef<HTMLElement>(null);
  const { pathname } = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: navigation changes the active tab
  useEffect(() => {
    const active = nav.current?.querySelector<HTMLElement>('[aria-current="page"]');
    active?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [pathname]);
  return nav;
}

/** Tabs that link to routes. */
export function Tabs({
  label,
  tabs,
}: {
  label: string;
  tabs: { to: string; name: ReactNode; end?: boolean }[];
}) {
  const nav = useActiveTabInView();
  return (
    <nav className="tabs" aria-label={label} ref={nav}>
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
