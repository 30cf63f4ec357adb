import type { Endpoint } from '../../src/api/endpoint.ts'

/** A client's credential. */
export type Credential =
  | 'nothing'
  | 'unknown key'
  | 'live key'
  | 'expired key'
  | 'drained key'
  | 'disabled key'
  | 'deleted key'
  | 'key of a banned user'
  | 'access token'
  | 'access token of an admin'
  | 'access token of root'
  | 'access token of a banned user'
  | 'metrics token'

/** The place of the credential in the request. */
export type Place = 'bare' | 'bearer' | 'x-api-key' | 'x-alt-api-key' | 'query'

/** Which user's id `Gateway-User` carries. */
export type NamedUser = 'own' | 'other' | 'nobody' | 'rubbish'

/** `in`: the request is authenticated, whatever the response; otherwise the status of the refusal. */
export type Verdict = 'in' | 401 | 403

export const PLACES: readonly Place[] = ['bare', 'bearer', 'x-api-key', 'x-alt-api-key', 'query']

const KEYS: ReadonlyMap<Credential, Verdict> = new Map<Credential, Verdict>([
  ['live key', 'in'],
  ['key of a banned user', 403],
])
/** Keys that may read their own usage only. */
const READING_KEYS: ReadonlyMap<Credential, Verdict> = new Map<Credential, Verdict>([
  ...KEYS,
  ['expired key', 'in'],
  ['drained key', 'in'],
])
/** Access tokens and their owners' roles; a banned owner has no role. */
const ROLES: ReadonlyMap<Credential, number> = new Map([
  ['access token', 1],
  ['access token of an admin', 10],
  ['access token of root', 100],
  ['access token of a banned user', 0],
])
const ACCESS_TOKEN_PLACES: ReadonlySet<Place> = new Set<Place>(['bare', 'bearer'])
const MIN_ROLE = { 'keyed-account': 1, account: 1, admin: 10, root: 100 }

/**
 * The expected authentication by `docs/api.md: Authentication`. An endpoint with another kind of access needs
 * a case here.
 */
export function verdictOf(endpoint: Endpoint, secret: Credential, place: Place, named: NamedUser): Verdict {
  const access: string = endpoint.access
  switch (access) {
    case 'anyone':
    case 'visitor':
      return 'in'
    case 'operator':
      return secret === 'metrics token' && place === 'bearer' ? 'in' : 403
    case 'api-key':
    case 'key':
    case 'reading-key': {
      if (!keyPlaces(endpoint).includes(place)) return 401
      return (access === 'reading-key' ? READING_KEYS : KEYS).get(secret) ?? 401
    }
    // Without Gateway-Key; its effect is tested with the playground.
    case 'keyed-account':
    case 'account':
    case 'admin':
    case 'root': {
      const role = ROLES.get(secret)
      if (role === undefined || named !== 'own' || !ACCESS_TOKEN_PLACES.has(place)) return 401
      return role >= MIN_ROLE[access] ? 'in' : 403
    }
    default:
      throw new Error(`nobody has written down who may call ${endpoint.path}, which is for: ${access}`)
  }
}

function keyPlaces({ method, path }: Endpoint): readonly Place[] {
  if (method === 'POST' && /^\/v1(?:beta)?\/models\//.test(path)) return ['bearer', 'x-alt-api-key', 'query']
  if (path.startsWith('/v1/models/')) return ['bearer', 'x-api-key', 'x-alt-api-key', 'query']
  if (path.startsWith('/v1beta/')) return ['bearer', 'x-alt-api-key', 'query']
  if (path.startsWith('/v1/messages') || path === '/v1/models' || path.startsWith('/mcp'))
    return ['bearer', 'x-api-key']
  return ['bearer']
}
