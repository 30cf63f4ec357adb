import { useSyncExternalStore } from 'react'
import { queryClient } from './query-client.ts'

const RETRY_MS = 2000
const listeners = new Set<() => void>()
let isLost = false

/** Notes that the gateway does not answer, and asks until it does; then refused data is loaded again. */
export function reportLost(): void {
  if (isLost) return
  set(true)
  void waitForGateway()
}

/** Whether the gateway does not answer at present. */
export function useIsLost(): boolean {
  return useSyncExternalStore(subscribe, () => isLost)
}

async function waitForGateway(): Promise<void> {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    try {
      const { ok } = await fetch('/readyz', { cache: 'no-store' })
      if (ok) break
    } catch {
      // It is still away.
    }
  }
  set(false)
  await queryClient.invalidateQueries()
}

function set(lost: boolean): void {
  isLost = lost
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
