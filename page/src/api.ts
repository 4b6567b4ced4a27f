/** The server: commands as POSTs, what happens as events. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export interface Conversation {
  id: string;
  title: string;
  state: string;
  turns: number;
  updated: number;
}

export interface RunInfo {
  run: string;
  state: string;
  title: string;
  session: string;
  parent: string;
  created: number;
  updated: number;
}

export interface RunDetails extends RunInfo {
  kind: 'agent' | 'flow';
  steps: number;
  tokens: number;
  cost: number | null;
  seconds: number;
}

export interface JournalRecord {
  seq: number;
  path: string;
  kind: string;
  at: number;
  value?: Json;
  blob?: string;
}

export interface Live {
  kind: string;
  run: string;
  step: number;
  text: string;
  parent?: string;
  stream?: string;
  error?: string;
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export async function call<T>(method: string, path: string, body?: unknown, key?: string): Promise<T> {
  const headers: Record<string, string> = body === undefined ? {} : { 'Content-Type': 'application/json' };
  if (key) headers['Idempotency-Key'] = key;
  const response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (!response.ok) {
    const problem = (await response.json().catch(() => ({}))) as { detail?: string; error?: string };
    throw new ApiError(response.status, problem.detail ?? problem.error ?? response.statusText);
  }
  return (await response.json()) as T;
}

/** What a person wrote as the result of a call. */
export function jsonOrText(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

/** The long value of a record. */
export async function blob(run: string, digest: string): Promise<Json> {
  const response = await fetch(`/api/runs/${run}/blobs/${digest}`);
  return response.ok ? ((await response.json()) as Json) : null;
}

/** Listens to a stream until it is closed. The browser goes on after a cut, from the last id. */
export function listen(path: string, handlers: Record<string, (data: never) => void>): () => void {
  const source = new EventSource(path);
  for (const [kind, handle] of Object.entries(handlers)) {
    source.addEventListener(kind, (event) => handle(JSON.parse((event as MessageEvent<string>).data) as never));
  }
  return () => source.close();
}
