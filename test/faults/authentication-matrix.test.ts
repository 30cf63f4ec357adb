import { Agent } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Endpoint } from '../../src/api/endpoint.ts'
import { filledPath, isEndless, ROUTES } from '../fixtures/routes.ts'
import { type FullResponse, call, callEndless, type CallOptions, retryWhileShed } from '../fixtures/client.ts'
import { manage } from '../fixtures/account.ts'
import { type Configuration, ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { byTier } from '../runner/tier.ts'
import {
  type NamedUser,
  type Place,
  PLACES,
  type Credential,
  verdictOf,
  type Verdict,
} from './authentication-rules.ts'

const KEYS: Partial<Record<Credential, string>> = {
  'unknown key': 'nobody',
  'live key': 'live',
  'expired key': 'expired',
  'drained key': 'drained',
  'disabled key': 'disabled',
  'deleted key': 'deleted',
  'key of a banned user': 'ofbanned',
}
const ANN = 'the-access-token-of-ann'
const METRICS_TOKEN = 'the-metrics-token-of-the-operator'
const OWNERS: Partial<Record<Credential, { role: number; status: number }>> = {
  'access token': { role: 1, status: 1 },
  'access token of an admin': { role: 10, status: 1 },
  'access token of root': { role: 100, status: 1 },
  'access token of a banned user': { role: 100, status: 2 },
}
const SECRETS = ['nothing', ...Object.keys(KEYS), ...Object.keys(OWNERS), 'metrics token'] as Credential[]
const NAMED: readonly NamedUser[] = ['own', 'other', 'nobody', 'rubbish']

/**
 * The account that a request is made with. A request that may change the account is the only use of its
 * access token.
 */
interface Owner {
  readonly id: number
  readonly secret: Credential
  readonly accessToken: string
}
/** At night a route is tried with each credential in two places. */
const owners: Owner[] = ROUTES.flatMap(() => Object.keys(OWNERS) as Credential[])
  .flatMap((secret) => byTier([secret], [secret, secret]))
  .map((secret, index) => ({
    id: 100 + index,
    secret,
    accessToken: `the-access-token-of-user-${100 + index}`,
  }))
const fresh = [...owners]

let gateway: RunningGateway
/** Keeps connections open, because there are about ten thousand requests. */
const agent = new Agent({ keepAlive: true })
beforeAll(async () => {
  gateway = await startGateway({ config: configuration() })
  const root = { id: 1, accessToken: ROOT.access_token }
  const { data } = await manage<{ items: { id: number; name: string }[] }>(
    gateway.url,
    root,
    'GET /api/user/2/tokens',
  )
  const id = data.items.find(({ name }) => name === 'token-deleted')?.id
  const account = { id: 2, accessToken: ANN }
  const { status } = await manage(gateway.url, account, `DELETE /api/token/${id}`)
  if (status !== 200) throw new Error(`the key was not deleted: ${status}`)
})
afterAll(async () => {
  agent.destroy()
  await gateway?.discard()
})

function configuration(): Configuration {
  const off = { requests: 0 }
  return {
    options: { metrics_token: METRICS_TOKEN },
    rate_limits: { global: off, relay: off, search: off, critical: off },
    users: [
      ROOT,
      user(
        2,
        'ann',
        [
          token('live'),
          token('expired', { expired_time: 1_000_000_000 }),
          token('drained', { remain_quota: 0 }),
          token('disabled', { status: 2 }),
          token('deleted'),
        ],
        { access_token: ANN },
      ),
      user(3, 'banned', [token('ofbanned')], { status: 2 }),
      ...owners.map(({ id, secret, accessToken }) =>
        user(id, `user${id}`, [], { access_token: accessToken, ...OWNERS[secret] }),
      ),
    ],
  }
}

/** A test account is spent once its own data was accessed with it; a refused one can be used again. */
function ownerOf(secret: Credential, { access }: Endpoint, verdict: Verdict): Owner | undefined {
  const at = fresh.findIndex((owner) => owner.secret === secret)
  const isUsedUp = verdict === 'in' && ['account', 'admin', 'root'].includes(access)
  return isUsedUp && at >= 0 ? fresh.splice(at, 1)[0] : fresh[at]
}

function asked(body: object | undefined, options: CallOptions, ask = call): Promise<FullResponse> {
  return retryWhileShed(() => ask(gateway.url, body, { ...options, agent }))
}

function shown(text: string, place: Place): Record<string, string> {
  switch (place) {
    case 'bare':
      return { authorization: text }
    case 'bearer':
      return { authorization: `Bearer ${text}` }
    case 'query':
      return {}
    case 'x-api-key':
    case 'x-alt-api-key':
      return { [place]: text }
  }
}

async function tryRoute(
  endpoint: Endpoint,
  secret: Credential,
  place: Place,
  named: NamedUser,
): Promise<FullResponse> {
  const verdict = verdictOf(endpoint, secret, place, named)
  const owner = ownerOf(secret, endpoint, verdict)
  const key = KEYS[secret]
  const text =
    owner?.accessToken ??
    (key === undefined ? undefined : `sk-${key}`) ??
    (secret === 'metrics token' ? METRICS_TOKEN : '')
  const id = owner?.id ?? 2
  const ids: Record<NamedUser, string | undefined> = {
    own: String(id),
    other: '1',
    nobody: undefined,
    rubbish: `${id}x`,
  }
  const gatewayUser = ids[named]
  const query = place === 'query' && text !== '' ? `?key=${text}` : ''
  const options = {
    method: endpoint.method,
    path: filledPath(endpoint, '999999') + query,
    headers: {
      ...(secret === 'nothing' ? {} : shown(text, place)),
      ...(gatewayUser === undefined ? {} : { 'gateway-user': gatewayUser }),
    },
  }
  return asked(endpoint.method === 'GET' ? undefined : {}, options, isEndless(endpoint) ? callEndless : call)
}

/** Codes of authentication errors; other 403s are about the request's content. */
const AUTHENTICATION_ERRORS = new Set([
  'role_too_low',
  'user_disabled',
  'not_operator',
  'ip_not_allowed',
  undefined,
])

function heard({ status, text }: FullResponse): Verdict {
  if (status === 401) return 401
  if (status !== 403) return 'in'
  return AUTHENTICATION_ERRORS.has(codeIn(text)) ? 403 : 'in'
}

/** The gateway's error code, in the envelope of any endpoint. */
function codeIn(text: string): string | undefined {
  const [body] = [JSON.parse(text)].flat()
  const info = body.error?.details?.find((detail: { reason?: string }) => detail.reason !== undefined)
  return info?.reason.toLowerCase() ?? body.error?.data?.code ?? body.error?.code ?? body.code
}

const PAIRS = SECRETS.flatMap((secret) => PLACES.map((place) => [secret, place] as const))
/** Routes with the same verdicts share the pairs of a day. */
const ALIKE = Map.groupBy(ROUTES, (route) =>
  PAIRS.map(([secret, place]) => verdictOf(route, secret, place, 'own')).join(),
)

/**
 * Credentials and their places. At night all pairs are tried. By day each route is tried without credentials, and with each
 * credential that has another response, in one place of those. The other pairs are divided among the routes with the same verdicts.
 */
function tried(route: Endpoint): (typeof PAIRS)[number][] {
  const alike = [...ALIKE.values()].find((routes) => routes.includes(route)) ?? []
  const turn = alike.indexOf(route)
  const bare = verdictOf(route, 'nothing', 'bare', 'own')
  const ownPlace = new Map(
    SECRETS.map((secret) => {
      const telling = PLACES.filter((place) => verdictOf(route, secret, place, 'own') !== bare)
      const places = secret === 'nothing' ? PLACES : telling
      return [secret, places[turn % places.length]]
    }),
  )
  return PAIRS.filter(
    ([secret, place], at) =>
      byTier(false, true) || at % alike.length === turn || ownPlace.get(secret) === place,
  )
}

/** Whom `Gateway-User` names besides the owner: by day another user, and one of the rest in rotation. */
function triedNames(route: Endpoint): readonly NamedUser[] {
  const rest = NAMED.filter((name) => name !== 'own' && name !== 'other')
  const turn = ROUTES.indexOf(route) % rest.length
  return ['other', ...byTier(rest.slice(turn, turn + 1), rest)]
}

describe('authentication of every route', () => {
  test.each(ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const))(
    'a route accepts each kind of credential only in the header that is meant for it: %s',
    { timeout: 300_000 },
    async (_, route) => {
      const wrong: string[] = []
      const knocked = async (secret: Credential, place: Place, named: NamedUser): Promise<void> => {
        const answer = await tryRoute(route, secret, place, named)
        const expected = verdictOf(route, secret, place, named)
        if (heard(answer) !== expected || answer.status === 405 || answer.status === 500)
          wrong.push(`${secret}, ${place}, ${named}: ${answer.status}, expected ${expected}`)
      }
      for (const [secret, place] of tried(route)) await knocked(secret, place, 'own')
      for (const named of triedNames(route)) await knocked('access token of root', 'bare', named)
      expect(wrong).toEqual([])
    },
  )
})

/** Other spellings of a path that a proxy in front of the gateway may treat as the same path. */
function otherSpellings(path: string): string[] {
  const [, first = '', ...rest] = path.split('/')
  const tail = rest.length === 0 ? '' : `/${rest.join('/')}`
  const last = path.lastIndexOf('/')
  const letter = path.search(/[a-z]/)
  return [
    `/${path}`,
    `${path}/`,
    `${path}//`,
    path.replace(/\/$/, ''),
    `/./${path.slice(1)}`,
    `/x/..${path}`,
    `/${first}/.${tail}`,
    `/${first}/${tail}`,
    `/${first}/x/..${tail}`,
    `/${first}%2f${tail.slice(1)}`,
    `/${first}%2F${tail.slice(1)}`,
    `/${first}\\${tail.slice(1)}`,
    `/%2e${path}`,
    `${path.slice(0, last)}/%2e${path.slice(last)}`,
    `${path.slice(0, letter)}%${path.charCodeAt(letter).toString(16)}${path.slice(letter + 1)}`,
    path.toUpperCase(),
    `${path.slice(0, letter)}${path.charAt(letter).toUpperCase()}${path.slice(letter + 1)}`,
    `${path};x`,
    `/${first};x=1${tail}`,
    `${path}.`,
    `${path}.json`,
    `${path}%20`,
    `${path}%00`,
    `${path}%0a`,
    `${path}%3f`,
    `${path}%23`,
    `${path}#x`,
    `${path}*`,
    `ftp://127.0.0.1${path}`,
    `http://user@127.0.0.1${path}`,
    `http://127.0.0.1/http://127.0.0.1${path}`,
    `//elsewhere.test${path}`,
    path.slice(1),
  ].filter((each) => each !== path && each !== '')
}

/** The paths of all routes: `:id` matches one segment, and `:id*` the remaining path. */
const ROUTE_PATHS = ROUTES.map(({ path }) => {
  const steps = path
    .replaceAll('.', '\\.')
    .replaceAll(/(?<=\/):\w+\*/g, '.+')
    .replaceAll(/(?<=\/):\w+/g, '[^/]+')
  return new RegExp(`^${steps}$`)
})

function isRoute(given: string): boolean {
  return ROUTE_PATHS.some((path) => path.test(given))
}

/** The spellings that a route is tried in: by day an eighth of them, in rotation; at night all. */
function triedSpellings(route: Endpoint): readonly string[] {
  const turn = ROUTES.indexOf(route)
  return otherSpellings(filledPath(route, '999999')).filter(
    (each, at) => byTier((at + turn) % 8 === 0, true) && !isRoute(each),
  )
}

/** The credentials that a spelling is tried with: by day one of three, in rotation; at night all. */
function triedSecrets(turn: number): readonly string[] {
  const secrets = ['sk-live', METRICS_TOKEN, ROOT.access_token]
  return byTier(secrets.slice(turn % 3, (turn % 3) + 1), secrets)
}

test('a path in another spelling matches no route, with any credential', async () => {
  const wrong: string[] = []
  let paths = 0
  for (const route of ROUTES) {
    for (const path of triedSpellings(route)) {
      for (const secret of triedSecrets(paths)) {
        const headers = { authorization: `Bearer ${secret}`, 'x-api-key': secret, 'gateway-user': '1' }
        const { status } = await asked(undefined, { method: route.method, path, headers })
        paths += 1
        if (![400, 401, 403, 404].includes(status)) wrong.push(`${route.method} ${path}: ${status}`)
      }
    }
  }
  expect(wrong).toEqual([])
  expect(paths).toBeGreaterThan(ROUTES.length * byTier(3, 50))
})

test('an absolute URL is routed by its path, with the same authentication', async () => {
  for (const route of ROUTES) {
    const { method } = route
    const body = method === 'GET' ? undefined : {}
    const { status } = await asked(body, { method, path: filledPath(route, '999999') })
    for (const host of [`127.0.0.1:${gateway.port}`, 'localhost', 'elsewhere.test']) {
      const answer = await asked(body, { method, path: `http://${host}${filledPath(route, '999999')}` })
      expect(answer.status, `${method} ${route.path} at ${host}: ${answer.text}`).toBe(status)
      expect(heard(answer)).toBe(verdictOf(route, 'nothing', 'bearer', 'own'))
    }
  }
})

/** Headers that proxies and frameworks trust, but the gateway must not. */
const MISLEADING_HEADERS: Record<string, string>[] = [
  { host: 'localhost' },
  { host: '127.0.0.1' },
  { host: 'elsewhere.test' },
  { 'x-forwarded-for': '127.0.0.1' },
  { 'x-real-ip': '127.0.0.1' },
  { forwarded: 'for=127.0.0.1;host=localhost;proto=https' },
  { 'x-forwarded-host': 'localhost' },
  { 'x-original-url': '/healthz' },
  { 'x-rewrite-url': '/healthz' },
  { 'x-forwarded-prefix': '/healthz' },
  { 'x-http-method-override': 'GET' },
  { 'x-forwarded-user': 'root' },
  { 'remote-user': 'root' },
  { 'gateway-user': '1' },
  { 'new-api-user': '1' },
  { cookie: 'session=1; gateway_session=1; access_token=1' },
  { 'proxy-authorization': 'Bearer sk-live' },
  { 'x-amz-security-token': 'sk-live', 'api-key': 'sk-live', 'x-api-token': 'sk-live' },
]

/** The routes that a case is tried on: by day a twelfth of them, in rotation; at night all. */
function triedRoutes(turn: number): readonly Endpoint[] {
  return byTier(
    ROUTES.filter((_, at) => (at + turn) % 12 === 0),
    ROUTES,
  )
}

test.each(MISLEADING_HEADERS)('no client is authenticated by the headers %j', async (headers) => {
  for (const route of triedRoutes(MISLEADING_HEADERS.indexOf(headers))) {
    const expected = verdictOf(route, 'nothing', 'bearer', 'own')
    const answer = await asked(route.method === 'GET' ? undefined : {}, {
      method: route.method,
      path: filledPath(route, '999999'),
      headers,
    })
    expect(heard(answer), `${route.method} ${route.path}: ${answer.text}`).toBe(expected)
  }
})

test('a header that names another path does not change the route', async () => {
  for (const name of ['x-original-url', 'x-rewrite-url', 'x-forwarded-uri']) {
    const answer = await asked(undefined, {
      method: 'GET',
      path: '/healthz',
      headers: { [name]: '/metrics' },
    })
    expect(answer.text).toBe('ok\n')
  }
})
