import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 3, accessToken: 'the-access-token-of-ann' }
const LANES = ['good', 'half', 'broken', 'tested', 'first', 'second']

interface Item {
  readonly id: number
  readonly name: string
  readonly state: string
  readonly condition: string
  readonly minutes?: unknown
  readonly hour?: { readonly requests: number; readonly failed: number }
}
interface Incident {
  readonly channel: string
  readonly condition: string
  readonly since: number
  readonly calls: number
  readonly failed: number
  readonly rescued: number
  readonly lost: number
  readonly cause: string
  readonly test_costs: boolean
}
interface Change {
  readonly action: string
  readonly object: { readonly kind: string; readonly name: string }
  readonly changes: readonly object[]
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 } },
    options: { retries: 3, media: { allow_private_networks: true } },
    models: {
      ...priced(['good', 'half', 'broken', 'tested', 'shared']),
      'tts-1': { price: { characters: 15 } },
    },
    channels: [
      ...LANES.map((name) =>
        channel(name, upstream.baseUrl(name), {
          models: [name === 'first' || name === 'second' ? 'shared' : name],
          priority: name === 'first' ? 10 : 0,
        }),
      ),
      channel('voice', upstream.baseUrl('voice'), { models: ['tts-1'] }),
    ],
    users: [
      ROOT,
      user(2, 'ada', [token('ada')]),
      user(3, 'ann', [token('ann')], { access_token: ANN.accessToken }),
    ],
  }))
})
afterAll(() => fixture?.close())

const api = async <Data>(request: Parameters<typeof manage>[2], body?: object): Promise<Data> =>
  (await manage<Data>(fixture.gateway.url, AS_ROOT, request, body)).data
const itemOf = async (name: string, query = ''): Promise<Item | undefined> =>
  (await api<{ items: Item[] }>(`GET /api/channel/health${query}`)).items.find((one) => one.name === name)
const chat = (model: string) => fixture.chat('ada', ask(model))
const incidentOf = async (name: string): Promise<Incident | undefined> =>
  (await api<{ incidents: Incident[] }>('GET /api/console')).incidents.find((one) => one.channel === name)

describe('the condition of a channel', () => {
  test('the condition of a channel is untried before its first call, and working after an answer', async () => {
    expect(await itemOf('good')).toMatchObject({ state: 'works', condition: 'untried' })
    fixture.upstream.script('good', { kind: 'whole' })
    expect((await chat('good')).status).toBe(200)
    expect(await itemOf('good')).toMatchObject({ condition: 'works' })
  })

  test('a channel whose only test failed is failing, and works after a test that succeeds', async () => {
    fixture.upstream.script('tested', { kind: 'status', status: 500 })
    const id = (await itemOf('tested'))?.id
    await manage(fixture.gateway.url, AS_ROOT, `GET /api/channel/test/${id}`)
    expect(await itemOf('tested')).toMatchObject({ state: 'works', condition: 'failing' })
    fixture.upstream.script('tested', { kind: 'whole' })
    await manage(fixture.gateway.url, AS_ROOT, `GET /api/channel/test/${id}`)
    expect(await itemOf('tested')).toMatchObject({ condition: 'works' })
  })

  test('a channel with 5 of 10 attempts failed is degraded, and listed as an incident until it works again', async () => {
    for (let n = 0; n < 10; n += 1) {
      fixture.upstream.script('half', n % 2 === 0 ? { kind: 'status', status: 500 } : { kind: 'whole' })
      await chat('half')
      // Four failures are too few.
      if (n === 7) expect(await itemOf('half')).toMatchObject({ condition: 'works' })
    }
    expect(await itemOf('half')).toMatchObject({ condition: 'degraded' })
    expect(await incidentOf('half')).toMatchObject({
      condition: 'degraded',
      calls: 10,
      failed: 5,
      rescued: 0,
      lost: 5,
      cause: 'status 500',
      test_costs: false,
      since: expect.closeTo(Date.now() / 1000, -2),
    })
    // A channel that fails in a test alone, without calls, is none.
    fixture.upstream.script('broken', { kind: 'status', status: 500 })
    await manage(fixture.gateway.url, AS_ROOT, `GET /api/channel/test/${(await itemOf('broken'))?.id}`)
    expect(await itemOf('broken')).toMatchObject({ condition: 'failing' })
    expect(await incidentOf('broken')).toBeUndefined()
    for (let n = 0; n < 15; n += 1) await chat('half')
    expect(await itemOf('half')).toMatchObject({ condition: 'degraded' })
    await chat('half')
    expect(await itemOf('half')).toMatchObject({ condition: 'works' })
    expect(await incidentOf('half')).toBeUndefined()
  })

  test('an incident of a channel of speech says that a test of the channel costs money', async () => {
    fixture.upstream.script('voice', { kind: 'status', status: 500 })
    for (let n = 0; n < 3; n += 1)
      await fixture.chat(
        'ada',
        { model: 'tts-1', input: 'hello', voice: 'alloy' },
        { path: '/v1/audio/speech' },
      )
    expect(await incidentOf('voice')).toMatchObject({ condition: 'failing', test_costs: true })
  })

  test('a channel is failing after two failures and resting after five; calls that another channel answers count as rescued', async () => {
    fixture.upstream.script('first', { kind: 'status', status: 500 })
    fixture.upstream.script('second', { kind: 'whole' })
    for (let n = 0; n < 2; n += 1) expect((await chat('shared')).status).toBe(200)
    expect(await itemOf('first')).toMatchObject({ condition: 'failing' })
    for (let n = 0; n < 3; n += 1) await chat('shared')
    expect((await itemOf('first'))?.condition).toMatch(/^(?:resting|probing)$/)
    expect(await incidentOf('first')).toMatchObject({ calls: 5, failed: 5, rescued: 5, lost: 0 })
    // The cooldown may be over before it is seen. Each failed trial doubles it.
    const conditionAfterCall = async (): Promise<string | undefined> => {
      await chat('shared')
      return (await itemOf('first'))?.condition
    }
    await expect.poll(conditionAfterCall).toBe('resting')
    expect(await incidentOf('second')).toBeUndefined()
    const { data } = await manage<object>(fixture.gateway.url, ANN, 'GET /api/console')
    expect(data).toMatchObject({ incidents: null })
  })

  test('a channel that gets one trial call after its cooldown is probing, and an incident until the call succeeds', async () => {
    const answer = Promise.withResolvers<void>()
    const before = await incidentOf('first')
    fixture.upstream.script('first', { kind: 'whole', after: answer.promise })
    const calls: Promise<unknown>[] = []
    await expect
      .poll(() => {
        calls.push(chat('shared'))
        return fixture.upstream.received('first').length
      })
      .toBe(1)
    expect(await itemOf('first')).toMatchObject({ condition: 'probing', tried: true })
    expect(await incidentOf('first')).toMatchObject({
      condition: 'probing',
      tried: true,
      failed: before?.failed,
    })
    answer.resolve()
    await Promise.all(calls)
    expect(await itemOf('first')).toMatchObject({ condition: 'works' })
    expect(await incidentOf('first')).toBeUndefined()
  })
})

describe('a channel after its cooldown', () => {
  test('is said to be tried only while a call tries it', async () => {
    fixture.upstream.script('broken', { kind: 'status', status: 500 })
    for (let call = 0; call < 5; call += 1) await chat('broken')
    await expect
      .poll(async () => (await itemOf('broken'))?.condition, { timeout: 60_000, interval: 500 })
      .toBe('probing')
    expect(await itemOf('broken')).toMatchObject({ state: 'probing', tried: false })
    expect(await incidentOf('broken')).toMatchObject({ condition: 'probing', tried: false })
  })
})

describe('a drained channel', () => {
  const answeredBy = async (): Promise<string> => {
    await chat('shared')
    const { items } = await api<{ items: { channel: string }[] }>(
      'GET /api/log/?model_name=shared&page_size=1',
    )
    return items[0]?.channel ?? ''
  }

  test('a drained channel gets no call while another can take it, also if gateway.yaml declares it', async () => {
    fixture.upstream.script('first', { kind: 'whole' })
    const id = (await itemOf('first'))?.id
    await expect.poll(answeredBy, { interval: 1000 }).toBe('first')
    expect(await api('PUT /api/channel/9/drain', { on: true })).toBeFalsy()
    const drained = await api<object>(`PUT /api/channel/${id}/drain`, { on: true })
    expect(drained).toMatchObject({ name: 'first', drained: true })
    expect(await itemOf('first')).toMatchObject({ condition: 'drained' })
    expect(await answeredBy()).toBe('second')
    const other = (await itemOf('second'))?.id
    await api(`PUT /api/channel/${other}/drain`, { on: true })
    expect(await answeredBy()).toBe('first')
    await api(`PUT /api/channel/${other}/drain`, { on: false })
    expect(await answeredBy()).toBe('second')

    const { items } = await api<{ items: Change[] }>('GET /api/audit?kind=channel')
    expect(
      items.filter(({ action, object }) => action === 'channel.update' && object.name === 'first'),
    ).toMatchObject([
      {
        action: 'channel.update',
        object: { kind: 'channel', id },
        changes: [{ field: 'drained', before: false, after: true }],
      },
    ])
    await fixture.gateway.restart()
    expect(await itemOf('first')).toMatchObject({ condition: 'drained' })
    expect(await api<object>(`GET /api/channel/${id}`)).toMatchObject({ drained: true })
    await api(`PUT /api/channel/${id}/drain`, { on: false })
    expect(await answeredBy()).toBe('first')
  })
})

describe('answers below /api', () => {
  const ask = (path: string, headers: Record<string, string>): Promise<Response> =>
    fetch(`${fixture.gateway.url}${path}`, {
      headers: { authorization: AS_ROOT.accessToken, 'gateway-user': '1', ...headers },
    })
  const bodyOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer())

  test('a management response above 1 kB is compressed by br or gzip as the client accepts, a shorter one is not', async () => {
    const plain = await ask('/api/channel/health', { 'accept-encoding': 'identity' })
    const whole = await bodyOf(plain)
    expect(plain.headers.get('content-encoding')).toBeNull()
    expect(plain.headers.get('vary')).toBe('accept-encoding')
    // The client of these tests decodes what it asks for, so the bytes are compared by their length.
    for (const encoding of ['br', 'gzip']) {
      const answer = await ask('/api/channel/health', { 'accept-encoding': encoding })
      expect(answer.headers.get('content-encoding')).toBe(encoding)
      expect(Number(answer.headers.get('content-length'))).toBeLessThan(whole.length / 5)
      expect(JSON.parse((await bodyOf(answer)).toString())).toMatchObject({ success: true })
    }
    const short = await ask('/api/channel/health?nodes=some', { 'accept-encoding': 'gzip' })
    expect(short.headers.get('content-encoding')).toBeNull()
    const csv = await ask('/api/log/export', { 'accept-encoding': 'gzip' })
    expect(csv.headers.get('content-encoding')).toBe('gzip')
    expect((await bodyOf(csv)).toString()).toContain('model_name')
  })

  test('a repeated request for the health of channels is a 304 until an attempt or a test happens', async () => {
    const quiet = async (): Promise<boolean> => {
      const first = await ask('/api/channel/health', {})
      const tag = first.headers.get('etag') ?? ''
      await first.text()
      const second = await ask('/api/channel/health', { 'if-none-match': tag })
      const body = await second.text()
      return second.status === 304 && body === '' && second.headers.get('etag') === tag
    }
    // A minute may begin between the two requests.
    await expect.poll(quiet).toBe(true)
    const { headers } = await ask('/api/channel/health', {})
    await chat('good')
    const after = await ask('/api/channel/health', { 'if-none-match': headers.get('etag') ?? '' })
    expect(after.status).toBe(200)
  })

  test('the health of channels can be requested with the sums of the last hour, without a list of its minutes', async () => {
    const good = await itemOf('good', '?minutes=0')
    expect(good?.minutes).toBeUndefined()
    expect(good?.hour).toMatchObject({ requests: expect.any(Number), failed: 0, p50_ms: expect.any(Number) })
  })
})
