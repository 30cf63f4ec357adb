import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Endpoint } from '../../src/api/endpoint.ts'
import { BatchClient, bodyOf, chatLine } from '../fixtures/batches.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { filledPath, isEndless, ROUTES } from '../fixtures/routes.ts'

/** Users with a key and an access token each. `boss` is an administrator. */
const ACCOUNTS = { ann: 2, bob: 3, boss: 4 } as const
type Name = keyof typeof ACCOUNTS
/** Text in the files of Ann; no response to another user may contain it. */
const SECRETS = ['the secret words', 'line-of-ann']

/** Paths that take an id, from the table of all routes, so that a new one is not forgotten. */
const WITH_ID = ROUTES.filter((route) => filledPath(route, '') !== route.path && !isEndless(route))
const isManaged = ({ path }: Endpoint): boolean => path.startsWith('/api/')
/** Paths of files and batches for clients. */
const OF_CLIENTS = WITH_ID.filter((route) => /\/(?:files|batches)\//.test(route.path) && !isManaged(route))
/** What administrators may do with batches of others: everything but reading results. */
const OF_ADMINISTRATORS = new Set(['GET /api/batches/:id', 'POST /api/batches/:id/cancel'])

let fixture: Fixture
let ids: readonly string[]
let file: string
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { local_batches: true },
    rate_limits: { relay: { requests: 0 }, global: { requests: 0 }, critical: { requests: 0 } },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [
      ROOT,
      ...Object.entries(ACCOUNTS).map(([name, id]) =>
        user(id, name, [token(name)], {
          access_token: `the-access-token-of-${name}`,
          role: name === 'boss' ? 10 : 1,
        }),
      ),
    ],
  }))
  const ann = clientOf('ann')
  const messages = [{ role: 'user', content: SECRETS[0] }]
  const made = await ann.make([chatLine('line-of-ann', 'm', { messages })])
  const ended = await ann.ended(made.id)
  const requests = [{ custom_id: 'line-of-ann', params: { model: 'm', max_tokens: 20, messages } }]
  const { id } = bodyOf(await ann.ask('/v1/messages/batches', 'POST', { requests }))
  await ann.ended(id)
  file = made.input_file_id
  ids = [file, ended.output_file_id ?? '', made.id, id]
})
afterAll(() => fixture?.close())

const clientOf = (name: Name): BatchClient => new BatchClient(fixture.gateway.url, name)

/** What a user gets from an endpoint with an id. */
function answerOf(name: Name, { method, path, kind }: Endpoint, id: string): Promise<FullResponse> {
  const account = { authorization: `the-access-token-of-${name}`, 'gateway-user': String(ACCOUNTS[name]) }
  return call(fixture.gateway.url, undefined, {
    method,
    path: filledPath({ path }, id),
    ...(kind === 'json' ? { headers: account } : { key: name }),
  })
}

describe('docs/batches.md: Files', () => {
  test('there are paths of files and batches, which their user finds', async () => {
    expect(OF_CLIENTS.length).toBeGreaterThanOrEqual(8)
    const found = new Set<string>()
    for (const route of OF_CLIENTS.filter(({ method }) => method === 'GET'))
      for (const id of ids) if ((await answerOf('ann', route, id)).status === 200) found.add(route.path)
    expect(found).toEqual(
      new Set(OF_CLIENTS.filter(({ method }) => method === 'GET').map(({ path }) => path)),
    )
  })

  test.each(['bob', 'boss'] as const)(
    'for %s, ids of files and batches of another user are unknown on every path',
    async (name) => {
      for (const route of WITH_ID)
        for (const id of ids) {
          const place = `${route.method} ${route.path}`
          const { status, text } = await answerOf(name, route, id)
          for (const secret of SECRETS) expect(text, place).not.toContain(secret)
          const isAllowed = name === 'boss' && OF_ADMINISTRATORS.has(place)
          const isOfBatches = OF_CLIENTS.includes(route) || route.path.startsWith('/api/batches/')
          if (isOfBatches && !isAllowed) expect([place, id, status]).toEqual([place, id, 404])
        }
    },
  )

  test.each(['bob', 'boss'] as const)('%s cannot make a batch of the file of another user', async (name) => {
    const batch = { input_file_id: file, endpoint: '/v1/chat/completions', completion_window: '24h' }
    expect((await clientOf(name).ask('/v1/batches', 'POST', batch)).status).toBe(404)
  })

  test('lists that begin at an id of another user have nothing of that user', async () => {
    for (const id of ids)
      for (const path of [
        `/v1/files?after=${id}`,
        `/v1/files?order=asc&after=${id}`,
        `/v1/batches?after=${id}`,
        `/v1/messages/batches?after_id=${id}`,
        `/v1/messages/batches?before_id=${id}`,
      ])
        expect([path, bodyOf(await clientOf('bob').ask(path)).data]).toEqual([path, []])
  })

  test('a request that names the file of another user sends nothing of it to a provider', async () => {
    const named = [
      ['/v1/chat/completions', { type: 'file', file: { file_id: file } }],
      ['/v1/responses', { type: 'input_file', file_id: file }],
      ['/v1/messages', { type: 'document', source: { type: 'file', file_id: file } }],
    ] as const
    for (const [path, part] of named) {
      const turn = [{ role: 'user', content: [part] }]
      const body = path === '/v1/responses' ? { model: 'm', input: turn } : ask('m', { messages: turn })
      await call(fixture.gateway.url, body, { path, key: 'bob' })
    }
    for (const { body } of fixture.upstream.received('m').slice(-named.length))
      if (body.includes(file)) for (const secret of SECRETS) expect(body.toString()).not.toContain(secret)
  })

  test('after all of that, everything of the user is as it was', async () => {
    const ann = clientOf('ann')
    expect(bodyOf(await ann.ask('/v1/files')).data.map(({ id }) => id)).toEqual(ids.slice(0, 2).toReversed())
    expect((await ann.ask(`/v1/files/${file}/content`)).text).toContain(SECRETS[0])
    for (const id of ids.slice(2)) expect((await ann.batch(id)).id).toBe(id)
  })
})
