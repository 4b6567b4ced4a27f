/** What a person chooses from, and what the server lacks. */

import { call } from './api';

export interface Settings {
  model: string;
  is_scripted: boolean;
  models: { name: string; model: string; ready: boolean; why: string }[];
  mode: string;
  modes: string[];
  examples: string[];
  missing: { what: string; how: string }[];
}

export const MODES: Record<string, string> = {
  ask: 'Ask first',
  edits: 'Ask for commands',
  plan: 'Plan only',
  all: 'Never ask',
};

export function settingsOf(session: string): Promise<Settings> {
  return call<Settings>('GET', '/api/settings?session=' + encodeURIComponent(session));
}
