// The public API, and nothing else: every request of the page leaves from here. The credential is a
// cookie that no script can read; the header below tells our own requests from those of other sites.

import createClient from "openapi-fetch";
import type { Document } from "./graphql.generated";
import { Problem } from "./problem";
import type { paths } from "./rest.generated";

// Types are looked up by path: component names follow the server's classes, paths do not change.
type JsonOf<Message> = Message extends { content: { "application/json": infer Body } }
  ? Body
  : never;
type Responses<Operation> = Operation extends { responses: infer ByStatus } ? ByStatus : never;

/** JSON body of a successful response. */
export type ResponseBody<
  Path extends keyof paths,
  Method extends keyof paths[Path] = "get" & keyof paths[Path],
> = JsonOf<
  Responses<paths[Path][Method]>[keyof Responses<paths[Path][Method]> & (200 | 201 | 202)]
>;

/** JSON body of a request. */
export type RequestBody<
  Path extends keyof paths,
  Method extends keyof paths[Path],
> = paths[Path][Method] extends { requestBody?: infer Message }
  ? JsonOf<NonNullable<Message>>
  : never;

const OURS = { "X-Carrel-Csrf": "1" };

async function reach(request: RequestInfo | URL, options?: RequestInit): Promise<Response> {
  try {
    return await fetch(request, options);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, { message: "The server cannot be reached." });
  }
}

export const api = createClient<paths>({
  baseUrl: "",
  headers: OURS,
  credentials: "same-origin",
  fetch: (request) => reach(request),
});

interface Answered<Data> {
  data?: Data;
  error?: unknown;
  response: Response;
}

/** What was answered; throws a Problem where it was a refusal. */
export async function take<Data>(asked: Promise<Answered<Data>>): Promise<NonNullable<Data>> {
  return (await taken(asked)).data;
}

/** The same, with the response, for those who want a header such as the ETag. */
export async function taken<Data>(
  asked: Promise<Answered<Data>>,
): Promise<{ data: NonNullable<Data>; response: Response }> {
  const { data, error, response } = await asked;
  if (!response.ok) throw refused(response, error);
  return { data: data as NonNullable<Data>, response };
}

function refused({ status, url }: Response, body: unknown): Problem {
  // At the door itself a refusal is the answer, and nothing to be asked about again.
  if (status === 401 && !url.endsWith("/v1/session")) dispatchEvent(new Event("carrel:signed-out"));
  return new Problem(status, body);
}

export async function graphql<Given, Taken>(
  query: Document<Given, Taken>,
  variables: Taken,
  signal?: AbortSignal,
): Promise<Given> {
  const response = await reach("/graphql", {
    method: "POST",
    headers: { ...OURS, "Content-Type": "application/json" },
    credentials: "same-origin",
    body: JSON.stringify({ query, variables }),
    signal: signal ?? null,
  });
  const body = await response.json().catch(() => null);
  if (!response.ok && !body?.errors) throw refused(response, body);
  const wrong = body?.errors?.[0];
  if (wrong && (body.data === null || body.data === undefined)) {
    throw new Problem(response.status, {
      error: wrong.extensions?.code,
      message: wrong.message,
      details: wrong.extensions,
    });
  }
  return body.data as Given;
}

interface Page<Item> {
  items: Item[];
  next?: string | null;
}

/** Every page of a list, one after the other, up to a bound. */
export async function all<Item>(
  page: (cursor: string | undefined) => Promise<Page<Item>>,
  most = 10_000,
): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const found = await page(cursor);
    items.push(...found.items);
    cursor = found.next ?? undefined;
  } while (cursor && items.length < most);
  return items;
}
