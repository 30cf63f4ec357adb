import type { CallKind } from './endpoints.ts'

/** How far a call has come: before its first request to an upstream, waiting for a response, receiving it. */
export const RUNNING_STATES = ['waiting', 'sent', 'answering'] as const

/** A call under way, as its node sees it. Amounts are in quota units. */
export interface RunningCall {
  readonly id: string
  readonly startedMs: number
  readonly user: { readonly id: number; readonly username: string }
  readonly token: { readonly id: number; readonly name: string }
  readonly model: string
  readonly kind: CallKind
  readonly stream: boolean
  /** The channel of the attempt, or of the first one that will be tried. */
  readonly channel: string
  /** The number of attempts so far. */
  readonly attempt: number
  readonly state: (typeof RUNNING_STATES)[number]
  /** Output tokens so far, by the gateway's own count. */
  readonly tokens: number
  /** What would be charged if the call ended now. */
  readonly cost: number
  readonly held: number
}
