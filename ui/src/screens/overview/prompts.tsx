import { Link } from "react-router";
import type { Overview } from "../../api/overview";
import { escapeText } from "../../components/escape-text";
import { formatNumber, type Series, ShareBars, StackedAreas } from "./chart";
import { OverviewCard, toDay } from "./overview-card";

type Sizes = Overview["prompts"]["byDay"][number];

/** In the order of a prompt. */
const BLOCKS = [
  ...["PLATFORM", "GUARDRAILS", "CAPABILITIES", "IDENTITY", "SOUL", "USER"],
  ...["AGENTS", "SKILLS", "RECENT NOTES", "MEMORY", "WORKSPACES", "OTHER"],
];

function blockSeries(sizes: Pick<Sizes, "blocks">[]): Series[] {
  const present = new Set(sizes.flatMap(({ blocks }) => blocks.map(({ name }) => name)));
  return BLOCKS.flatMap((name, at) =>
    present.has(name) ? [{ name, color: `var(--block-${at + 1})` }] : [],
  );
}

const blockValues = ({ blocks }: Pick<Sizes, "blocks">, series: Series[]) =>
  series.map(({ name }) => blocks.find((block) => block.name === name)?.tokens ?? 0);

const stableShare = ({ tokens, stableTokens }: Pick<Sizes, "tokens" | "stableTokens">) =>
  tokens ? `${Math.round((100 * stableTokens) / tokens)}% cacheable` : "";

const NoPrompts = () => <p className="faint">No prompt of a run was assembled in this period.</p>;

export function PromptTimeCard({ overview: { prompts } }: { overview: Overview }) {
  const { byDay } = prompts;
  const series = blockSeries(byDay);
  const last = byDay.at(-1);
  return (
    <OverviewCard
      title="Prompt size"
      summary={last && `${formatNumber(last.tokens)} tokens, ${stableShare(last)}`}
    >
      {byDay.length ? (
        <StackedAreas
          caption="Average tokens of a prompt by day and block"
          unit="Day"
          series={series}
          points={byDay.map((day) => ({ label: toDay(day.at), values: blockValues(day, series) }))}
        />
      ) : (
        <NoPrompts />
      )}
    </OverviewCard>
  );
}

const MAX_TEMPLATES = 6;

export function TemplatePromptsCard({ overview: { prompts } }: { overview: Overview }) {
  const sizes = prompts.byTemplate.slice(0, MAX_TEMPLATES);
  const series = blockSeries(sizes);
  const rows = sizes.map((template) => ({
    label: escapeText(template.templateName ?? template.templateId ?? "No template", 60),
    values: blockValues(template, series),
    summary: `${formatNumber(template.tokens)} tokens, ${stableShare(template)}`,
  }));
  return (
    <OverviewCard
      title="Prompts by template"
      summary="Average of the runs"
      actions={<Link to="/agent-templates">Templates</Link>}
    >
      {rows.length ? (
        <ShareBars
          caption="Average tokens of a prompt by template and block"
          unit="Template"
          series={series}
          rows={rows}
          maximum={Math.max(...sizes.map(({ tokens }) => tokens))}
        />
      ) : (
        <NoPrompts />
      )}
    </OverviewCard>
  );
}
