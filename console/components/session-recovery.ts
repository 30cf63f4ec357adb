import { useSyncExternalStore } from 'react'
import { signOut } from '../api/account.ts'
import { basePath } from '../api/base-path.ts'
import { clearTabStorage } from './tab-storage.ts'

/** The sign-in page, with a message that the session ended because the user was disabled. */
const DISABLED_PAGE = `${basePath}/login?disabled=1`

/** Sends messages to the other tabs of the same console. */
const channel = new BroadcastChannel('sluice-session')
const listeners = new Set<() => void>()
let isLeaving = false
let waiting: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined

channel.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
  if (data === 'signed-in') finish()
  if (data !== 'signed-out' && data !== 'disabled') return
  clearTabStorage()
  location.assign(data === 'disabled' ? DISABLED_PAGE : `${basePath}/login`)
})

/** Resolves when the user has signed in again, here or in another tab. */
export function signInAgain(): Promise<void> {
  if (!waiting) {
    waiting = Promise.withResolvers<void>()
    notify()
  }
  return waiting.promise
}

/** Whether requests are waiting for a new session. */
export function useHasSessionEnded(): boolean {
  return useSyncExternalStore(subscribe, () => waiting !== undefined)
}

/** Repeats the requests that wait for a sign-in, also in other tabs. */
export function continueAfterSignIn(): void {
  finish()
  channel.postMessage('signed-in')
}

/** Clears what pages have stored in this tab, and leads all other tabs of the console to the sign-in page. */
export function leaveAfterSignOut(): void {
  clearTabStorage()
  channel.postMessage('signed-out')
}

/**
 * Ends the session of a disabled user in all tabs and shows a message, once even if many requests are
 * refused.
 */
export function endDisabledSession(): void {
  // The sign-in page shows its own error.
  if (isLeaving || location.pathname === `${basePath}/login`) return
  isLeaving = true
  clearTabStorage()
  void signOut()
    .catch(() => undefined)
    .then(() => {
      channel.postMessage('disabled')
      location.assign(DISABLED_PAGE)
    })
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
