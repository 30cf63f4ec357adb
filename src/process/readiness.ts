import type { Readiness } from '../api/endpoint.ts'

/** How long the database may take to show that it can be written. */
const PROBE_MS = 1_000

/**
 * Finds out whether calls are accepted; a part that takes long to tell is not ready. `loaded` resolves once
 * everything is loaded that calls need; `isStorageReady`: whether calls can be charged at this moment.
 */
export function readinessOf(
  isDraining: () => boolean,
  loaded: Promise<unknown>,
  isStorageReady: () => Promise<boolean>,
): () => Promise<Readiness> {
  return async () => {
    if (isDraining()) return 'stopping'
    if (!(await soon(loaded.then(() => true)))) return 'starting'
    return (await soon(isStorageReady())) ? 'ready' : 'storage'
  }
}

function soon(isSo: Promise<boolean>): Promise<boolean> {
  return Promise.race([isSo, new Promise<boolean>((resolve) => setTimeout(resolve, PROBE_MS, false).unref())])
}
