import type { ChannelDefinition } from '../../domain/stored-configuration.ts'
import { GatewayError } from '../../errors.ts'
import { type Actor, roleCeiling } from '../authority.ts'

/**
 * Where a channel's secrets are sent: scheme, host and port of its address. Every field that decides where
 * they go, or through whose hands, belongs in here.
 */
function destinationOf({ declared }: ChannelDefinition): string {
  const address = declared['base_url']
  return typeof address === 'string' ? (URL.parse(address)?.origin ?? address) : ''
}

/** The secrets that a request brings itself. */
export interface SuppliedSecrets {
  readonly keys: boolean
  readonly headers: boolean
}

/**
 * Refuses to send secrets that are stored to another place than before, unless root asks, who may read them:
 * whoever names the new place brings them. Everything that changes where a stored secret goes, or sends one
 * to a place that a request names, asks here first.
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
