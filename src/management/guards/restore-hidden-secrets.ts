import { type GuardMatch, HIDDEN_SECRET } from '../../domain/guard.ts'
import { withSecrets } from '../../domain/guard-secrets.ts'
import { asObject, type Json, type JsonObject } from '../../domain/json.ts'
import { GatewayError } from '../../errors.ts'

/** Members of services that say where they are. */
const ADDRESSES = ['url', 'base_url']

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
  if (kind === undefined || Array.isArray(match[kind])) return given
  const service = asObject(match[kind] ?? null)
  const { kind: presentKind, ...members } = present ?? {}
  const known = presentKind === kind ? asObject(members as Json) : {}
  const isSame = ADDRESSES.every((name) => service[name] === undefined || service[name] === known[name])
  const restored = withSecrets(kind, service, (value, member, place) => {
    if (value !== HIDDEN_SECRET) return value
    const before = isSame ? known[member] : undefined
    const secret = place === undefined ? before : ownMember(before, place)
    if (secret !== undefined) return secret
    throw new GatewayError(
      'invalid_request',
      `match: expected ${member} in full, as "${HIDDEN_SECRET}" stands only for what this guard has at the same address`,
    )
  })
  return { ...match, [kind]: restored as JsonObject }
}

function ownMember(value: Json | undefined, name: string): Json | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
  return (value as JsonObject)[name]
}
