import type { ChannelDefinition } from '../../domain/records/channel.ts'
import { GatewayError } from '../../errors.ts'
import { type Actor, roleCeiling } from '../authority.ts'

/**
 * The destination of a channel's secrets: scheme, host and port of its address, or the provider with the
 * settings that determine its address, and the proxy. Every field that affects where secrets are sent must be
 * included here.
 */
function destinationOf({ declared }: ChannelDefinition): string {
  const address = declared['base_url']
  const origin = typeof address === 'string' ? (URL.parse(address)?.origin ?? address) : ''
  const { provider, region, location, proxy } = declared
  return JSON.stringify([origin, provider, region, location, proxy])
}

/** The kinds of secrets that a request supplies itself. */
export interface SuppliedSecrets {
  readonly keys: boolean
  readonly headers: boolean
}

/**
 * Throws if stored secrets would be sent to a different destination than before, unless the request supplies
 * them itself, or root makes it, who may read them. Every operation that changes the destination of stored
 * secrets must call this first.
 */
export function requireSecretsForNewAddress(
  by: Actor,
  before: ChannelDefinition,
  after: ChannelDefinition,
  supplied: SuppliedSecrets,
): void {
  if (roleCeiling(by) === undefined || destinationOf(before) === destinationOf(after)) return
  if (before.keys.length > 0 && !supplied.keys) throw missingSecret('key', 'its keys')
  const hasHeaders = Object.keys(before.declared['headers'] ?? {}).length > 0
  if (hasHeaders && !supplied.headers) throw missingSecret('header_override', 'its headers')
}

function missingSecret(field: string, what: string): GatewayError {
  return new GatewayError(
    'role_too_low',
    `${field}: expected ${what} anew, as the channel gets another address; only root may change it without them`,
  )
}
