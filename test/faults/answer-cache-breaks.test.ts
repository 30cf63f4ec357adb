import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { contentFrame, DONE_FRAME, errorBody, finishFrame, usageText } from '../fixtures/behaviour.ts'
import { type FullResponse, open } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { wholeAnswer } from '../fixtures/ended-answers.ts'
import { untilOpen, untilOver } from '../fixtures/open-calls.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { byTier } from '../runner/tier.ts'

const MODELS = [
  'breaking',
  'begun',
  'drained',
  'ended',
  'endedforstreams',
  'refusing',
  'left',
  'early',
  'unread',
] as const
/** Ten prompt and five output tokens. */
const USAGE = usageText(10, 5)
const COST = 30
const CALLS = byTier(200, 1_000)

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, cache: { ttl: '10m' } },
    rate_limits: {},
    models: priced([...MODELS]),
    channels: MODELS.map((name) =>
      channel(name, upstream.baseUrl(name), name === 'drained' ? { on_client_gone: 'drain' } : {}),
    ),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())
// Tests count calls that are under way: those of the test before must have ended.
beforeEach(() => untilOver(fixture.gateway.url, 0))

const asked = (lane: string): number => fixture.upstream.received(lane).length
const isWhole = ({ text }: FullResponse): boolean => text.includes('[DONE]')
const many = <Result>(count: number, make: () => Promise<Result>): Promise<Result>[] =>
  Array.from({ length: count }, make)
/** What the calls of a model were charged. */
const chargesOf = (model: string): number[] =>
  databaseOf(fixture.gateway.dataDir)
    .usage()
    .filter((row) => row.model === model)
    .map(({ quota }) => quota)

describe(`a stream that breaks off while ${CALLS} equal calls wait for it`, () => {
  test('when a shared stream breaks, clients that received a part get an error, and the others share a second upstream call', async () => {
    const breaks = Promise.withResolvers<void>()
    fixture.upstream.script(
      'breaking',
      { kind: 'stream', events: 3, word: 'lost ', endsAfter: breaks.promise, ending: 'reset' },
      { kind: 'whole', content: 'found', usage: USAGE },
    )
    const first = await open(fixture.gateway.url, askStream('breaking'), { key: 'ann' })
    await first.until('lost ')
    const streams = await Promise.all(
      many(20, () => open(fixture.gateway.url, askStream('breaking'), { key: 'ann' })),
    )
    for (const one of streams) await one.until('lost ')
    const whole = many(CALLS - 21, () => fixture.chat('ann', ask('breaking')))
    await untilOpen(fixture.gateway.url, CALLS)
    breaks.resolve()
    for (const one of [first, ...streams]) {
      const end = await one.end()
      expect(end.broken || !isWhole(end)).toBe(true)
      expect(end.text).not.toContain('found')
    }
    const answers = await Promise.all(whole)
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(answers[0]?.json().choices[0]?.message.content).toBe('found')
    expect(asked('breaking')).toBe(2)
    await expect.poll(() => chargesOf('breaking').length).toBe(CALLS)
    // One charge for what had arrived of the first call, and one for the second.
    expect(chargesOf('breaking').filter((quota) => quota > 0)).toHaveLength(2)
    expect(chargesOf('breaking')).toContain(COST)
  })

  test('a stream that ends with an error is neither given nor charged to the calls that wait for its end, because hits cost something', async () => {
    const breaks = Promise.withResolvers<void>()
    const costly = await startFixture((upstream) => ({
      options: { retries: 0, cache: { ttl: '10m', price: 1 } },
      rate_limits: {},
      models: priced(['failing']),
      channels: [channel('failing', upstream.baseUrl('failing'))],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }))
    onTestFinished(() => costly.close())
    const { gateway, upstream } = costly
    upstream.script(
      'failing',
      { kind: 'stream', events: 3, word: 'lost ', endsAfter: breaks.promise, ending: 'error' },
      { kind: 'stream', events: 3, word: 'found ', usage: USAGE },
    )
    const first = await open(gateway.url, askStream('failing'), { key: 'ann' })
    await first.until('lost ')
    const waiting = many(10, async () =>
      (await open(gateway.url, askStream('failing'), { key: 'ann' })).end(),
    )
    await untilOpen(gateway.url, 11)
    breaks.resolve()
    expect(isWhole(await first.end())).toBe(false)
    const answers = await Promise.all(waiting)
    expect(answers.map((one) => [isWhole(one), one.text.includes('lost ')])).toEqual(
      answers.map(() => [true, false]),
    )
    expect(upstream.received('failing')).toHaveLength(2)
    const charges = (): number[] =>
      databaseOf(gateway.dataDir)
        .usage()
        .map(({ quota }) => quota)
    // The calls that waited pay what the second call cost.
    await expect.poll(() => charges().filter((quota) => quota === COST).length).toBe(10)
    expect(charges()).toHaveLength(11)
  })

  test.each([
    ['whole answer', 'ended', ask],
    ['stream', 'endedforstreams', askStream],
  ] as const)(
    'a whole answer that ended with a failure is not given to the calls that wait for it: one of them is made again, if they want a %s',
    async (_, model, asking) => {
      const ends = Promise.withResolvers<void>()
      const failed = wholeAnswer('chat', { text: 'lost', reason: 'network_error' })
      fixture.upstream.script(
        model,
        { kind: 'whole', body: failed, after: ends.promise },
        { kind: 'whole', content: 'found', usage: USAGE },
      )
      const first = fixture.chat('ann', ask(model))
      await fixture.upstream.receivedAtLeast(model, 1)
      const others = many(3, () => fixture.chat('ann', asking(model)))
      await untilOpen(fixture.gateway.url, 4)
      ends.resolve()
      expect((await first).text).toBe(failed)
      for (const { text } of await Promise.all(others)) expect(text).toContain('found')
      expect(asked(model)).toBe(2)
    },
  )

  test('equal calls do not wait for a broken stream, even if its first client has not read it', async () => {
    const breaks = Promise.withResolvers<void>()
    fixture.upstream.script(
      'unread',
      {
        kind: 'stream',
        events: 40,
        word: 'lost '.repeat(50_000),
        endsAfter: breaks.promise,
        ending: 'reset',
      },
      { kind: 'whole', content: 'found', usage: USAGE },
    )
    const first = request(`${fixture.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      agent: false,
      headers: { authorization: 'Bearer sk-ann', 'content-type': 'application/json' },
    })
    first.on('error', () => {})
    // Nobody listens to its data.
    first.on('response', (response) => response.on('error', () => {}))
    first.end(JSON.stringify(askStream('unread')))
    await fixture.upstream.receivedAtLeast('unread', 1)
    await fixture.upstream.only('unread').sentAtLeast(40)
    const others = many(50, () => fixture.chat('ann', ask('unread')))
    await untilOpen(fixture.gateway.url, 51)
    breaks.resolve()
    const answers = await Promise.all([...others, fixture.chat('ann', ask('unread'))])
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(answers[0]?.json().choices[0]?.message.content).toBe('found')
    expect(asked('unread')).toBe(2)
    first.destroy()
  })

  test('an equal call after a stream that broke is sent upstream, and gets none of the text of the broken stream', async () => {
    fixture.upstream.script(
      'begun',
      { kind: 'stream', events: 3, word: 'lost ', ending: 'reset' },
      { kind: 'stream', events: 3, word: 'found ', usage: USAGE },
    )
    expect(isWhole(await fixture.chat('ann', askStream('begun')))).toBe(false)
    const next = await fixture.chat('ann', askStream('begun'))
    expect([next.headers['x-gateway-cache'], isWhole(next)]).toEqual(['miss', true])
    expect(next.text).not.toContain('lost')
  })
})

test("50 equal simultaneous calls to an upstream that refuses them cause three upstream calls, and all get the upstream's error", async () => {
  const release = Promise.withResolvers<void>()
  const refusal = { kind: 'status', status: 400, body: errorBody('never this') } as const
  fixture.upstream.script('refusing', { ...refusal, after: release.promise }, refusal, refusal)
  const calls = many(50, () => fixture.chat('ann', ask('refusing')))
  await untilOpen(fixture.gateway.url, 50)
  release.resolve()
  const answers = await Promise.all(calls)
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([400]))
  for (const { text } of answers) expect(text).toContain('never this')
  expect(asked('refusing')).toBe(3)
  expect(chargesOf('refusing').filter((quota) => quota > 0)).toEqual([])
})

describe(`${CALLS} equal calls whose first client leaves`, () => {
  test('when the client of the first of several equal calls leaves in mid-stream, the other clients get the rest of its stream', async () => {
    const release = Promise.withResolvers<void>()
    fixture.upstream.script('left', { kind: 'stream', events: 3, endsAfter: release.promise, usage: USAGE })
    const first = await open(fixture.gateway.url, askStream('left'), { key: 'ann' })
    await first.until('word')
    const streams = many(CALLS / 2 - 1, () => fixture.chat('ann', askStream('left')))
    const whole = many(CALLS / 2, () => fixture.chat('ann', ask('left')))
    await untilOpen(fixture.gateway.url, CALLS)
    first.abort()
    await sleep(200)
    release.resolve()
    const answers = await Promise.all([...streams, ...whole])
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(2)
    expect(answers.slice(0, CALLS / 2 - 1).every(isWhole)).toBe(true)
    expect(asked('left')).toBe(1)
    await expect.poll(() => chargesOf('left').length).toBe(CALLS)
    expect(chargesOf('left').filter((quota) => quota > 0)).toEqual([COST])
  })

  test('when the client of the first of several equal calls leaves before the answer, its upstream call continues for the rest', async () => {
    const release = Promise.withResolvers<void>()
    fixture.upstream.script('early', { kind: 'whole', usage: USAGE, after: release.promise })
    const leaving = new AbortController()
    const first = fetch(`${fixture.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-ann', 'content-type': 'application/json' },
      body: JSON.stringify(ask('early')),
      signal: leaving.signal,
    }).catch(() => 'gone')
    await fixture.upstream.receivedAtLeast('early', 1)
    const others = many(CALLS - 1, () => fixture.chat('ann', ask('early')))
    await untilOpen(fixture.gateway.url, CALLS)
    leaving.abort()
    expect(await first).toBe('gone')
    await sleep(200)
    release.resolve()
    const answers = await Promise.all(others)
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(answers[0]?.status).toBe(200)
    expect(asked('early')).toBe(1)
    await expect.poll(() => chargesOf('early').filter((quota) => quota > 0)).toEqual([COST])
  })
})

test('an equal call after all clients of a stream have left is sent upstream, and does not wait for the rest, which is read for its charge', async () => {
  const read = Promise.withResolvers<void>()
  const frames = Array.from({ length: 40 }, () => contentFrame('lost '))
  fixture.upstream.script(
    'drained',
    {
      kind: 'stream',
      frames,
      paceMs: 20,
      rest: { after: read.promise, frames: [finishFrame(), DONE_FRAME] },
    },
    { kind: 'stream', events: 3, word: 'found ', usage: USAGE },
  )
  const first = await open(fixture.gateway.url, askStream('drained'), { key: 'ann' })
  await first.until('lost ')
  first.abort()
  // The gateway notices this at the next event that it sends.
  await untilOver(fixture.gateway.url, 0)
  const next = await fixture.chat('ann', askStream('drained'))
  expect([isWhole(next), next.text.includes('lost')]).toEqual([true, false])
  expect(fixture.upstream.received('drained').map(({ endedAt }) => endedAt !== undefined)).toEqual([
    false,
    true,
  ])
  read.resolve()
  await expect.poll(() => chargesOf('drained').length).toBe(2)
})
