import { useSyncExternalStore } from 'react'
import { basePath } from '../api/base-path.ts'
import { queryClient } from './query-client.ts'

const RETRY_MS = 2000
/** Milliseconds after which a gateway that has not answered is unreachable. */
const PATIENCE_MS = 5000
const listeners = new Set<() => void>()
let waiting: Promise<void> | undefined
let isLost = false

/**
 * Records that a request had no response. If the gateway does not respond at all, polls until it does; then the data
 * of the page is loaded again.
 */
export function reportConnectionLost(): void {
  waiting ??= waitForGateway()
}

/** Resolves when the gateway responds again, or at once if it is not known to be unreachable. */
export function waitForConnection(): Promise<void> {
  return waiting ?? Promise.resolve()
}

/** Whether the gateway responds now. A gateway that cannot write still answers the console's reads. */
export async function isGatewayReachable(): Promise<boolean> {
  try {
    const response = await fetch(`${basePath}/readyz`, {
      cache: 'no-store',
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    return response.ok || (await response.text()) === 'not ready: storage\n'
  } catch {
    return false
  }
}

/** Whether the gateway does not respond at present. */
export function useIsConnectionLost(): boolean {
  return useSyncExternalStore(subscribe, () => isLost)
}

async function waitForGateway(): Promise<void> {
  while (!(await isGatewayReachable())) {
    isLost = true
    notify()
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
  waiting = undefined
  // One address alone may be out of reach, as behind a content blocker: loading it again would fail again.
  if (!isLost) return
  isLost = false
  notify()
  await queryClient.invalidateQueries()
}

function notify(): void {
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
