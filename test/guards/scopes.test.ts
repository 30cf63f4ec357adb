import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const guard = (name: string, scope: Record<string, unknown>): Record<string, unknown> => ({
  name,
  do: 'flag',
  match: { words: ['yonder'] },
  ...scope,
})

// Each guard is limited to some keys, so that whether guards apply is decided for each key.
let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    groups: { special: { guards: ['added'] } },
    models: priced(['m', 'other']),
    channels: [
      channel('m', upstream.baseUrl('m'), { groups: ['default', 'special'] }),
      channel('other', upstream.baseUrl('other')),
    ],
    guards: [
      guard('users', { users: ['bob'], models: ['m'] }),
      guard('tokens', { tokens: ['token-named'] }),
      guard('groups', { groups: ['special'] }),
      guard('added', { tokens: ['none'] }),
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
        ],
        { access_token: ANN.accessToken },
      ),
      user(3, 'bob', [token('ofbob')]),
    ],
  }))
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
