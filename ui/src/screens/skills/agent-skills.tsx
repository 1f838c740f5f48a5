// Skills tab of an agent.

import { useMemo } from "react";
import type { FileScope } from "../../api/files";
import { useTitle } from "../../components/screen";
import { useAgent } from "../agents/agent-context";
import { SkillList } from "./skill-list";

export default function AgentSkills() {
  const { id } = useAgent();
  const scope = useMemo<FileScope>(() => ({ kind: "agent", id }), [id]);
  useTitle("Skills");
  return (
    <section className="stack" aria-labelledby="skills-heading">
      <h2 id="skills-heading">Skills</h2>
      <SkillList scope={scope} />
    </section>
  );
}
