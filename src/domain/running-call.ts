import type { CallKind } from './endpoints.ts'

/** Progress of a call: before its first request to an upstream, waiting for the response, or receiving it. */
export const RUNNING_STATES = ['waiting', 'sent', 'answering'] as const

/** A running call, as its node sees it. Amounts are in quota units. */
export interface RunningCall {
  readonly id: string
  readonly startedMs: number
  readonly user: { readonly id: number; readonly username: string }
  readonly token: { readonly id: number; readonly name: string }
  readonly model: string
  readonly kind: CallKind
  readonly stream: boolean
  /** The channel of the current attempt; before the first attempt, the channel that will be tried first. */
  readonly channel: string
  /** The number of attempts so far. */
  readonly attempt: number
  readonly state: (typeof RUNNING_STATES)[number]
  /** Output tokens so far, as counted by the gateway. */
  readonly tokens: number
  /** The charge if the call ended now, in quota units. */
  readonly cost: number
  readonly held: number
}
