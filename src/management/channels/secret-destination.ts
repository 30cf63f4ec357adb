import type { ChannelText } from '../../domain/stored-configuration.ts'
import { GatewayError } from '../../errors.ts'
import { type Actor, reachOf } from '../authority.ts'

/**
 * Where a channel's secrets are sent: scheme, host and port of its address. Every field that decides where
 * they go, or through whose hands, belongs in here.
 */
function destinationOf({ declared }: ChannelText): string {
  const address = declared['base_url']
  return typeof address === 'string' ? (URL.parse(address)?.origin ?? address) : ''
}

/** The secrets that a request brings itself. */
export interface BroughtSecrets {
  readonly keys: boolean
  readonly headers: boolean
}

/**
 * Refuses to send secrets that are stored to another place than before, unless root asks, who may read them:
 * whoever names the new place brings them. Everything that changes where a stored secret goes, or sends one
 * to a place that a request names, asks here first.
 */
export function requireSecretsForNewPlace(
  by: Actor,
  before: ChannelText,
  after: ChannelText,
  brought: BroughtSecrets,
): void {
  if (reachOf(by) === undefined || destinationOf(before) === destinationOf(after)) return
  if (before.keys.length > 0 && !brought.keys) throw refusal('key', 'its keys')
  const hasHeaders = Object.keys(before.declared['headers'] ?? {}).length > 0
  if (hasHeaders && !brought.headers) throw refusal('header_override', 'its headers')
}

function refusal(field: string, what: string): GatewayError {
  return new GatewayError(
    'role_too_low',
    `${field}: expected ${what} anew, as the channel gets another address; only root may change it without them`,
  )
}
