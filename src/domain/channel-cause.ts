import { causeOfStatus, causeWithoutResponse, type FailureCause } from './failure-cause.ts'

/** Why a channel fails or rests, in alerts and in channel health. `docs/operations.md: Alerts`. */
export const CHANNEL_CAUSES = [
  'key_refused',
  'account_fault',
  'account_lacks_model',
  'rate_limited',
  'model_missing',
  'request_refused',
  'server_error',
  'timeout',
  'unreachable',
  'broken',
] as const
export type ChannelCause = (typeof CHANNEL_CAUSES)[number]

const OF_FAILURE: Readonly<Partial<Record<FailureCause, ChannelCause>>> = {
  provider_refused: 'request_refused',
  provider_unknown_model: 'model_missing',
  provider_limited: 'rate_limited',
  provider_key: 'key_refused',
  provider_failed: 'server_error',
  provider_timeout: 'timeout',
  provider_unreachable: 'unreachable',
  provider_broken: 'broken',
}

/** The status in the fixed words of a failure's cause, such as `status 503`; null if there was none. */
export function statusInCause(words: string): number | null {
  const [, digits] = /(?:^|: )status (\d{3})$/.exec(words) ?? []
  return digits === undefined ? null : Number(digits)
}

/** The cause of a channel's last failure, by the fixed words that the metrics use. */
export function channelCauseOf(words: string): ChannelCause {
  const status = statusInCause(words)
  if (words.startsWith('error ')) return 'server_error'
  return OF_FAILURE[status === null ? causeWithoutResponse(words) : causeOfStatus(status)] ?? 'broken'
}

/** Facts about a channel, in all events about channels. Never contains a provider's text. */
export interface ChannelEventFacts {
  readonly cause: ChannelCause
  /** HTTP status of the last failed answer; null if it had none. */
  readonly status: number | null
  /** The models that the channel serves. */
  readonly models: readonly string[]
  /** Calls of the last 15 minutes that failed here and nowhere succeeded. */
  readonly calls_lost: number
  /** Page of the channel in the console; absent if `options.public_url` is not set. */
  readonly url?: string
}
