/** The parts of a run as a graph: steps of flows, agents, code and calls, each inside of what has started it.
 *
 * Drawn as our own SVG: a layout of nested boxes is less than a hundred lines, where Mermaid's library is larger than
 * the rest of the page, and makes styles that the content policy forbids.
 */

import type { JournalRecord } from './api';

export interface GraphNode {
  path: string;
  name: string;
  state: 'running' | 'waiting' | 'done' | 'failed';
  /** The numbers of its first and its last record. */
  first: number;
  last: number;
}

export interface Box {
  node: GraphNode;
  x: number;
  y: number;
  width: number;
  height: number;
  inner: Box[];
  arrows: string[];
}

const STATES: Record<string, GraphNode['state']> = {
  opened: 'running', started: 'running', asked: 'waiting', answered: 'running', done: 'done', failed: 'failed',
};
const [WIDTH, HEIGHT, GAP, PAD, TITLE] = [150, 30, 26, 12, 28];

/** Takes a record into the graph. Replies, what only groups others, and the agent that a call is, are no parts of it. */
export function note(nodes: Map<string, GraphNode>, record: JournalRecord): void {
  const [around, name] = ['', ...record.path.split('/')].slice(-2).map(label) as [string, string];
  const state = STATES[record.kind];
  if (!state || !name || name === around || /^(~.*|ask|verdict|validated|compaction|parallel)$/.test(name)) return;
  const known = nodes.get(record.path);
  if (!known) nodes.set(record.path, { path: record.path, name, state, first: record.seq, last: record.seq });
  else Object.assign(known, { state, last: record.seq });
}

/** The name of a part: `price(78796463)#1` is `price`, and the code of a step is known by its number. */
function label(part: string): string {
  return part.replace(/^cell#(\d+)$/, 'step $1').replace(/#\d+$/, '').replace(/\([0-9a-f]*\)$/, '');
}

/** The graph as boxes in boxes: what comes later is below, what happens at the same time is beside. */
export function arrange(nodes: Iterable<GraphNode>): Box[] {
  const known = new Map([...nodes].map((node) => [node.path, node]));
  const inside = new Map<string, GraphNode[]>();
  for (const node of known.values()) {
    let parent = node.path;
    do parent = parent.slice(0, Math.max(0, parent.lastIndexOf('/')));
    while (parent && !known.has(parent));
    inside.set(parent, [...(inside.get(parent) ?? []), node]);
  }
  return (inside.get('') ?? []).map((node) => box(node, inside));
}

function box(node: GraphNode, inside: Map<string, GraphNode[]>): Box {
  const rows = rowsOf(inside.get(node.path) ?? []).map((row) => row.map((one) => box(one, inside)));
  if (!rows.length) return { node, x: 0, y: 0, width: WIDTH, height: HEIGHT, inner: [], arrows: [] };
  const widths = rows.map((row) => row.reduce((sum, one) => sum + one.width + PAD, -PAD));
  const width = Math.max(WIDTH, ...widths) + 2 * PAD;
  const arrows: string[] = [];
  let y = TITLE;
  rows.forEach((row, number) => {
    let x = (width - widths[number]!) / 2;
    for (const one of row) {
      Object.assign(one, { x, y });
      x += one.width + PAD;
      for (const before of rows[number - 1] ?? []) {
        const from = `${before.x + before.width / 2} ${before.y + before.height}`;
        arrows.push(`M${from} L${one.x + one.width / 2} ${y - 3}`);
      }
    }
    y += Math.max(...row.map((one) => one.height)) + GAP;
  });
  return { node, x: 0, y: 0, width, height: y - GAP + PAD, inner: rows.flat(), arrows };
}

/** Parts that run at the same time, in the order in which they start. */
function rowsOf(nodes: GraphNode[]): GraphNode[][] {
  const rows: GraphNode[][] = [];
  for (const node of [...nodes].sort((left, right) => left.first - right.first)) {
    const row = rows.at(-1);
    if (row?.every((other) => areParallel(other, node))) row.push(node);
    else rows.push([node]);
  }
  return rows;
}

function areParallel(left: GraphNode, right: GraphNode): boolean {
  const [mine, other] = [left, right].map((node) => /.*\/(~[^/]*)\//.exec(node.path)?.[0]);
  return (mine !== undefined && other !== undefined && mine !== other) || right.first < left.last || isOpen(left);
}

function isOpen(node: GraphNode): boolean {
  return node.state === 'running' || node.state === 'waiting';
}
