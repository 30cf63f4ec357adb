import { useSyncExternalStore } from 'react'
import { queryClient } from './query-client.ts'

/** Tells other tabs of the same console. */
const channel = new BroadcastChannel('sluice-session')
const listeners = new Set<() => void>()
let waiting: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined

channel.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
  if (data === 'signed-in') finish()
  if (data === 'signed-out') location.assign('/login')
})

/** Resolves when somebody has signed in again, here or in another tab. */
export function signInAgain(): Promise<void> {
  if (!waiting) {
    waiting = Promise.withResolvers<void>()
    notify()
  }
  return waiting.promise
}

/** Whether requests wait for a new session. */
export function useIsSessionOver(): boolean {
  return useSyncExternalStore(subscribe, () => waiting !== undefined)
}

/** Goes on with what waits; told to other tabs. */
export function signedIn(): void {
  finish()
  channel.postMessage('signed-in')
}

/** Leaves the console in all tabs. */
export function signedOut(): void {
  queryClient.clear()
  channel.postMessage('signed-out')
}

function finish(): void {
  waiting?.resolve()
  waiting = undefined
  notify()
}

function notify(): void {
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
