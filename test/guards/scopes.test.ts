import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { errorBody } from '../fixtures/behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { storingUpstream } from '../fixtures/stored-responses.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const guard = (name: string, scope: Record<string, unknown>): Record<string, unknown> => ({
  name,
  do: 'flag',
  match: { words: ['yonder'] },
  ...scope,
})

/** A guard that redacts what the provider of `storing` says. */
const READ = { do: 'redact', where: ['output'], match: { words: ['hello'] } }

// Each guard is limited to some keys, so that whether guards apply is decided for each key.
let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    groups: { special: { guards: ['added'] }, first: {}, listing: { guards: ['ofgroup'] }, second: {} },
    models: {
      ...priced(['m', 'other', 'spare', 'apart']),
      failing: { vendor: 'acme', price: PLAIN_PRICE, fallback: ['spare'] },
      long: { vendor: 'acme', price: PLAIN_PRICE, context_fallback: ['spare'] },
      oldest: { vendor: 'acme', price: PLAIN_PRICE, successor: 'old' },
      old: { vendor: 'acme', price: PLAIN_PRICE, successor: 'spare' },
      charged: { vendor: 'acme', price: PLAIN_PRICE, fallback: ['elsewhere'] },
      elsewhere: { vendor: 'beta', price: PLAIN_PRICE },
    },
    channels: [
      channel('m', upstream.baseUrl('m'), { groups: ['default', 'special'] }),
      channel('other', upstream.baseUrl('other')),
      channel('down', upstream.baseUrl('down'), {
        protocol: 'responses',
        models: ['failing', 'charged'],
        groups: ['default', 'first', 'listing'],
      }),
      channel('short', upstream.baseUrl('short'), { protocol: 'responses', models: ['long'] }),
      channel('storing', upstream.baseUrl('storing'), {
        protocol: 'responses',
        models: ['spare', 'apart', 'elsewhere'],
        groups: ['default', 'second'],
      }),
    ],
    guards: [
      guard('users', { users: ['bob'], models: ['m'] }),
      guard('tokens', { tokens: ['token-named'] }),
      guard('groups', { groups: ['special'] }),
      guard('added', { tokens: ['none'] }),
      ...['failing', 'long', 'oldest'].map((model) =>
        guard(`of${model}`, { ...READ, models: [model], tokens: ['token-reading'] }),
      ),
      guard('forgroup', { ...READ, groups: ['first'], tokens: ['token-scoped'] }),
      guard('ofgroup', { ...READ, tokens: ['none'] }),
    ],
    users: [
      ROOT,
      user(
        2,
        'ann',
        [
          token('plain'),
          token('named', { name: 'token-named' }),
          token('special', { group: 'special' }),
          token('routed', { vendor_routes: '{"acme":"special"}' }),
          token('changed', { name: 'to-change' }),
          token('reading'),
          token('scoped', { group: 'first', vendor_routes: '{"beta":"second"}' }),
          token('listed', { group: 'listing', vendor_routes: '{"beta":"second"}' }),
          // Its `vendor_routes` are broken in the database, below.
          token('unreadable', { name: 'token-unreadable', group: 'listing' }),
        ],
        { access_token: ANN.accessToken },
      ),
      user(3, 'bob', [token('ofbob')]),
    ],
  }))
  const database = databaseOf(fixture.gateway.dataDir)
  database.write("update tokens set vendor_routes = '[1]' where name = 'token-unreadable'")
})
afterAll(() => fixture?.close())

async function guardsOf(key: string, model = 'm'): Promise<string> {
  fixture.upstream.script(model, { kind: 'whole' })
  const { headers } = await fixture.chat(key, ask(model))
  return String(headers['x-gateway-guards'] ?? '').replaceAll(/=allowed;count=0/g, '')
}

test('guards apply to the keys, users and groups that they or their groups name, and to no other', async () => {
  expect(await guardsOf('plain')).toBe('')
  expect(await guardsOf('named')).toBe('tokens')
  expect(await guardsOf('special')).toBe('groups, added')
  expect(await guardsOf('ofbob')).toBe('users')
  expect(await guardsOf('ofbob', 'other')).toBe('')
})

test('a guard of a group applies to a key that has the group for one vendor only', async () => {
  expect(await guardsOf('routed')).toBe('groups, added')
})

test('a guard that is added to a key applies to the next call, and no longer once it is removed', async () => {
  const { data } = await manage<{ items: { id: number; name: string }[] }>(
    fixture.gateway.url,
    ANN,
    'GET /api/token/?page_size=100',
  )
  const id = data.items.find(({ name }) => name === 'to-change')?.id
  expect(await guardsOf('changed')).toBe('')
  expect((await manage(fixture.gateway.url, ANN, 'PUT /api/token/', { id, guards: ['added'] })).status).toBe(
    200,
  )
  expect(await guardsOf('changed')).toBe('added')
  expect((await manage(fixture.gateway.url, ANN, 'PUT /api/token/', { id, guards: [] })).status).toBe(200)
  expect(await guardsOf('changed')).toBe('')
})

const respond = (key: string, body: object): Promise<FullResponse> =>
  call(fixture.gateway.url, JSON.stringify(body), { path: '/v1/responses', key })
const read = (key: string, id: string): Promise<FullResponse> =>
  call(fixture.gateway.url, '', { path: `/v1/responses/${id}`, key, method: 'GET' })

/** Makes a response of the model, whose own channels fail, and reads it in each way. */
async function madeAndRead(key: string, model: string, background: boolean): Promise<FullResponse[]> {
  const provider = storingUpstream('storing')
  provider.backgroundStatus = 'completed'
  fixture.upstream.decide('storing', (request) => provider.decision(request))
  const tooLong = errorBody('too long', undefined, 'context_length_exceeded')
  fixture.upstream.decide('down', () => ({ kind: 'status', status: 500, body: errorBody('down') }))
  fixture.upstream.decide('short', () => ({ kind: 'status', status: 400, body: tooLong }))
  const made = await respond(key, { model, input: 'hi', background })
  const { id } = JSON.parse(made.text) as { id: string }
  const answers = [await read(key, id), await read(key, `${id}?stream=true`)]
  return background ? answers : [made, ...answers]
}

test.each([
  ['failing', false],
  ['failing', true],
  ['long', true],
  ['oldest', true],
])(
  'a guard of a model checks a response that another model made in its place, at each read too: %s, in the background: %s',
  async (model, background) => {
    for (const { status, text } of await madeAndRead('reading', model, background)) {
      expect([status, text]).toEqual([200, expect.stringContaining('[REDACTED] from storing')])
      expect(text).not.toContain('Hello')
    }
  },
)

test('guards of a group check a response that was charged to another group in its place, at each read too', async () => {
  for (const key of ['scoped', 'listed'])
    for (const { text } of await madeAndRead(key, 'charged', true))
      expect(text).toContain('[REDACTED] from storing')
})

test('a key whose vendor_routes cannot be read makes no calls, but reads stored responses, which its guards check', async () => {
  const [made] = await madeAndRead('plain', 'apart', false)
  const { id } = JSON.parse(made?.text ?? '') as { id: string }
  expect((await respond('unreadable', { model: 'apart', input: 'hi' })).text).toContain('vendor_routes')
  const { status, text } = await read('unreadable', id)
  expect([status, text]).toEqual([200, expect.stringContaining('[REDACTED] from storing')])
})

test('a guard of a model does not check the stored response of a model that never answers in its place', async () => {
  for (const { text } of await madeAndRead('reading', 'apart', false)) expect(text).toContain('Hello')
})
