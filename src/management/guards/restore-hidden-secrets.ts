import { type GuardMatch, HIDDEN_SECRET } from '../../domain/guard.ts'
import { asObject, type Json, type JsonObject } from '../../domain/json.ts'
import { GatewayError } from '../../errors.ts'

/**
 * Fills hidden secrets (`***`) in a guard's `match` with those of its present `match`. Throws
 * `invalid_request` if there is none, or if the service's address has changed: a secret must not be sent to
 * an address for which it was not meant.
 */
export function restoreHiddenSecrets(
  given: Json | undefined,
  present: GuardMatch | undefined,
): Json | undefined {
  const match = asObject(given ?? null)
  const kind = Object.keys(match).find((name) => JSON.stringify(match[name]).includes(`"${HIDDEN_SECRET}"`))
  if (kind === undefined) return given
  const service = asObject(match[kind] ?? null)
  const known = present?.kind === kind ? present : undefined
  switch (kind) {
    case 'webhook': {
      const before = known?.kind === 'webhook' && known.url === service['url'] ? known.headers : {}
      const headers = Object.entries(asObject(service['headers'] ?? null)).map(([name, value]) => [
        name,
        kept(value, before[name], 'headers'),
      ])
      return { ...match, webhook: { ...service, headers: Object.fromEntries(headers) as JsonObject } }
    }
    case 'bedrock': {
      const address = known?.kind === 'bedrock' ? known.base_url : undefined
      const before =
        known?.kind === 'bedrock' && (service['base_url'] ?? address) === address ? known.keys : []
      const keys = Array.isArray(service['keys']) ? (service['keys'] as readonly Json[]) : []
      return {
        ...match,
        bedrock: { ...service, keys: keys.map((key, index) => kept(key, before[index], 'keys')) },
      }
    }
    case 'lakera': {
      const address = known?.kind === 'lakera' ? known.base_url : undefined
      const before =
        known?.kind === 'lakera' && (service['base_url'] ?? address) === address ? known.key : undefined
      return { ...match, lakera: { ...service, key: kept(service['key'] ?? null, before, 'key') } }
    }
    default:
      return given
  }
}

function kept(value: Json, before: string | undefined, field: string): Json {
  if (value !== HIDDEN_SECRET) return value
  if (before !== undefined) return before
  throw new GatewayError(
    'invalid_request',
    `match: expected ${field} in full, as "${HIDDEN_SECRET}" stands only for what this guard has at the same address`,
  )
}
