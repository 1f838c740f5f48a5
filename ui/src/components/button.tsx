import type { LucideIcon } from "lucide-react";
import type { ButtonHTMLAttributes } from "react";
import { Link, type LinkProps } from "react-router";

interface ButtonStyle {
  kind?: "primary" | "danger" | "plain";
  small?: boolean;
  icon?: LucideIcon;
}

const classNames = ({ kind, small }: ButtonStyle, isIconOnly: boolean, extra?: string) =>
  ["button", kind, small && "small", isIconOnly && "icon", extra].filter(Boolean).join(" ");

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & ButtonStyle & { busy?: boolean };

/** A button. An icon-only button needs an `aria-label`, which is also its tooltip. */
export function Button({
  kind,
  small,
  icon: Icon,
  busy,
  children,
  className,
  ...rest
}: ButtonProps) {
  return (
    <button
      type="button"
      title={children ? undefined : rest["aria-label"]}
      {...rest}
      disabled={rest.disabled || busy}
      aria-busy={busy || undefined}
      className={classNames({ kind, small }, !children, className)}
    >
      {busy ? <span className="spinner" /> : Icon && <Icon size={small ? 14 : 16} aria-hidden />}
      {children}
    </button>
  );
}

/** A link that looks like a button. */
export function ButtonLink({
  kind,
  small,
  icon: Icon,
  children,
  className,
  ...rest
}: LinkProps & ButtonStyle) {
  return (
    <Link {...rest} className={classNames({ kind, small }, !children, className)}>
      {Icon && <Icon size={small ? 14 : 16} aria-hidden />}
      {children}
    </Link>
  );
}
