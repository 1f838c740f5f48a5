// Memory tab of an agent: dreams and memories.

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
        <p className="soft grow intro">
          Memories are single lines. Dreams promote frequently recalled ones to MEMORY.md, which is
          part of the prompt.
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
