// What an agent remembers, what it would recall, and what it dreamed of it.

import { BookOpen } from "lucide-react";
import { fileUrl } from "../../api/files";
import { ButtonLink } from "../../components/button";
import { useTitle } from "../../components/screen";
import { useAgent } from "../agents/agent-context";
import { Dreams } from "./dreams";
import { Memories } from "./memories";

export default function MemoryScreen() {
  const { id } = useAgent();
  const scope = { kind: "agent", id } as const;
  useTitle("Memory");
  return (
    <div className="stack memory-screen">
      <div className="row wrap">
        <p className="soft grow told">
          One line each, in the store. What comes up again and again is taken into MEMORY.md, and so
          into the prompt, while the agent dreams.
        </p>
        <ButtonLink small icon={BookOpen} to={fileUrl(scope, "MEMORY.md")}>
          MEMORY.md
        </ButtonLink>
        <ButtonLink small icon={BookOpen} to={fileUrl(scope, "DREAMS.md")}>
          DREAMS.md
        </ButtonLink>
      </div>
      <Dreams agentId={id} />
      <Memories agentId={id} />
    </div>
  );
}
