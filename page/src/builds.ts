/** A tool that is being built in a run: its stages, as the journal has them. */

import type { JournalRecord, Json } from './api';

export interface Build {
  path: string;
  stages: { path: string; name: string; state: 'running' | 'done' | 'failed' }[];
  /** What the last stage has said. The journal does not have it. */
  said: string;
  /** The name of the tool, once it is there. */
  tool: string;
}

const FLOW = /^build_tool#/;

/** Takes a record of a build, and says whether it was one. */
export function takeBuild(builds: Build[], record: JournalRecord, parts: string[], value: { [name: string]: Json }): boolean {
  if (!FLOW.test(parts[3] ?? '')) return false;
  const path = parts.slice(0, 4).join('/');
  const build = builds.find((one) => one.path === path);
  const state = record.kind === 'opened' ? 'running' : record.kind === 'failed' ? 'failed' : 'done';
  if (!build) builds.push({ path, stages: [], said: '', tool: '' });
  else if (parts.length === 4 && record.kind === 'done') build.tool = String((value.t as { name?: string } | undefined)?.name ?? '');
  else if (parts.length === 5) {
    const stage = build.stages.find((one) => one.path === record.path);
    if (stage) stage.state = state;
    else build.stages.push({ path: record.path, name: parts[4]!.replace(/#\d+$/, ''), state });
  }
  return true;
}
