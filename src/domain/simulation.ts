import type { ClientProtocol } from '@sluice/wire/protocols'
import { asGatewayError } from '../errors.ts'
import type { Channel } from './records/channel.ts'

/** Why a channel would not be tried; null if it would. */
export type WhyNot =
  | 'disabled'
  | 'resting'
  | 'drained'
  | 'ended'
  | 'no_key'
  | 'rate_limited'
  | 'protocol'
  | 'without'
  | null

/** A call that is not made. */
export interface SimulatedCall {
  /** Whether the caller is an API key, whose quota and permissions apply. */
  readonly isKey: boolean
  readonly model: string
  readonly protocol: ClientProtocol
  readonly promptTokens: number
  readonly maxTokens: number | undefined
  /** Channels that are left out. */
  readonly without: ReadonlySet<Channel>
  /** Channels that would serve calls if they were enabled. */
  readonly disabled: readonly Channel[]
}

/** Where a channel stands in the order of a call. */
export interface SimulatedChannel {
  readonly channel: Channel
  readonly native: boolean
  /** Share of the first attempts among the channels of its step, from 0 to 1. */
  readonly share: number
  readonly whyNot: WhyNot
}

/** Channels of one model and one priority. */
export interface SimulatedStep {
  readonly model: string
  readonly fallback: boolean
  readonly priority: number
  readonly channels: readonly SimulatedChannel[]
}

/** What would become of a call. */
export interface Simulation {
  readonly refusal: { readonly status: number; readonly code: string; readonly message: string } | null
  readonly group: string
  readonly ratio: string
  /** Quota units. */
  readonly hold: number
  readonly route: readonly SimulatedStep[]
}

/** The refusal that a call with this error would get. Throws errors that are not for clients. */
export function simulatedRefusal(error: unknown): Simulation['refusal'] {
  const known = asGatewayError(error)
  if (!known) throw error
  return { status: known.kind.status, code: known.code, message: known.message }
}
