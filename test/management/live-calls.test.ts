import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call, CERTAINLY_GONE_MS, type LiveResponse, open } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { logIn } from '../fixtures/console.ts'
import { ask as asChat, type Fixture, startFixture } from '../fixtures/fixture.ts'

const ACCOUNTS = {
  root: { id: 1, accessToken: ROOT.access_token },
  ada: { id: 2, accessToken: 'the-access-token-of-ada' },
  ann: { id: 3, accessToken: 'the-access-token-of-ann' },
  ben: { id: 4, accessToken: 'the-access-token-of-ben' },
}
type Person = keyof typeof ACCOUNTS

let fixture: Fixture
const opened = new Set<LiveResponse>()
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    // A sixteenth of the minimum number of slots for accounts: eight streams.
    options: { max_calls: 100 },
    rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
    models: priced(['m', 'other']),
    channels: [channel('m', upstream.baseUrl('m'), { models: ['m', 'other'] })],
    users: [
      ROOT,
      user(2, 'ada', [], { access_token: ACCOUNTS.ada.accessToken, role: 10 }),
      user(3, 'ann', [token('ann')], { access_token: ACCOUNTS.ann.accessToken }),
      user(4, 'ben', [token('ben')], { access_token: ACCOUNTS.ben.accessToken }),
    ],
  }))
  fixture.upstream.script('m', { kind: 'whole' })
})
afterAll(() => fixture?.close())

type Headers = Readonly<Record<string, string>>
const credentialsOf = (person: Person): Headers => ({
  authorization: ACCOUNTS[person].accessToken,
  'gateway-user': String(ACCOUNTS[person].id),
})

/** Requests a stream once; settles with the headers of the response. */
function ask(by: Person | Headers, path: string, headers: Headers = {}): Promise<LiveResponse> {
  const credentials = typeof by === 'string' ? credentialsOf(by) : by
  return open(fixture.gateway.url, undefined, {
    method: 'GET',
    path,
    headers: { ...credentials, ...headers },
  })
}

/** A stream of calls, as soon as the streams that earlier tests closed have released their slots. */
async function stream(...asked: Parameters<typeof ask>): Promise<LiveResponse> {
  for (;;) {
    const response = await ask(...asked)
    if (response.status === 429) continue
    opened.add(response)
    return response
  }
}
afterEach(async () => {
  await sleep(CERTAINLY_GONE_MS)
  for (const response of opened) response.abort()
  for (const response of opened) await response.end()
  opened.clear()
})

/** Makes a call and returns its id. */
async function made(key: string, model = 'm'): Promise<string> {
  const { status, headers } = await fixture.chat(key, asChat(model))
  expect(status).toBe(200)
  return String(headers['x-request-id'])
}

interface Event {
  readonly event: string
  readonly id: string | undefined
  readonly data: Readonly<Record<string, unknown>>
}

function eventsOf(response: LiveResponse): Event[] {
  const found = response.text().matchAll(/event: (\w+)\n(?:id: (.*)\n)?data: (.*)\n\n/g)
  return [...found].map(([, event = '', id, data = '']) => ({ event, id, data: JSON.parse(data) }))
}

describe('the live stream of calls', () => {
  test('the live stream of calls sends each call with the fields of its row in the usage log', async () => {
    const all = await stream('ada', '/api/log/stream')
    expect([all.status, all.headers['content-type']]).toEqual([200, 'text/event-stream'])
    expect(all.headers).toMatchObject({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
    const own = await stream('ann', '/api/log/self/stream')
    const id = await made('ann')
    await Promise.all([all.until(id), own.until(id)])
    const row = async (path: `/${string}`, person: Person) => {
      const { data } = await manage<{ items: object[] }>(
        fixture.gateway.url,
        ACCOUNTS[person],
        `GET ${path}?request_id=${id}`,
      )
      return data.items[0]
    }
    expect(eventsOf(all)).toEqual([{ event: 'call', id, data: await row('/api/log/', 'ada') }])
    expect(eventsOf(own)).toEqual([{ event: 'call', id, data: await row('/api/log/self', 'ann') }])
  })

  test("the live stream of calls sends all users' calls to admins, and other accounts only their own", async () => {
    for (const person of ['root', 'ada'] as const)
      expect((await stream(person, '/api/log/stream')).status).toBe(200)
    for (const person of ['ann', 'ben'] as const)
      expect((await stream(person, '/api/log/stream')).status).toBe(403)
    expect((await stream({}, '/api/log/stream')).status).toBe(401)
    expect((await stream({}, '/api/log/self/stream')).status).toBe(401)
    const own = await stream('ann', '/api/log/self/stream')
    const others = await made('ben')
    const id = await made('ann')
    await own.until(id)
    expect(own.text()).not.toContain(others)
  })

  test('the live stream of calls has the same filters as the usage log', async () => {
    const [ofModel, ofUser, none] = [
      await stream('ada', '/api/log/stream?model_name=other'),
      await stream('root', '/api/log/stream?username=ben'),
      await stream('ada', '/api/log/stream?channel=nowhere'),
    ]
    expect((await stream('root', '/api/log/stream?start_timestamp=x')).status).toBe(400)
    const anns = await made('ann')
    const bens = await made('ben')
    const other = await made('ann', 'other')
    await Promise.all([ofModel.until(other), ofUser.until(bens)])
    const ids = (response: LiveResponse) => eventsOf(response).map(({ id }) => id)
    expect([ids(ofModel), ids(ofUser), ids(none)]).toEqual([[other], [bens], []])
    expect(ofUser.text()).not.toContain(anns)
  })

  test('the live stream of calls continues where a returning client had stopped, and reports a gap where it cannot', async () => {
    const before = await stream('ada', '/api/log/stream')
    const first = await made('ann')
    await before.until(first)
    before.abort()
    await before.end()
    const keeping = await stream('root', '/api/log/stream')
    const missed = await made('ann')
    await keeping.until(missed)
    const after = await stream('ada', '/api/log/stream', { 'last-event-id': first })
    await after.until(missed)
    expect(eventsOf(after).map(({ id }) => id)).toEqual([missed])
    const lost = await stream('ada', '/api/log/stream', { 'last-event-id': 'unknown' })
    await lost.until('event: gap')
    expect(eventsOf(lost)).toEqual([{ event: 'gap', id: undefined, data: { missed: null } }])
  })

  test('the live stream of calls sends each of many simultaneous calls, or counts it as missed', async () => {
    const all = await stream('ada', '/api/log/stream?username=ben')
    const ids = await Promise.all(Array.from({ length: 60 }, () => made('ben')))
    const counted = (): number =>
      eventsOf(all).reduce((sum, { event, data }) => sum + (event === 'gap' ? Number(data['missed']) : 1), 0)
    await expect.poll(counted).toBe(60)
    const sent = eventsOf(all).filter(({ event }) => event === 'call')
    expect(ids).toEqual(expect.arrayContaining(sent.map(({ id }) => id)))
  })

  test('a user may open four live streams of calls at once over all sessions, and all users of a node together eight', async () => {
    const sessionOf = async (person: Person): Promise<Headers> => {
      const { cookie } = await logIn(fixture.gateway.url, { access_token: ACCOUNTS[person].accessToken })
      return { cookie }
    }
    const session = await sessionOf('ann')
    const another = await sessionOf('ann')
    for (const client of [session, another, session, 'ann'] as const)
      await stream(client, '/api/log/self/stream')
    for (const client of [session, await sessionOf('ann'), 'ann'] as const) {
      const fifth = await ask(client, '/api/log/self/stream')
      expect([fifth.status, (await fifth.end()).text]).toEqual([
        429,
        expect.stringContaining('4 live streams of this user'),
      ])
    }
    for (let n = 0; n < 4; n += 1) await stream('ada', '/api/log/self/stream')
    const ninth = await ask('root', '/api/log/self/stream')
    expect([ninth.status, ninth.headers['retry-after']]).toEqual([429, '15'])
    expect((await ninth.end()).text).toContain('8 live streams of this gateway')
  })

  test('a HEAD request for the live stream of calls is answered, and takes no slot', async () => {
    for (let served = 0; served < 9; ) {
      const head = await call(fixture.gateway.url, undefined, {
        method: 'HEAD',
        path: '/api/log/stream',
        headers: credentialsOf('ada'),
      })
      if (head.status === 429) continue
      expect([head.status, head.headers['content-type'], head.text]).toEqual([200, 'text/event-stream', ''])
      served += 1
    }
  })

  test('the live stream of calls ends when its session ends, or when its user is demoted or disabled', async () => {
    const { cookie } = await logIn(fixture.gateway.url, { access_token: ACCOUNTS.ann.accessToken })
    const ofSession = await stream({ cookie }, '/api/log/self/stream')
    const ofAdmin = await stream('ada', '/api/log/stream')
    const ofBanned = await stream('ben', '/api/log/self/stream')
    await call(fixture.gateway.url, undefined, {
      method: 'GET',
      path: '/api/user/logout',
      headers: { cookie },
    })
    const manageAs = (action: string, id: number) =>
      manage(fixture.gateway.url, ACCOUNTS.root, 'POST /api/user/manage', { id, action })
    expect((await manageAs('demote', 2)).status).toBe(200)
    expect((await manageAs('disable', 4)).status).toBe(200)
    const last = async (response: LiveResponse) => {
      const { broken } = await response.end()
      return [broken, eventsOf(response).at(-1)?.event, eventsOf(response).at(-1)?.data]
    }
    expect(await last(ofSession)).toEqual([false, 'end', { reason: 'unauthorized' }])
    expect(await last(ofAdmin)).toEqual([false, 'end', { reason: 'role_too_low' }])
    expect(await last(ofBanned)).toEqual([false, 'end', { reason: 'user_disabled' }])
  })

  test('the live stream of calls ends when the gateway stops, and does not delay the stop', async () => {
    const own = await stream('ann', '/api/log/self/stream')
    const stopping = fixture.gateway.stop()
    const { broken } = await own.end()
    expect([broken, eventsOf(own)]).toEqual([
      false,
      [{ event: 'end', id: undefined, data: { reason: 'gateway_stopping' } }],
    ])
    expect(await stopping).toBe(0)
  })
})
