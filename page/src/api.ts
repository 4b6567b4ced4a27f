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
  steps: number;
  tokens: number;
  cost: number | null;
  seconds: number;
}

export interface RunDetails extends RunInfo {
  kind: 'agent' | 'flow';
  name: string;
}

/** A run that has changed. */
export interface RunChange {
  run: string;
  status: string;
  error: string;
  updated: number;
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

const RETRY = 3000;

/**
 * Listens to a stream until it is closed, without a gap: after a cut it goes on from the last id. A page that nobody
 * looks at has no stream: a browser opens six connections to a server, and all its tabs share them.
 */
export function listen(path: string, after: number | null, handlers: Record<string, (data: never) => void>): () => void {
  let last = after === null ? '' : String(after);
  let source: EventSource | undefined;
  let timer = 0;

  function close(): void {
    clearTimeout(timer);
    source?.close();
  }

  function open(): void {
    close();
    if (document.hidden) return;
    source = new EventSource(last ? `${path}?after=${last}` : path);
    // A browser comes back by itself unless it was refused, as by a server that has just started.
    source.onerror = () => {
      if (source?.readyState === EventSource.CLOSED) timer = window.setTimeout(open, RETRY);
    };
    for (const kind of ['here', ...Object.keys(handlers)]) {
      source.addEventListener(kind, (event: MessageEvent<string>) => {
        last = event.lastEventId || last;
        handlers[kind]?.(JSON.parse(event.data) as never);
      });
    }
  }

  document.addEventListener('visibilitychange', open);
  open();
  return () => {
    document.removeEventListener('visibilitychange', open);
    close();
  };
}

const watching = new Set<(run: RunChange) => void>();
let stopWatching = () => {};

/** Calls `handle` with each run of the user that changes. All views share one stream. */
export function watchRuns(handle: (run: RunChange) => void): () => void {
  if (!watching.size) {
    stopWatching = listen('/api/events', null, { run: (run: RunChange) => watching.forEach((one) => one(run)) });
  }
  watching.add(handle);
  return () => {
    watching.delete(handle);
    if (!watching.size) stopWatching();
  };
}
