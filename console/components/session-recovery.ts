import { useSyncExternalStore } from 'react'
import { signOut } from '../api/account.ts'
import { basePath } from '../api/base-path.ts'
import { clearTabStorage } from './tab-storage.ts'

/** The sign-in page, with a message that the session ended because the user was disabled. */
const DISABLED_PAGE = `${basePath}/login?disabled=1`

/** Sends messages to the other tabs of the same console. */
const channel = new BroadcastChannel(`sluice-session${basePath}`)
const listeners = new Set<() => void>()
/** The id of the user who is signed in in this tab. */
let account: number | undefined
/** Whether the tab leaves a session that is over for it. */
let isLeaving = false
let waiting: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined

channel.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
  if (typeof data === 'number') continueAs(data)
  if (data === 'signed-out') leaveSession(`${basePath}/login`)
  if (data === 'disabled') leaveSession(DISABLED_PAGE)
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

/** Repeats the requests that wait for a sign-in, also in other tabs of this user. */
export function continueAfterSignIn(): void {
  finish()
  channel.postMessage(account)
}

/** Records who is signed in in this tab, and announces a new user to other tabs. */
export function recordAccount(userId: number): void {
  if (userId === account) return
  account = userId
  continueAfterSignIn()
}

/** Clears what pages have stored in this tab, and leads all other tabs of the console to the sign-in page. */
export function leaveAfterSignOut(): void {
  account = undefined
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
      leaveSession(DISABLED_PAGE)
    })
}

/** Loads a page without those of the user who was signed in, whose changed forms do not ask first. */
export function leaveSession(address = basePath || '/'): void {
  isLeaving = true
  clearTabStorage()
  location.assign(address)
}

/** Whether forms keep what was typed: those of a user whose session is over must not keep the tab. */
export function mayKeepForm(): boolean {
  return !isLeaving
}

/** Continues in the session of a user who has signed in in another tab; the pages of a different user must not stay. */
function continueAs(userId: number): void {
  if (userId === account) finish()
  else if (account !== undefined) leaveSession()
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
