// Client of the public API; every request of the console goes through it. The credential is an
// HttpOnly cookie; the CSRF header marks same-site requests.

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

const CSRF_HEADER = { "X-Carrel-Csrf": "1" };

async function fetchOrThrow(request: RequestInfo | URL, options?: RequestInit): Promise<Response> {
  try {
    return await fetch(request, options);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, { message: "Cannot reach the server." });
  }
}

export const api = createClient<paths>({
  baseUrl: "",
  headers: CSRF_HEADER,
  credentials: "same-origin",
  fetch: (request) => fetchOrThrow(request),
});

interface ApiResult<Data> {
  data?: Data;
  error?: unknown;
  response: Response;
}

/** Response data of a call; throws a Problem if the call was refused. */
export async function unwrap<Data>(call: Promise<ApiResult<Data>>): Promise<NonNullable<Data>> {
  return (await unwrapWithResponse(call)).data;
}

/** Like `unwrap`, with the response, for callers that read a header such as ETag. */
export async function unwrapWithResponse<Data>(
  call: Promise<ApiResult<Data>>,
): Promise<{ data: NonNullable<Data>; response: Response }> {
  const { data, error, response } = await call;
  if (!response.ok) throw problemFrom(response, error);
  return { data: data as NonNullable<Data>, response };
}

function problemFrom({ status, url }: Response, body: unknown): Problem {
  // A 401 from the session endpoint itself is an answer, not an expired session.
  if (status === 401 && !url.endsWith("/v1/session")) dispatchEvent(new Event("carrel:signed-out"));
  return new Problem(status, body);
}

export async function graphql<Result, Variables>(
  query: Document<Result, Variables>,
  variables: Variables,
  signal?: AbortSignal,
): Promise<Result> {
  const response = await fetchOrThrow("/graphql", {
    method: "POST",
    headers: { ...CSRF_HEADER, "Content-Type": "application/json" },
    credentials: "same-origin",
    body: JSON.stringify({ query, variables }),
    signal: signal ?? null,
  });
  const body = await response.json().catch(() => null);
  if (!response.ok && !body?.errors) throw problemFrom(response, body);
  const firstError = body?.errors?.[0];
  if (firstError && (body.data === null || body.data === undefined)) {
    throw new Problem(response.status, {
      error: firstError.extensions?.code,
      message: firstError.message,
      details: firstError.extensions,
    });
  }
  return body.data as Result;
}

interface Page<Item> {
  items: Item[];
  next?: string | null;
}

/** Items of all pages of a list; stops after the page that reaches `maxItems`. */
export async function fetchAllPages<Item>(
  fetchPage: (cursor: string | undefined) => Promise<Page<Item>>,
  maxItems = 10_000,
): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const result = await fetchPage(cursor);
    items.push(...result.items);
    cursor = result.next ?? undefined;
  } while (cursor && items.length < maxItems);
  return items;
}
