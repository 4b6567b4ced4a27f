/** A run as it is shown: made from the records of the journal, and from what happens between them. */

import { blob, listen, watchRuns, type JournalRecord, type Json, type Live } from './api';
import { takeBuild, type Build } from './builds';
import { note, type GraphNode } from './graph';

/** How many events are taken before the page is drawn. */
const BATCH = 2000;

type Fields = { [name: string]: Json };

export interface Call {
  path: string;
  text: string;
  state: 'running' | 'done' | 'failed';
  result: string;
  /** The result in JSON; empty if there is none. */
  json: string;
}

export interface Display {
  mime: string;
  data: string;
  isBase64: boolean;
}

export interface Variable {
  name: string;
  type: string;
  size: string;
  text: string;
}

/** An agent or a flow that a call of a step has run. */
export interface Nested {
  path: string;
  task: string;
  state: 'running' | 'done' | 'failed';
  replies: number;
  cells: string[];
}

export interface Step {
  path: string;
  /** The path of the reply, and what the user has said before it. */
  asked: string;
  said: string[];
  seq: number;
  prose: string;
  thinking: string;
  code: string;
  output: string;
  value: string;
  error: string;
  seconds: number;
  isDone: boolean;
  calls: Call[];
  displays: Display[];
  variables: Variable[];
  nested: Nested[];
  builds: Build[];
}

export interface Question {
  path: string;
  kind: string;
  tool: string;
  text: string;
  arguments: string;
  diff: string;
}

const fields = (value: Json | undefined): Fields =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? value : {};
const text = (value: Json | undefined): string => (typeof value === 'string' ? value : '');
const shown = (value: Json | undefined): string => (typeof value === 'string' ? value : JSON.stringify(value ?? null));

/** What a value is under the marks of the journal: `{"$": type, "v": …}`. */
function plain(value: Json | undefined): Json {
  const marked = fields(value);
  return '$' in marked ? (marked.v ?? null) : (value ?? null);
}

/** The words of a reply without its code, which is shown as a cell. */
export function proseOf(reply: string): string {
  return reply.replace(/(^|\n)[ \t]*(`{3,}|~{3,})[ \t]*(python|py|tool_code)?[^\n]*\n[\s\S]*?(\n[ \t]*\2|$)/gi, '$1').trim();
}

export class Run {
  path = $state('');
  task = $state('');
  model = $state('');
  /** What the memory had for the message, one entry a line. */
  memory = $state<string[]>([]);
  /** Why, for each of them. */
  whys = $state<string[]>([]);
  files = $state<{ name: string; digest: string }[]>([]);
  steps = $state<Step[]>([]);
  questions = $state<Question[]>([]);
  answer = $state('');
  ended = $state('');
  error = $state('');
  notices = $state<string[]>([]);
  phase = $state('');
  /** What the model is writing. */
  draft = $state('');
  cost = $state<number | null>(null);
  tokens = $state(0);
  seconds = $state(0);
  isWorking = $state(true);
  #last = $state(0);
  #nodes = new Map<string, GraphNode>();
  #byPath = new Map<string, Step>();
  #said: string[] = [];
  #arrived: (JournalRecord | Live)[] = [];
  #isTaking = false;
  #endedAt = 0;
  #close: (() => void) | null = null;
  #unwatch: () => void;

  constructor(readonly id: string) {
    this.#follow();
    this.#unwatch = watchRuns((changed) => {
      if (changed.run !== id) return;
      this.error = changed.status === 'failed' ? changed.error : '';
      if (!this.#close && changed.updated > this.#endedAt) this.#follow();
    });
  }

  close(): void {
    this.#unwatch();
    this.#close?.();
  }

  #follow(): void {
    const arrive = (event: JournalRecord | Live) => {
      this.#arrived.push(event);
      if (!this.#isTaking) void this.#takeAll();
    };
    this.#close = listen(`/api/runs/${this.id}/events`, this.#last, { record: arrive, live: arrive });
  }

  /** A run that has ended needs no stream of its own until it changes: a browser has few connections. */
  #rest(): void {
    const last = this.#last;
    setTimeout(() => {
      if (this.#last !== last || this.ended === 'forked') return;
      this.#close?.();
      this.#close = null;
    }, 200);
  }

  /** Takes all that has arrived at once: thousands of records are drawn in a few frames. */
  async #takeAll(): Promise<void> {
    this.#isTaking = true;
    while (this.#arrived.length) {
      const events = this.#arrived.splice(0, BATCH);
      const values = await Promise.all(events.map((event) => ('blob' in event ? blob(this.id, event.blob!) : null)));
      for (const [at, event] of events.entries()) {
        if ('seq' in event) this.#take(event, values[at] ?? event.value);
        else this.#happen(event);
      }
      await new Promise((drawn) => setTimeout(drawn));
    }
    this.#isTaking = false;
  }

  get variables(): Variable[] {
    return this.steps.findLast((step) => step.isDone)?.variables ?? [];
  }

  /** Its parts, as far as they are recorded. */
  get nodes(): GraphNode[] {
    return this.#last ? [...this.#nodes.values()] : [];
  }

  #take(record: JournalRecord, content: Json | undefined): void {
    if (record.seq <= this.#last) return;
    note(this.#nodes, record);
    this.#last = record.seq;
    const value = fields(content);
    const parts = record.path.split('/');
    const name = (parts.at(-1) ?? '').replace(/#\d+$/, '');
    const isOwn = parts.length === 2;
    if (record.path === '' && record.kind === 'ended') this.#end(record, value);
    else if (parts.length === 1 && record.kind === 'opened') this.#open(record, value);
    else if (parts.length === 1 && record.kind === 'noted' && 'resumed' in value) this.#resume(fields(value.resumed));
    else if (parts.length === 1 && record.kind === 'done') this.#finish(value);
    else if (isOwn && name === 'ask' && record.kind === 'done') this.#reply(record, value);
    else if (isOwn && name === 'cell') this.#cell(record, value);
    else if (record.kind === 'asked') this.#ask(record, value);
    else if (record.kind === 'answered') this.questions = this.questions.filter((one) => one.path !== record.path);
    else if (parts.length === 3 && parts[1]!.startsWith('cell')) this.#call(record, parts.slice(0, 2).join('/'), value);
    else if (parts.length > 3 && parts[1]!.startsWith('cell')) this.#nest(record, parts, name, value);
  }

  /** What happens in agents and flows that a call of a cell has run. */
  #nest(record: JournalRecord, parts: string[], name: string, value: Fields): void {
    const step = this.#stepOf(parts.slice(0, 2).join('/'));
    if (step && takeBuild(step.builds, record, parts, value)) return;
    const nested = step?.nested;
    const known = nested?.find((one) => one.path === record.path);
    const around = nested?.findLast((one) => record.path.startsWith(`${one.path}/`));
    if (record.kind === 'opened' && !known && typeof value.task === 'string') {
      nested?.push({ path: record.path, task: value.task, state: 'running', replies: 0, cells: [] });
    } else if (known && (record.kind === 'done' || record.kind === 'failed')) known.state = record.kind;
    else if (around && name === 'ask' && record.kind === 'done') around.replies += 1;
    else if (around && name === 'cell' && record.kind === 'done') around.cells.push(text(value.code));
  }

  #resume(value: Fields): void {
    if (value.answer) this.#said.push(text(value.answer));
  }

  #open(record: JournalRecord, value: Fields): void {
    this.path = record.path;
    this.task = text(value.task);
    this.model = text(value.model);
    this.memory = text(value.memory).split('\n').filter(Boolean);
    this.whys = ((plain(fields(fields(value.meta)['habilis chat']).why) ?? []) as Json[]).map(text);
    this.files = ((plain(value.files) ?? []) as Json[]).map(fields).filter((one) => !one.is_earlier)
      .map((one) => ({ name: text(one.name), digest: text(one.digest) }));
    this.isWorking = true;
  }

  #reply(record: JournalRecord, value: Fields): void {
    this.draft = '';
    this.phase = '';
    this.isWorking = true;
    const usage = fields(value.usage);
    this.tokens += Number(usage.input_tokens ?? 0) + Number(usage.output_tokens ?? 0);
    this.steps.push({
      path: '', // its first cell says which: a reply may have none, so that their numbers differ
      asked: record.path,
      said: this.#said.splice(0),
      seq: record.seq,
      prose: proseOf(text(value.text)),
      thinking: text(value.thinking),
      code: '',
      output: '',
      value: '',
      error: '',
      seconds: 0,
      isDone: false,
      calls: [],
      displays: [],
      variables: [],
      nested: [],
      builds: [],
    });
  }

  #stepOf(path: string): Step | undefined {
    return this.#byPath.get(path) ?? this.steps.at(-1);
  }

  #cell(record: JournalRecord, value: Fields): void {
    const step = this.#stepOf(record.path);
    if (!step) return;
    step.path = record.path;
    this.#byPath.set(record.path, step);
    step.code = text(value.code) || step.code;
    if (record.kind !== 'done') return;
    const cell = fields(value.cell);
    const error = fields(cell.error);
    step.output = text(cell.stdout) + text(cell.stderr);
    step.value = value.answered ? '' : text(cell.text);
    step.error = text(error.traceback) || text(error.message);
    step.seconds = Number(cell.seconds ?? 0);
    step.isDone = true;
    step.displays = ((plain(cell.displays) ?? []) as Json[]).map((one) => {
      const known = fields(one);
      return { mime: text(known.mime), data: text(plain(known.data)), isBase64: '$' in fields(known.data) };
    });
    step.variables = Object.values(fields(value.variables)).map((one) => {
      const known = fields(one);
      return { name: text(known.name), type: text(known.type), size: text(known.size), text: text(known.text) };
    });
    if (value.answered) this.answer = shown(plain(value.answer));
  }

  #call(record: JournalRecord, cell: string, value: Fields): void {
    const step = this.#stepOf(cell);
    if (!step) return;
    const known = step.calls.find((one) => one.path === record.path);
    if ((record.kind === 'opened' || record.kind === 'started') && !known) {
      step.calls.push({ path: record.path, text: text(value.call), state: 'running', result: '', json: '' });
    } else if (known && (record.kind === 'done' || record.kind === 'failed')) {
      known.state = record.kind;
      known.result = record.kind === 'failed' ? text(value.text) : shown('p' in value ? value.p : value);
      known.json = record.kind === 'failed' ? 'null' : JSON.stringify(plain(value.p));
    }
  }

  #ask(record: JournalRecord, value: Fields): void {
    this.questions.push({
      path: record.path,
      kind: text(value.kind),
      tool: text(value.tool),
      text: text(value.question) || shown(value),
      arguments: value.arguments === undefined ? '' : JSON.stringify(value.arguments, null, 2),
      diff: text(value.diff),
    });
  }

  #finish(value: Fields): void {
    const result = fields(value.r);
    const output = fields(value.o);
    this.cost = Number(fields(result.usage).cost ?? 0);
    this.seconds = Number(result.seconds ?? 0);
    if (result.ended === 'answer') this.answer = shown(plain('p' in output ? output.p : this.answer));
  }

  #end(record: JournalRecord, value: Fields): void {
    this.#endedAt = record.at;
    this.#rest();
    this.ended = text(fields(value.value).ended) || text(value.status);
    this.isWorking = false;
    this.phase = '';
    this.draft = '';
  }

  #happen(live: Live): void {
    if (live.parent) return;
    if (live.kind === 'text') this.draft += live.step > this.steps.length ? live.text : ''; // its record may be here first
    else if (live.kind === 'step_started') {
      this.phase = 'thinking';
      this.draft = ''; // of a reply that was cut off, as by a kill
    }
    else if (live.kind === 'model_progress' || live.kind === 'retry') this.phase = live.text;
    else if (live.kind === 'code') this.#begin(live.text);
    else if (live.kind === 'output') this.#print(live.text);
    else if (live.kind === 'tool_logged') this.#say(live.text);
    else if (live.kind === 'notice') this.notices.push(live.text);
    else if (live.kind === 'turn_started') {
      this.isWorking = true;
      this.error = '';
    } else if (live.kind === 'turn_ended') {
      this.isWorking = false;
      this.error = live.error ?? '';
    }
  }

  #begin(code: string): void {
    this.phase = 'running code';
    const step = this.steps.at(-1);
    if (step && !step.isDone) {
      step.code = code;
      step.output = ''; // of code that was cut off
    }
  }

  /** What a build says about its stages. */
  #say(line: string): void {
    const build = this.steps.at(-1)?.builds.at(-1);
    if (build) build.said = line;
  }

  #print(output: string): void {
    const step = this.steps.at(-1);
    if (step && !step.isDone) step.output += output;
  }
}
