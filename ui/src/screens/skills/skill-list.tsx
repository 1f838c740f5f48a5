// Skills of an agent or a template: what each is for, where it comes from, and its problems.

import { useQuery } from "@tanstack/react-query";
import { BookOpen } from "lucide-react";
import { Link } from "react-router";
import { type FileScope, fileUrl } from "../../api/files";
import { type Skill, skillsQuery } from "../../api/skills";
import { CopyButton } from "../../components/copy-button";
import { escapeText } from "../../components/escape-text";
import { EmptyState, QueryResult } from "../../components/query-states";
import { layerOf } from "../prompt/layer";

const SHORT_DIGEST_LENGTH = 12;

export function SkillList({ scope }: { scope: FileScope }) {
  return (
    <QueryResult query={useQuery(skillsQuery(scope))} label="Loading skills">
      {(skills) => (skills.length ? <SkillTable scope={scope} skills={skills} /> : <NoSkills />)}
    </QueryResult>
  );
}

const NoSkills = () => (
  <EmptyState icon={BookOpen} title="No skills">
    <p>
      A skill is a folder <code>skills/name</code> with a <code>SKILL.md</code>.
    </p>
  </EmptyState>
);

function SkillTable({ scope, skills }: { scope: FileScope; skills: readonly Skill[] }) {
  return (
    <div className="table-wrap">
      <table className="table" aria-label="Skills">
        <thead>
          <tr>
            <th scope="col">Skill</th>
            <th scope="col">Status</th>
            <th scope="col">Layer</th>
            <th scope="col">Class</th>
            <th scope="col">Digest</th>
          </tr>
        </thead>
        <tbody>
          {skills.map((skill) => (
            <Row key={skill.name} scope={scope} skill={skill} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The file that says what a skill is for; else the first of its folder. */
const mainFile = (skill: Skill) =>
  skill.files.find(({ path }) => path === "SKILL.md") ?? skill.files[0];

const distinct = (values: readonly string[]) => [...new Set(values)].join(", ");

function Row({ scope, skill }: { scope: FileScope; skill: Skill }) {
  const file = mainFile(skill);
  const hasUpdate = skill.files.some(({ updateAvailable }) => updateAvailable);
  const name = escapeText(skill.name, 80);
  return (
    <tr>
      <td>
        <strong className="bidi">
          {file ? (
            <Link to={fileUrl(scope, `skills/${skill.name}/${file.path}`)}>{name}</Link>
          ) : (
            name
          )}
        </strong>
        <div className="soft bidi">{escapeText(skill.description, 400)}</div>
      </td>
      <td>
        <Status skill={skill} />
        {hasUpdate && <span className="badge update">update available</span>}
      </td>
      <td>{distinct(skill.files.map(({ source }) => layerOf(source).name))}</td>
      <td>{distinct(skill.files.map((row) => row.class))}</td>
      <td>
        <Digest skill={skill} />
      </td>
    </tr>
  );
}

function Status({ skill }: { skill: Skill }) {
  if (skill.valid) return <span className="badge good">valid</span>;
  return (
    <>
      <span className="badge bad">not offered</span>
      {skill.problems.map((problem) => (
        <div className="soft bidi" key={problem}>
          {escapeText(problem, 400)}
        </div>
      ))}
    </>
  );
}

function Digest({ skill }: { skill: Skill }) {
  const hex = skill.digest.replace("sha256:", "");
  return (
    <span className="row">
      <code title={skill.digest}>{hex.slice(0, SHORT_DIGEST_LENGTH)}</code>
      <CopyButton text={skill.digest} label={`Copy the digest of ${escapeText(skill.name, 80)}`} />
    </span>
  );
}
