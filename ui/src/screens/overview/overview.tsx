// Overview: what needs attention, and the state of all agents.

import { useQuery } from "@tanstack/react-query";
import { Bot } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";
import { type Overview, overviewQuery } from "../../api/overview";
import { ButtonLink } from "../../components/button";
import { EmptyState, QueryResult } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { Activity } from "./activity";
import { formatNumber } from "./chart";
import { DriftCard, OverridesCard } from "./drift";
import { MemoryCard } from "./memories";
import { PromptTimeCard, TemplatePromptsCard } from "./prompts";
import { RunsCard } from "./runs";

const PERIODS = [7, 30, 90];

export default function OverviewScreen() {
  const [days, setDays] = useState(30);
  const query = useQuery(overviewQuery(days));
  const agents = query.data?.agents;
  return (
    <Screen
      title="Overview"
      subtitle={
        agents !== undefined && `${formatNumber(agents)} ${agents === 1 ? "agent" : "agents"}`
      }
      actions={
        <select
          className="input"
          aria-label="Period"
          value={days}
          onChange={(event) => setDays(Number(event.target.value))}
        >
          {PERIODS.map((period) => (
            <option key={period} value={period}>
              Last {period} days
            </option>
          ))}
        </select>
      }
    >
      <QueryResult query={query} label="Loading the overview">
        {(overview) => (overview.agents === 0 ? <NoAgents /> : <Cards overview={overview} />)}
      </QueryResult>
    </Screen>
  );
}

function NoAgents() {
  return (
    <EmptyState icon={Bot} title="No agents yet">
      <p>Runs, reviews and memories of your agents appear here.</p>
      <ButtonLink kind="primary" to="/agents">
        Go to agents
      </ButtonLink>
    </EmptyState>
  );
}

function Cards({ overview }: { overview: Overview }) {
  return (
    <div className="overview">
      <NeedsAttention overview={overview} />
      <RunsCard overview={overview} />
      <Activity />
      <DriftCard overview={overview} />
      <OverridesCard overview={overview} />
      <PromptTimeCard overview={overview} />
      <TemplatePromptsCard overview={overview} />
      <MemoryCard overview={overview} />
    </div>
  );
}

function NeedsAttention({ overview: { waiting } }: { overview: Overview }) {
  const { pins, approvals, dreams, failedRuns } = waiting;
  return (
    <section className="overview-tiles" aria-label="Needs attention">
      <Tile to="/inbox?all" count={pins} name="Updates to review" />
      <Tile to="/approvals" count={approvals} name="Approvals" />
      <Tile to="/inbox?all" count={dreams} name="Dreams to review" />
      <Tile to="/runs" count={failedRuns} name="Failed runs, last 24 hours" isBad />
    </section>
  );
}

interface TileProps {
  to: string;
  count: number;
  name: string;
  isBad?: boolean;
}

function Tile({ to, count, name, isBad = false }: TileProps) {
  const state = count === 0 ? "quiet" : isBad ? "bad" : "waiting";
  return (
    <Link className={`card overview-tile ${state}`} to={to}>
      <strong>{formatNumber(count)}</strong>
      <span>{name}</span>
    </Link>
  );
}
