// Made by `make ui-types` from the server's own description; change that instead.
export type Maybe<T> = T | null;
export type InputMaybe<T> = Maybe<T>;
export type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
export type MakeOptional<T, K extends keyof T> = Omit<T, K> & { [SubKey in K]?: Maybe<T[SubKey]> };
export type MakeMaybe<T, K extends keyof T> = Omit<T, K> & { [SubKey in K]: Maybe<T[SubKey]> };
export type MakeEmpty<T extends { [key: string]: unknown }, K extends keyof T> = { [_ in K]?: never };
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
/** All built-in and custom scalars, mapped to their actual values */
export type Scalars = {
  ID: { input: string; output: string; }
  String: { input: string; output: string; }
  Boolean: { input: boolean; output: boolean; }
  Int: { input: number; output: number; }
  Float: { input: number; output: number; }
  /** A moment in UTC as RFC 3339 has it, to the millisecond. */
  DateTime: { input: string; output: string; }
  /** Any JSON value. */
  JSON: { input: Record<string, unknown>; output: Record<string, unknown>; }
  /** A whole number of up to 53 bits. */
  Whole: { input: number; output: number; }
};

/** What a person may do. */
export type Role =
  /** Everything, and making other owners. */
  | 'owner'
  /** Everything but making owners. */
  | 'admin'
  /** Everything but what changes the tenant or its agents. */
  | 'member';

/** What kind of caller a credential stands for. */
export type CallerKind =
  /** A person. */
  | 'person'
  /** A program of the tenant's. */
  | 'service'
  /** An agent, confined to its own workspace. */
  | 'agent';

/** How an edit of a layer beneath reaches an agent's file. */
export type FileClass =
  /** At the next read. */
  | 'live'
  /** When somebody has reviewed it. */
  | 'pinned'
  /** Never: Carrel writes the file itself. */
  | 'managed';

/** What is done with text that is shaped like a secret. */
export type Redaction =
  /** It is replaced. */
  | 'redact'
  /** It stays, and the writer is told. */
  | 'warn'
  /** Nothing. */
  | 'off';

/** What has become of a run. */
export type RunStatus =
  /** It goes on. */
  | 'running'
  /** It came to its end. */
  | 'completed'
  /** It broke. */
  | 'failed'
  /** Somebody stopped it. */
  | 'cancelled';

/** Who is listening to a run. */
export type RunScope =
  /** One person. */
  | 'main'
  /** Several. */
  | 'shared';

/** One place where files stand: exactly one of these. */
export type Place =
  /** An agent's, over its template's, over the defaults: by id or slug. */
  { agentId: Scalars['ID']['input']; templateId?: never; workspaceId?: never; defaults?: never; }
  |  /** A template's own, by id or slug. */
  { agentId?: never; templateId: Scalars['ID']['input']; workspaceId?: never; defaults?: never; }
  |  /** A workspace's, by its name. */
  { agentId?: never; templateId?: never; workspaceId: Scalars['ID']['input']; defaults?: never; }
  |  /** The tenant's defaults: `true`. */
  { agentId?: never; templateId?: never; workspaceId?: never; defaults: Scalars['Boolean']['input']; };

/** What an agent begins with. */
export type CreateAgentFromTemplateInput = {
  /** The template to follow, by id or slug. */
  templateId: Scalars['ID']['input'];
  /** What it is called. */
  name: Scalars['String']['input'];
  /** Its name in addresses: a-z, 0-9 and hyphens. */
  slug: Scalars['String']['input'];
  /** A team of your own reckoning; kept in `config`. */
  teamId?: InputMaybe<Scalars['ID']['input']>;
  /** Whoever repeats it under the same key is given the first answer, and nothing is done twice. */
  idempotencyKey?: InputMaybe<Scalars['String']['input']>;
};

/** What may change of an agent. */
export type UpdateAgentInput = {
  /** What it is called: written into IDENTITY.md and USER.md. */
  name?: InputMaybe<Scalars['String']['input']>;
  /** Its name in addresses. */
  slug?: InputMaybe<Scalars['String']['input']>;
  /** The person whom it works for: written into USER.md. */
  humanPairId?: InputMaybe<Scalars['ID']['input']>;
  /** The template to follow, by id or slug. Pins stay. */
  templateId?: InputMaybe<Scalars['ID']['input']>;
  /** Whether it works for several. */
  isShared?: InputMaybe<Scalars['Boolean']['input']>;
  /** The person to whom it belongs. */
  ownerId?: InputMaybe<Scalars['ID']['input']>;
  /** Whatever else is to be kept with it: an object of at most 64 fields. */
  config?: InputMaybe<Scalars['JSON']['input']>;
};

/** What a person says of themselves. */
export type UpdateUserProfileInput = {
  /** What they do. */
  title?: InputMaybe<Scalars['String']['input']>;
  /** An IANA zone such as Europe/Paris. */
  timezone?: InputMaybe<Scalars['String']['input']>;
  /** How they are spoken of. */
  pronouns?: InputMaybe<Scalars['String']['input']>;
};

/** A person to be added. */
export type CreatePersonInput = {
  /** Their name. */
  name: Scalars['String']['input'];
  /** Their e-mail address; letter case makes no difference. */
  email: Scalars['String']['input'];
  /** What they may do. */
  role: Role;
  /** What they do. */
  title?: InputMaybe<Scalars['String']['input']>;
  /** An IANA zone such as Europe/Paris. */
  timezone?: InputMaybe<Scalars['String']['input']>;
  /** How they are spoken of. */
  pronouns?: InputMaybe<Scalars['String']['input']>;
};

/** What may change of a person. */
export type UpdatePersonInput = {
  /** Their name. */
  name?: InputMaybe<Scalars['String']['input']>;
  /** Their e-mail address. */
  email?: InputMaybe<Scalars['String']['input']>;
  /** What they may do. */
  role?: InputMaybe<Role>;
  /** What they do. */
  title?: InputMaybe<Scalars['String']['input']>;
  /** An IANA zone such as Europe/Paris. */
  timezone?: InputMaybe<Scalars['String']['input']>;
  /** How they are spoken of. */
  pronouns?: InputMaybe<Scalars['String']['input']>;
};

/** A template to be created. */
export type CreateTemplateInput = {
  /** Its name in addresses. */
  slug: Scalars['String']['input'];
  /** What it is called. */
  name: Scalars['String']['input'];
};

/** What may change of a template. */
export type UpdateTemplateInput = {
  /** Its name in addresses. */
  slug?: InputMaybe<Scalars['String']['input']>;
  /** What it is called. */
  name?: InputMaybe<Scalars['String']['input']>;
};

/** A policy; what is left out is as it is by default. */
export type PolicyInput = {
  /** Of every agent, template and plain workspace. */
  limits?: InputMaybe<LimitsInput>;
  /** Of shared workspaces. */
  sharedLimits?: InputMaybe<LimitsInput>;
  /** What is done with text that is shaped like a secret. */
  redaction?: InputMaybe<Redaction>;
  /** Days after which a run that has ended is let go; null keeps all. */
  runRetentionDays?: InputMaybe<Scalars['Int']['input']>;
  /** Which paths are of which class; the first that fits decides, after those that are always so. */
  classes?: InputMaybe<Array<ClassRuleInput>>;
  /** Patterns of the paths that an agent's own key may write. */
  agentWritable?: InputMaybe<Array<Scalars['String']['input']>>;
};

/** How much a workspace may hold. */
export type LimitsInput = {
  /** Bytes of one file. */
  maxFileBytes?: InputMaybe<Scalars['Whole']['input']>;
  /** Files of one workspace. */
  maxFiles?: InputMaybe<Scalars['Whole']['input']>;
  /** Versions that are kept of a file. */
  maxVersions?: InputMaybe<Scalars['Whole']['input']>;
  /** Bytes of one workspace; null is no limit. */
  maxBytes?: InputMaybe<Scalars['Whole']['input']>;
};

/** Paths that fit a pattern are of a class. */
export type ClassRuleInput = {
  /** `*` stops at a slash, `**` does not. */
  pattern: Scalars['String']['input'];
  /** What they are. */
  class: FileClass;
};

export type AgentOverviewQueryVariables = Exact<{
  id: Scalars['ID']['input'];
}>;


export type AgentOverviewQuery = { agent?: { id: string, slug: string, name: string, isShared: boolean, overrideCount?: number | null, updatesAvailable?: number | null, template?: { id: string, name: string } | null, humanPair?: { id: string, name: string } | null, lastRun?: { id: string, status: RunStatus, startedAt: string } | null } | null };

export type AgentsNamedQueryVariables = Exact<{
  startsWith: Scalars['String']['input'];
}>;


export type AgentsNamedQuery = { agents?: { items: Array<{ id: string, slug: string, name: string }> } | null };

export type AgentsOverviewQueryVariables = Exact<{
  after: Scalars['String']['input'];
  first: Scalars['Int']['input'];
}>;


export type AgentsOverviewQuery = { agents?: { next?: string | null, items: Array<{ id: string, slug: string, name: string, isShared: boolean, overrideCount?: number | null, updatesAvailable?: number | null, template?: { id: string, name: string } | null, humanPair?: { id: string, name: string } | null, lastRun?: { id: string, status: RunStatus, startedAt: string } | null }> } | null };

export type RunsListedQueryVariables = Exact<{
  after: Scalars['String']['input'];
  first: Scalars['Int']['input'];
  agentId?: InputMaybe<Scalars['ID']['input']>;
}>;


export type RunsListedQuery = { runs?: { next?: string | null, items: Array<{ id: string, workflowId: string, status: RunStatus, scope: RunScope, agentId?: string | null, parentRunId?: string | null, replayOf?: string | null, startedAt: string, endedAt?: string | null, kept: boolean, agent?: { id: string, slug: string, name: string } | null }> } | null };

export type TemplateReviewQueryVariables = Exact<{
  id: Scalars['ID']['input'];
  after: Scalars['String']['input'];
}>;


export type TemplateReviewQuery = { template?: { id: string, name: string, followerCount?: number | null, followers?: { next?: string | null, items: Array<{ id: string, name: string, slug: string, pins?: Array<{ path: string, pinnedSha?: string | null, latestSha?: string | null, updateAvailable: boolean, newlyOffered: boolean, overridden: boolean }> | null }> } | null } | null };

export type UpdateProfileMutationVariables = Exact<{
  userId: Scalars['ID']['input'];
  input: UpdateUserProfileInput;
}>;


export type UpdateProfileMutation = { updateUserProfile: { id: string, title?: string | null, timezone?: string | null, pronouns?: string | null } };
export const AgentOverview = "query AgentOverview($id: ID!) { agent(id: $id) { id slug name isShared template { id name } humanPair { id name } overrideCount updatesAvailable lastRun { id status startedAt } } }" as unknown as Document<AgentOverviewQuery, AgentOverviewQueryVariables>;
export const AgentsNamed = "query AgentsNamed($startsWith: String!) { agents(first: 8, startsWith: $startsWith) { items { id slug name } } }" as unknown as Document<AgentsNamedQuery, AgentsNamedQueryVariables>;
export const AgentsOverview = "query AgentsOverview($after: String!, $first: Int!) { agents(first: $first, after: $after) { items { id slug name isShared template { id name } humanPair { id name } overrideCount updatesAvailable lastRun { id status startedAt } } next } }" as unknown as Document<AgentsOverviewQuery, AgentsOverviewQueryVariables>;
export const RunsListed = "query RunsListed($after: String!, $first: Int!, $agentId: ID) { runs(first: $first, after: $after, agentId: $agentId) { items { id workflowId status scope agentId agent { id slug name } parentRunId replayOf startedAt endedAt kept } next } }" as unknown as Document<RunsListedQuery, RunsListedQueryVariables>;
export const TemplateReview = "query TemplateReview($id: ID!, $after: String!) { template(id: $id) { id name followerCount followers(first: 100, after: $after) { items { id name slug pins { path pinnedSha latestSha updateAvailable newlyOffered overridden } } next } } }" as unknown as Document<TemplateReviewQuery, TemplateReviewQueryVariables>;
export const UpdateProfile = "mutation UpdateProfile($userId: ID!, $input: UpdateUserProfileInput!) { updateUserProfile(userId: $userId, input: $input) { id title timezone pronouns } }" as unknown as Document<UpdateProfileMutation, UpdateProfileMutationVariables>;
export type Document<Given, Taken> = string & { given?: Given; taken?: Taken };
