import { useQuery } from "@tanstack/react-query";
import { Lock } from "lucide-react";
import { peopleQuery } from "../api/people";
import { plain } from "./escape-text";

/** Says that something is for owners and admins, and who they are. */
export function OnlyAdmins({ what }: { what: string }) {
  const people = useQuery(peopleQuery);
  const able = (people.data ?? []).filter(({ role }) => role !== "member");
  return (
    <div className="notice">
      <Lock size={16} aria-hidden />
      <div className="grow">
        <strong>{what} is for owners and admins.</strong>
        {able.length > 0 && (
          <div className="soft bidi">
            Ask{" "}
            {able
              .slice(0, 5)
              .map(({ name }) => plain(name, 60))
              .join(", ")}
            {able.length > 5 && ` or ${able.length - 5} others`}.
          </div>
        )}
      </div>
    </div>
  );
}
