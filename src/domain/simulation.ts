import type { ClientProtocol } from '@sluice/wire/protocols'
import { asGatewayError } from '../errors.ts'
import type { Channel } from './records/channel.ts'

/** The reason why a channel would not be tried; null if it would be tried. */
export type SkipReason =
  | 'disabled'
  | 'resting'
  | 'drained'
  | 'ended'
  | 'no_key'
  | 'rate_limited'
  | 'protocol'
  | 'without'
  | null

/** A call that is only simulated, to show how it would be routed. */
export interface SimulatedCall {
  /** Whether the caller is an API key; then its quota and permissions are checked. */
  readonly isKey: boolean
  readonly model: string
  readonly protocol: ClientProtocol
  readonly promptTokens: number
  readonly maxTokens: number | undefined
  /** Channels that the simulation ignores. */
  readonly without: ReadonlySet<Channel>
  /** Disabled channels that could serve the model; the simulation lists them with the reason. */
  readonly disabled: readonly Channel[]
}

/** A channel in the order in which a call would try channels. */
export interface SimulatedChannel {
  readonly channel: Channel
  readonly native: boolean
  /** Share of calls that would try this channel first among those of equal priority, from 0 to 1. */
  readonly share: number
  readonly whyNot: SkipReason
}

/** The channels of one model with the same priority. */
export interface SimulatedStep {
  readonly model: string
  readonly fallback: boolean
  readonly priority: number
  readonly channels: readonly SimulatedChannel[]
}

/** The result of a simulated call. */
export interface Simulation {
  readonly refusal: { readonly status: number; readonly code: string; readonly message: string } | null
  readonly group: string
  readonly ratio: string
  /** Quota units that would be reserved. */
  readonly hold: number
  readonly route: readonly SimulatedStep[]
}

/** The error that the client of the simulated call would get. Rethrows unexpected errors. */
export function simulatedRefusal(error: unknown): Simulation['refusal'] {
  const known = asGatewayError(error)
  if (!known) throw error
  return { status: known.kind.status, code: known.code, message: known.message }
}
