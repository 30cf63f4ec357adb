import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, manage } from '../fixtures/account.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }
const BEA = { id: 3, accessToken: 'the-access-token-of-bea' }
const KEYS = ['sk-upstream-one-0123456789', 'sk-upstream-two-0123456789', 'sk-upstream-three-012345678']

interface Key {
  readonly id: string
  readonly key: string
  readonly state: string
  readonly cause: string | null
  readonly since: number | null
  readonly calls_hour: number
}

let fixture: Fixture
let id: number
const texts: string[] = []
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 } },
    models: priced(['keyed', 'declared']),
    channels: [channel('declared', upstream.baseUrl('declared'))],
    users: [
      ROOT,
      user(2, 'ada', [token('ada')]),
      user(3, 'bea', [], { access_token: BEA.accessToken, role: 10 }),
    ],
  }))
  const { data } = await manage<{ ids: number[] }>(fixture.gateway.url, AS_ROOT, 'POST /api/channel/', {
    name: 'keyed',
    type: 1,
    key: KEYS.slice(0, 2).join('\n'),
    base_url: fixture.upstream.baseUrl('keyed'),
    models: 'keyed',
  })
  id = data.ids[0] ?? 0
})
afterAll(() => fixture?.close())

async function asked(request: Parameters<typeof manage>[2], body?: object, account: Account = AS_ROOT) {
  const answer = await manage<Key[]>(fixture.gateway.url, account, request, body)
  texts.push(JSON.stringify(answer))
  return answer
}
const keys = async (): Promise<Key[]> => (await asked(`GET /api/channel/${id}/keys`)).data
const states = async (): Promise<string[]> => (await keys()).map(({ state }) => state)

/** The keys with which the next calls go to the upstream. */
async function usedBy(calls: number): Promise<Set<string>> {
  const before = fixture.upstream.received('keyed').length
  for (let n = 0; n < calls; n += 1) expect((await fixture.chat('ada', ask('keyed'))).status).toBe(200)
  const sent = fixture.upstream.received('keyed').slice(before)
  return new Set(sent.map(({ headers }) => String(headers.authorization).replace('Bearer ', '')))
}

describe('the keys of a channel', () => {
  test('the keys of a channel are listed to root alone, masked, with the same ids each time', async () => {
    fixture.upstream.script('keyed', { kind: 'whole' })
    expect(await usedBy(4)).toEqual(new Set(KEYS.slice(0, 2)))
    const listed = await keys()
    expect(listed).toMatchObject([
      { key: 'sk-u**********6789', state: 'works', cause: null, since: null, calls_hour: 2 },
      { key: 'sk-u**********6789', state: 'works', cause: null, since: null, calls_hour: 2 },
    ])
    expect((await keys()).map((one) => one.id)).toEqual(listed.map((one) => one.id))
    expect((await asked(`GET /api/channel/${id}/keys`, undefined, BEA)).status).toBe(403)
  })

  test('a key that is added to a channel is used; a retired key gets no call until it is activated again', async () => {
    expect((await asked(`POST /api/channel/${id}/keys`, { key: KEYS[2] })).data).toHaveLength(3)
    expect(await usedBy(6)).toEqual(new Set(KEYS))
    const [first] = await keys()
    await asked(`PUT /api/channel/${id}/keys`, { id: first?.id, state: 'retired' })
    expect(await states()).toEqual(['works', 'works', 'retired'])
    expect((await keys())[2]?.since).toBeGreaterThan(Date.now() / 1000 - 60)
    expect(await usedBy(6)).toEqual(new Set(KEYS.slice(1)))
    await fixture.gateway.restart()
    expect(await usedBy(6)).toEqual(new Set(KEYS.slice(1)))
    await asked(`PUT /api/channel/${id}/keys`, { id: first?.id, state: 'works' })
    expect(await usedBy(6)).toEqual(new Set(KEYS))
    await asked(`PUT /api/channel/${id}/keys`, { id: first?.id, state: 'retired' })
    await asked(`POST /api/channel/${id}/keys`, { key: KEYS[0] })
    expect(await states()).toEqual(['works', 'works', 'works'])
  })

  test("a channel's key that the upstream refused is set aside with the cause, and used at once when activated again", async () => {
    fixture.upstream.decide('keyed', ({ headers }) =>
      headers.authorization === `Bearer ${KEYS[1]}` ? { kind: 'status', status: 401 } : { kind: 'whole' },
    )
    for (let n = 0; n < 3; n += 1) await fixture.chat('ada', ask('keyed'))
    const aside = (await keys()).find(({ state }) => state === 'set_aside')
    expect(aside).toMatchObject({ cause: 'status 401', since: expect.any(Number) })
    fixture.upstream.script('keyed', { kind: 'whole' })
    await asked(`PUT /api/channel/${id}/keys`, { id: aside?.id, state: 'works' })
    expect(await states()).toEqual(['works', 'works', 'works'])
    expect(await usedBy(6)).toEqual(new Set(KEYS))
  })

  test('the keys of a channel are removed one by one, except the last one; keys in gateway.yaml are not changed', async () => {
    for (const key of (await keys()).slice(0, 2))
      expect((await asked(`DELETE /api/channel/${id}/keys/${key.id}`)).status).toBe(200)
    const [last] = await keys()
    expect((await asked(`DELETE /api/channel/${id}/keys/${last?.id}`)).status).toBe(400)
    expect((await asked(`PUT /api/channel/${id}/keys`, { id: last?.id, state: 'retired' })).status).toBe(400)
    expect((await asked(`DELETE /api/channel/${id}/keys/0123456789abcdef`)).status).toBe(404)
    const { data } = await manage<{ items: { id: number; name: string }[] }>(
      fixture.gateway.url,
      AS_ROOT,
      'GET /api/channel/',
    )
    const declared = data.items.find(({ name }) => name === 'declared')?.id
    expect((await asked(`GET /api/channel/${declared}/keys`)).status).toBe(200)
    expect(await asked(`POST /api/channel/${declared}/keys`, { key: 'k' })).toMatchObject({ status: 409 })
    const audit = await manage(fixture.gateway.url, AS_ROOT, 'GET /api/audit?kind=channel')
    texts.push(JSON.stringify(audit))
    for (const key of KEYS) expect(texts.join('\n')).not.toContain(key)
  })
})
