// Lets the conformance suite start with Node 20: it imports `fs.globSync` of Node 22, for a command that no test runs.
// `node --import ./older_node.mjs PROGRAM`
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';

const FS = "data:text/javascript,export * from 'node:fs'; export { default } from 'node:fs'; export const globSync = null;";

// Node calls this for each import, on a thread of its own, which imports this file too.
export async function resolve(specifier, context, next) {
  const isSuite = context.parentURL?.includes('/@modelcontextprotocol/conformance/');
  return specifier === 'fs' && isSuite ? { url: FS, shortCircuit: true } : next(specifier, context);
}

if (isMainThread) register(import.meta.url);
