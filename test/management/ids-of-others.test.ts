import { Agent } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Endpoint } from '../../src/api/endpoint.ts'
import { manage } from '../fixtures/account.ts'
import { type Body, call, callEndless, type LiveResponse, open, retryWhileShed } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { contentOf } from '../fixtures/content.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { filledPath, isEndless, ROUTES } from '../fixtures/routes.ts'
import { byTier } from '../runner/tier.ts'

const ADMIN = { id: 1, accessToken: ROOT.access_token }
/** Who asks for what is not theirs: several, because each has one read of the usage log at a time. */
const ASKING = ['ann', 'amy', 'ada', 'ava', 'ali'].map((name, at) => ({
  name,
  id: 300_011 + at,
  accessToken: `the-access-token-of-${name}`,
}))
const [ANN] = ASKING as [Asker]
type Asker = (typeof ASKING)[number]
const BEN = { id: 300_003, accessToken: 'the-access-token-of-ben' }

/** Ids, and the names of parameters that such an id fits. */
type Pair = readonly [others: string, missing: string, fitting: RegExp]

// A connection for each of thousands of requests would take a third of their time.
const agent = new Agent({ keepAlive: true })

let fixture: Fixture
let live: LiveResponse
/** What another user has, and something of the same form that nobody has. */
let pairs: readonly Pair[]
let callOfBen = ''

beforeAll(async () => {
  const off = { requests: 0 }
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: off, search: off, critical: off, relay: off },
    options: { cache: { ttl: '1h' }, keep_responses: '1h' },
    content_log: { what: 'full', readers: 100 },
    models: priced(['m', 'stalling']),
    channels: [channel('m', upstream.baseUrl('m')), channel('stalling', upstream.baseUrl('stalling'))],
    users: [
      ROOT,
      // The keys 1, 2 and 3 belong to ben, so that no id of a pair is an id of anything that the others have.
      user(300_003, 'ben', [token('ben'), token('ben2'), token('ben3')], { access_token: BEN.accessToken }),
      user(300_005, 'eve', [], { role: 10 }),
      ...ASKING.map(({ id, name, accessToken }) =>
        user(id, name, [token(name)], { access_token: accessToken }),
      ),
    ],
  }))
  const { upstream, gateway } = fixture
  // The call goes on until the last test has ended.
  upstream.script('stalling', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 1_000 })
  const said = await fixture.chat('ben', ask('m'), { headers: { 'x-session-id': 'ben' } })
  callOfBen = String(said.headers['x-request-id'])
  const kept = await call(gateway.url, { model: 'm', input: 'hi' }, { key: 'ben', path: '/v1/responses' })
  const { id: response } = JSON.parse(kept.text) as { id: string }
  live = await open(gateway.url, askStream('stalling'), { key: 'ben' })
  await live.until('word0')
  await contentOf(gateway.url, BEN, callOfBen)
  const { data: row } = await manage<{ session: string }>(gateway.url, BEN, `GET /api/log/self/${callOfBen}`)
  pairs = [
    [String(BEN.id), '300004', /user/],
    ['300005', '300006', /user/],
    // The last of the keys of ben; nobody has nine.
    ['3', '9', /token|channel|key/],
    ['ben', 'box', /user|group/],
    ['token-ben', 'token-box', /token|model|key/],
    [callOfBen, '019a0000-0000-7000-8000-000000000000', /request|batch|id$/],
    [String(live.headers['x-request-id']), '019a0000-0000-7000-8000-000000000001', /request/],
    [row.session, '0123456789abcdef', /session|tz|type|time/],
    [
      response,
      `${response.slice(0, -8)}${response.endsWith('00000000') ? '11111111' : '00000000'}`,
      /request|batch/,
    ],
  ]
})
afterAll(async () => {
  live?.abort()
  agent.destroy()
  await fixture?.close()
})

/** Parameters that change the account itself, whose name may be taken. */
const OWN = new Set(['PUT /api/user/self', 'GET /api/user/token'])

const ENDPOINTS = ROUTES.filter(
  (one) => one.access !== 'visitor' && one.access !== 'anyone' && one.access !== 'operator',
).filter(({ method, path }) => !OWN.has(`${method} ${path}`))

const shapeOf = (schema: unknown): string[] =>
  schema && typeof schema === 'object' && 'shape' in schema ? Object.keys(schema.shape as object) : []

/** Endpoints of higher roles refuse every request alike. */
const isRefusing = ({ access }: Endpoint): boolean => access === 'admin' || access === 'root'

/** A request with an id in one place. */
interface Asked {
  readonly place: string
  readonly path: string
  readonly body?: Body
}

const PAGING = new Set(['p', 'page', 'page_size', 'ps', 'size'])

/** Members that make a request's body valid beside the id. */
const BESIDE = {
  name: 'renamed',
  status: 2,
  models: ['m'],
  model: 'm',
  input: 'hi',
  messages: [],
  previous_response_id: '',
}

/** Reads that take ten times as long as others. By day, each of their parameters is tried with the ids that fit its name. */
const LONG_READS = new Set(['/api/log/self/export', '/api/usage/self', '/api/usage/self/failures'])
const isTried = ({ path }: Endpoint, place: string, [, , fitting]: Pair): boolean =>
  byTier(!LONG_READS.has(path) || fitting.test(place), true)

/** By day, an endpoint that refuses all requests of a user alike gets one of them. */
const ASKED_OF_REFUSING = byTier(1, Number.POSITIVE_INFINITY)
/** Whether a parameter of a read that the management API refuses as invalid is tried with the id of another user. */
const IS_INVALID_TRIED = byTier(false, true)

/** Every request to an endpoint with this id in one of its places. */
function* requestsWith(endpoint: Endpoint, id: string): Generator<Asked> {
  const { path } = endpoint
  const value = encodeURIComponent(id)
  if (filledPath(endpoint, '') !== path) yield { place: 'path', path: filledPath(endpoint, value) }
  const at = filledPath(endpoint, callOfBen)
  if (endpoint.kind === 'json') {
    for (const name of shapeOf(endpoint.query).filter((one) => !PAGING.has(one)))
      yield { place: `?${name}`, path: `${at}?${name}=${value}` }
    const given = /^\d+$/.test(id) ? Number(id) : id
    for (const name of shapeOf(endpoint.body)) {
      yield { place: name, path: at, body: { ...BESIDE, [name]: given } }
      yield { place: `${name}[]`, path: at, body: { ...BESIDE, [name]: [given] } }
    }
  } else if (endpoint.method === 'POST' && path.includes('/responses')) {
    for (const name of ['previous_response_id', 'conversation', 'item_reference'])
      yield { place: name, path: at, body: { ...BESIDE, [name]: id } }
  }
}

/** The status and the body, without the ids of the pair, ids of requests and times. */
async function answerTo(
  asker: Asker,
  endpoint: Endpoint,
  { path, body }: Asked,
  id: string,
  [others, missing]: Pair,
): Promise<string> {
  const key = `sk-${asker.name}`
  const account = { authorization: asker.accessToken, 'gateway-user': String(asker.id) }
  const isByKey = endpoint.access.endsWith('key')
  const headers = isByKey
    ? { authorization: `Bearer ${key}`, 'x-goog-api-key': key }
    : endpoint.access === 'keyed-account'
      ? { ...account, 'gateway-key': id }
      : account
  const { status, text } = await retryWhileShed(() =>
    (isEndless(endpoint) ? callEndless : call)(fixture.gateway.url, body, {
      method: endpoint.method,
      path,
      headers,
      agent,
    }),
  )
  const given = [others, missing].flatMap((one) => [one, one.slice(0, 16)]).join('|')
  const plain = text
    .replaceAll(new RegExp(String.raw`(?<![\w-])(?:${given})(?![\w-])`, 'g'), 'ID')
    .replaceAll(/[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[\da-f]{4}-[\da-f]{12}/g, 'REQUEST')
    .replaceAll(/\b\d{10,13}\b/g, 'TIME')
    .replaceAll(/(?:resp|msg|chatcmpl)[-_][\w-]+/g, 'MADE')
  return `${status} ${plain}`
}

test('an id of another user gets the answer of a missing one, in every path, parameter and body', async () => {
  expect(pairs.map(([others]) => others)).toEqual(
    expect.arrayContaining([expect.stringMatching(/^[\da-f]{16}$/), expect.stringMatching(/^resp_/)]),
  )
  const differing: string[] = []
  let asked = 0
  const compare = async (asker: Asker, endpoint: Endpoint, pair: Pair): Promise<void> => {
    const [others, missing] = pair
    const wanted = requestsWith(endpoint, missing)
    const most = isRefusing(endpoint) ? ASKED_OF_REFUSING : Number.POSITIVE_INFINITY
    for (const request of [...requestsWith(endpoint, others)].slice(0, most)) {
      const like = wanted.next().value as Asked
      if (!isTried(endpoint, request.place, pair)) continue
      const expected = await answerTo(asker, endpoint, like, missing, pair)
      asked += 1
      // What is missing is a 404 there; responses, which are a 400, have other endpoints.
      const isInvalidRead =
        endpoint.kind === 'json' && endpoint.method === 'GET' && expected.startsWith('400')
      if (isInvalidRead && !IS_INVALID_TRIED) continue
      const got = await answerTo(asker, endpoint, request, others, pair)
      asked += 1
      if (got !== expected)
        differing.push(
          `${endpoint.method} ${endpoint.path} ${request.place} ${others}\n  ${got}\n  ${expected}`,
        )
    }
  }
  const jobs = ENDPOINTS.flatMap((endpoint) =>
    (isRefusing(endpoint) ? pairs.slice(0, 1) : pairs).map((pair) => ({ endpoint, pair })),
  )
  const isRead = ({ endpoint }: (typeof jobs)[number]): boolean => endpoint.method === 'GET'
  /** Does jobs, so many at a time for each of those who ask. */
  const inLanes = async (lanes: number, which: typeof jobs): Promise<void> => {
    const waiting = which.values()
    const work = async (asker: Asker): Promise<void> => {
      for (const { endpoint, pair } of waiting) await compare(asker, endpoint, pair)
    }
    await Promise.all(ASKING.flatMap((asker) => Array.from({ length: lanes }, () => work(asker))))
  }
  // What only reads has the same answers at the same time. Each user has four places for live streams.
  await Promise.all([
    inLanes(
      3,
      jobs.filter((job) => isRead(job) && isEndless(job.endpoint)),
    ),
    inLanes(
      1,
      jobs.filter((job) => isRead(job) && !isEndless(job.endpoint)),
    ),
  ])
  await inLanes(
    1,
    jobs.filter((job) => !isRead(job)),
  )
  expect(differing).toEqual([])
  expect(asked).toBeGreaterThan(1_000)
  // Nothing of the other user was changed.
  const { status } = await manage(fixture.gateway.url, BEN, `GET /api/content/${callOfBen}`)
  expect(status).toBe(200)
  const { data } = await manage<{ total: number }>(fixture.gateway.url, BEN, 'GET /api/running/self')
  expect(data.total).toBe(1)
  const { data: named } = await manage<{ username: string; status: number }>(
    fixture.gateway.url,
    ADMIN,
    `GET /api/user/${BEN.id}`,
  )
  expect(named).toMatchObject({ username: 'ben', status: 1 })
})

// What the others delete is in their path alone, and clients send parameters there.
const DELETIONS = ENDPOINTS.filter((one) => one.method === 'DELETE' && one.path.startsWith('/api/'))

test.each(DELETIONS.map((one) => [`${one.method} ${one.path}`, one] as const))(
  'a parameter that is empty, unknown or repeated is a 400 of %s, and deletes nothing',
  async (_, endpoint) => {
    const path = filledPath(endpoint, '2')
    const names = endpoint.kind === 'json' ? shapeOf(endpoint.query) : []
    const queries = names.flatMap((name) => [`${name}=`, `${name}=2&${name}=2`, `${name}=2&${name}=3`, name])
    const refuse = async (query: string, account: typeof BEN): Promise<void> => {
      const { status, body } = await manage(
        fixture.gateway.url,
        account,
        `DELETE ${path}?${query}` as 'DELETE /',
      )
      const isHidden = account === BEN && endpoint.access !== 'account'
      expect([status, body['code']], query).toEqual(
        isHidden ? [403, 'role_too_low'] : [400, 'invalid_request'],
      )
    }
    for (const query of [...queries, 'users=2', 'User=2', '=2'])
      await Promise.all([ADMIN, BEN].map((account) => refuse(query, account)))
    const { status } = await manage(fixture.gateway.url, BEN, `GET /api/content/${callOfBen}`)
    expect(status).toBe(200)
  },
)

/** Endpoints whose body selects what is deleted, with a body that would delete something of ben. */
const BODIES: Readonly<Record<string, object>> = {
  'POST /api/token/batch': { ids: [3] },
  'POST /api/channel/batch': { ids: [1] },
  'POST /api/user/manage': { id: BEN.id, action: 'delete' },
}

test('every endpoint whose body selects what is deleted is known', () => {
  const deleting = ENDPOINTS.filter(
    ({ method, summary }) => method !== 'DELETE' && /\b(?:delete|remove)s?\b/i.test(summary),
  )
  expect(deleting.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual(
    Object.keys(BODIES).toSorted(),
  )
})

test.each(Object.entries(BODIES))(
  'a member or a parameter that is empty, unknown or repeated is a 400 of %s, and deletes nothing',
  async (route, body) => {
    const account = route === 'POST /api/token/batch' ? BEN : ADMIN
    const [name = ''] = Object.keys(body)
    const text = JSON.stringify(body).slice(0, -1)
    const refuse = async (given: Body, query = ''): Promise<void> => {
      const got = await manage(fixture.gateway.url, account, `${route}${query}` as 'POST /', given)
      expect(got.status, `${JSON.stringify(given)} ${query}`).toBe(400)
    }
    for (const member of [`"${name}":9`, `"${name}":[9]`, '"user":9', '"Ids":[9]', '"":9'])
      await refuse(`${text},${member}}`)
    for (const empty of ['', [], {}, null]) await refuse({ ...body, [name]: empty })
    if (name === 'id') await refuse({ ...body, username: '' })
    for (const query of [`?${name}=9`, `?${name}=`, '?user=9', '?=9']) await refuse(body, query)
    const { data } = await manage<{ total: number }>(fixture.gateway.url, BEN, 'GET /api/token/')
    expect(data.total).toBe(3)
  },
)

test('content is deleted by the id of a user or a key only for those who may see it', async () => {
  const ask = async (path: string) => {
    const { status, message } = await manage(fixture.gateway.url, ANN, `DELETE ${path}` as 'DELETE /')
    return [status, message.replace(/\d+/, 'ID')]
  }
  const missing = await ask('/api/content?user=300004')
  expect(missing[0]).toBe(404)
  expect(await ask('/api/content?user=1')).toEqual(missing)
  expect(await ask(`/api/content?user=${BEN.id}`)).toEqual(missing)
  const token = await ask('/api/content?token=9')
  expect(token[0]).toBe(404)
  expect(await ask('/api/content?token=3')).toEqual(token)
})
