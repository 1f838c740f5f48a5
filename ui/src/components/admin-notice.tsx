import { useQuery } from "@tanstack/react-query";
import { Lock } from "lucide-react";
import { peopleQuery } from "../api/people";
import { escapeText } from "./escape-text";

/** Says that only owners and admins can use a feature, and who they are. */
export function AdminNotice({ feature }: { feature: string }) {
  const people = useQuery(peopleQuery);
  const admins = (people.data ?? []).filter(({ role }) => role !== "member");
  return (
    <div className="notice">
      <Lock size={16} aria-hidden />
      <div className="grow">
        <strong>Only owners and admins can {feature}.</strong>
        {admins.length > 0 && (
          <div className="soft bidi">
            Contact{" "}
            {admins
              .slice(0, 5)
              .map(({ name }) => escapeText(name, 60))
              .join(", ")}
            {admins.length > 5 && ` or ${admins.length - 5} others`}.
          </div>
        )}
      </div>
    </div>
  );
}
