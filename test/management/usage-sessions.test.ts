import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Account, manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { type Body, call, type CallOptions } from '../fixtures/client.ts'
import {
  ADMIN,
  ADMIN_USER,
  channel,
  type Configuration,
  priced,
  ROOT,
  token,
  user,
} from '../fixtures/configuration.ts'
import { ask, startFixture } from '../fixtures/fixture.ts'
import type { RunningGateway } from '../fixtures/gateway.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { setNodes, SHARED } from '../nodes/fixture.ts'
import type { OnEnd } from '../stores/engines.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BOB = { id: 5, accessToken: 'the-access-token-of-bob' }

const configure = (upstream: ScriptedUpstream): Configuration => ({
  models: priced(['m']),
  channels: [channel('m', upstream.baseUrl('m'), { models: ['m', 'embedding'] })],
  users: [
    ROOT,
    user(2, 'ann', [token('ann')], { access_token: ANN.accessToken }),
    user(5, 'bob', [token('bob')], { access_token: BOB.accessToken }),
    ADMIN_USER,
  ],
})

interface Item {
  readonly session: string
  readonly user_id: number
  readonly username: string
  readonly calls: number
  readonly first_at: number
  readonly last_at: number
}
interface Page {
  readonly items: readonly Item[]
  readonly total: number
}
interface Row {
  readonly session: string
  readonly request_id: string
  readonly created_at: number
  readonly token_id: number
}

interface Site {
  readonly upstream: ScriptedUpstream
  readonly gateway: RunningGateway
  readonly chat: (key: string, body: Body, options?: CallOptions) => Promise<{ readonly status: number }>
}

const SITES: readonly { readonly name: string; readonly start: (onEnd: OnEnd) => Promise<Site> }[] = [
  {
    name: 'SQLite',
    start: async (onEnd) => {
      const fixture = await startFixture(configure)
      onEnd(() => fixture.close())
      const { upstream, gateway } = fixture
      return { upstream, gateway, chat: (key, body, options) => fixture.chat(key, body, options) }
    },
  },
  ...SHARED.map((engine) => ({
    name: engine.name,
    start: async (onEnd: OnEnd) => {
      const { upstream, gateways, chat } = await setNodes(engine, 1, configure, {
        onEnd,
        program: patientProgram,
      })
      const [gateway] = gateways as [RunningGateway]
      const site: Site = {
        upstream,
        gateway,
        chat: (key, body, options) => chat(0, `sk-${key}`, body, options),
      }
      return site
    },
  })),
]

describe.each(SITES)('sessions of calls on $name', ({ start }) => {
  let site: Site
  const ends: (() => unknown)[] = []
  /** Of ann: two calls of the session `a`, one of `b`; of bob: one of `a`. */
  beforeAll(async () => {
    site = await start((end) => ends.push(end))
    site.upstream.script('m', { kind: 'whole', usage: usageText(1_000, 5, 400) })
    for (const [key, session] of [
      ['ann', 'a'],
      ['bob', 'a'],
      ['ann', 'b'],
      ['ann', 'a'],
    ] as const)
      await site.chat(key, ask('m'), { headers: { 'x-session-id': session } })
    // Nodes report their calls after a moment.
    await vi.waitUntil(async () => (await log(ADMIN)).length === 4, { timeout: 60_000 })
  })
  afterAll(async () => {
    for (const end of ends.toReversed()) await end()
  })

  const get = async <Data>(who: Account, path: `/${string}`): Promise<Data> => {
    const { status, data } = await manage<Data>(site.gateway.url, who, `GET ${path}`)
    expect(status, path).toBe(200)
    return data
  }
  const log = async (who: Account, query = ''): Promise<readonly Row[]> =>
    (await get<{ items: Row[] }>(who, `/api/log/${who === ADMIN ? '' : 'self'}?page_size=100${query}`)).items
  const sessions = (who: Account, query = '') => get<Page>(who, `/api/sessions?${query}`)

  test('the usage row of a call has 16 hex digits that identify the session of its user', async () => {
    const [last, b, bob, first] = await log(ADMIN)
    expect(last?.session).toMatch(/^[0-9a-f]{16}$/)
    expect(first?.session).toBe(last?.session)
    expect(new Set([last?.session, b?.session, bob?.session]).size).toBe(3)
  })

  test('the pages, the sum and the CSV file of the call log can be filtered by session', async () => {
    const [last, , bob, first] = await log(ADMIN)
    const query = `&session=${last?.session}`
    expect((await log(ADMIN, query)).map(({ request_id }) => request_id)).toEqual([
      last?.request_id,
      first?.request_id,
    ])
    const stat = await get<{ requests: number }>(ADMIN, `/api/log/stat?session=${last?.session}`)
    expect(stat.requests).toBe(2)
    expect(await log(ANN, `&session=${bob?.session}`)).toEqual([])
    const { text } = await call(site.gateway.url, undefined, {
      method: 'GET',
      path: `/api/log/export?session=${last?.session}`,
      headers: { authorization: ADMIN.accessToken, 'gateway-user': String(ADMIN.id) },
    })
    expect(text.trim().split('\r\n')).toHaveLength(3)
    const [head = '', line = ''] = text.split('\r\n')
    expect(line.split(',')[head.split(',').indexOf('session')]).toBe(last?.session)
  })

  test('the sessions of an account are listed with the sums of their calls, the session of the latest call first', async () => {
    const [last, b, , first] = await log(ADMIN)
    const sums = {
      user_id: 2,
      username: 'ann',
      model_name: 'm',
      models: 1,
      token_id: last?.token_id,
      token_name: 'token-ann',
      cache_write: 0,
      cache_surcharge: 0,
      breaks: {},
    }
    // Per call 600 tokens at 1, 400 at a quarter, and 5 tokens of output at 4.
    expect(await sessions(ANN)).toEqual({
      page: 1,
      page_size: 10,
      total: 2,
      items: [
        {
          ...sums,
          session: last?.session,
          first_call: first?.request_id,
          calls: 2,
          input: 1_200,
          cached: 800,
          output: 10,
          quota: 1_440,
          cache_saved: 600,
          first_at: first?.created_at,
          last_at: last?.created_at,
        },
        {
          ...sums,
          session: b?.session,
          first_call: b?.request_id,
          calls: 1,
          input: 600,
          cached: 400,
          output: 5,
          quota: 720,
          cache_saved: 300,
          first_at: b?.created_at,
          last_at: b?.created_at,
        },
      ],
    })
  })

  test('an administrator sees the sessions of all users, or those of a chosen user', async () => {
    expect((await sessions(ADMIN)).items.map(({ username, calls }) => [username, calls])).toEqual([
      ['ann', 2],
      ['ann', 1],
      ['bob', 1],
    ])
    for (const query of ['username=bob', 'user_id=5'])
      expect((await sessions(ADMIN, query)).items.map(({ username }) => username)).toEqual(['bob'])
  })

  test('a user never sees the sessions of another one', async () => {
    const [, , bob] = await log(ADMIN)
    for (const query of ['', 'username=ann', 'user_id=2', `session=${bob?.session}`])
      expect((await sessions(BOB, query)).items.map(({ user_id, session }) => [user_id, session])).toEqual([
        [5, bob?.session],
      ])
    expect(await sessions(ANN, `session=${bob?.session}`)).toMatchObject({ total: 0, items: [] })
  })

  test('the list of sessions is divided into pages, and for a period only counts the calls in that period', async () => {
    const [, b] = await log(ADMIN)
    expect(await sessions(ADMIN, 'p=2&page_size=1')).toMatchObject({
      page: 2,
      total: 3,
      items: [{ session: b?.session }],
    })
    expect(await sessions(ADMIN, 'p=9&page_size=10')).toMatchObject({ total: 3, items: [] })
    expect(await sessions(ADMIN, 'start_timestamp=1000&end_timestamp=2000')).toMatchObject({
      total: 0,
      items: [],
    })
    const now = Math.floor(Date.now() / 1000)
    expect((await sessions(ADMIN, `start_timestamp=${now - 600}&end_timestamp=${now + 5}`)).total).toBe(3)
  })

  test("the reason of a cache miss is in the call's usage row, the sums of its session and the sums of the period", async () => {
    const headers = { 'x-session-id': 'broken' }
    await site.chat('bob', ask('m'), { headers })
    site.upstream.script('m', { kind: 'whole', usage: usageText(1_000, 5, 199) })
    const tool = { type: 'function', function: { name: 'look', parameters: { type: 'object' } } }
    await site.chat('bob', { ...ask('m'), tools: [tool] }, { headers })
    const broken = async () => (await log(ADMIN, '&user_id=5'))[0]
    await expect.poll(broken).toMatchObject({ cache_break: 'tools_changed', cache_verdict: '' })
    const breaks = { tools_changed: 1 }
    const [session] = (await sessions(BOB)).items
    expect(session).toMatchObject({ calls: 2, breaks })
    await expect.poll(() => get(ADMIN, '/api/usage')).toMatchObject({ breaks })
    await expect.poll(() => get(BOB, '/api/usage/self')).toMatchObject({ breaks })
    expect(await get(ANN, '/api/usage/self')).toMatchObject({ breaks: {} })
    expect(await get(ADMIN, '/api/usage?username=ann')).toMatchObject({ breaks: {} })
  })
})
