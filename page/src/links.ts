/** Addresses of views, in the fragment of the page's address: `#/runs/ID`. Anything else is the id of a conversation. */

export interface Place {
  view: 'chat' | 'runs' | 'fleet' | 'compare' | 'memory' | 'tools' | 'settings';
  names: string[];
}

export const VIEWS = [
  { title: 'Runs', hash: '#/runs' },
  { title: 'Fleet', hash: '#/fleet' },
  { title: 'Memory and tasks', hash: '#/memory' },
  { title: 'Tools', hash: '#/tools' },
  { title: 'Settings', hash: '#/settings' },
];

export function place(hash: string): Place {
  const [start, view, ...names] = hash.slice(1).split('/').map(decoded);
  if (start !== '') return { view: 'chat', names: [decoded(hash.slice(1))] };
  const known = (['runs', 'fleet', 'compare', 'memory', 'tools', 'settings'] as const).find((one) => one === view);
  return known ? { view: known, names } : { view: 'chat', names: [] };
}

export function link(...names: string[]): string {
  return '#/' + names.map(encodeURIComponent).join('/');
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function age(seconds: number): string {
  const minutes = (Date.now() / 1000 - seconds) / 60;
  if (minutes < 1) return 'now';
  if (minutes < 60) return `${Math.floor(minutes)} min`;
  return minutes < 1440 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} d`;
}
