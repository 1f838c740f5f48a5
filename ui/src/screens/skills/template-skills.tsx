// Skills tab of a template.

import { useTemplateScope } from "../templates/template-context";
import { SkillList } from "./skill-list";

export default function TemplateSkills() {
  return <SkillList scope={useTemplateScope()} />;
}
