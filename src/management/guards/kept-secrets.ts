import { type GuardMatch, HIDDEN } from '../../domain/guard.ts'
import { asObject, type Json, type JsonObject } from '../../domain/json.ts'
import { GatewayError } from '../../errors.ts'

/** Members of a match that say where its texts and secrets are sent. */
const ADDRESSES = ['url', 'base_url', 'region'] as const

/**
 * A match in which `***`, which stands for secrets in responses, is the secret of the stored guard. Throws `invalid_request`
 * if that has none there, or would send it to another address.
 */
export function withStoredSecrets(given: Json, stored: GuardMatch | undefined): Json {
  if (!JSON.stringify(given).includes(`"${HIDDEN}"`)) return given
  const match = asObject(given)
  const kept = stored && asObject(match[stored.kind] ?? null)
  if (!stored || !kept || !(stored.kind in match)) throw missing()
  const known = stored as unknown as JsonObject
  for (const name of ADDRESSES)
    if (kept[name] !== undefined && kept[name] !== known[name])
      throw new GatewayError(
        'invalid_request',
        `match: expected the secrets in place of ${HIDDEN}, because ${name} changes`,
      )
  return { ...match, [stored.kind]: filled(kept, known) }
}

function filled(given: Json, stored: Json | undefined): Json {
  if (given === HIDDEN) {
    if (typeof stored !== 'string') throw missing()
    return stored
  }
  if (Array.isArray(given))
    return given.map((one, index) => filled(one, (stored as Json[] | undefined)?.[index]))
  if (typeof given !== 'object' || given === null) return given
  const members = asObject(stored ?? null)
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, filled(value, members[name])]),
  )
}

function missing(): GatewayError {
  return new GatewayError('invalid_request', `match: expected a secret in place of ${HIDDEN}`)
}
