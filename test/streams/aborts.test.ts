import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contentFrame, DONE_FRAME, finishFrame } from '../fixtures/behaviour.ts'
import { send } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { untilOver } from '../fixtures/open-calls.ts'

/** The maximum number of events that are sent to a client that has left; the stream never ends by itself. */
const MOST_EVENTS = 1_000

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced(['m', 'drained']),
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('drained', upstream.baseUrl('drained'), { on_client_gone: 'drain' }),
    ],
    guards: [
      {
        name: 'words',
        do: 'flag',
        match: { regex: 'word[0-9]+' },
        where: ['output'],
        tokens: ['token-checked'],
      },
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('checked')]), user(3, 'bob', [token('bob')])],
  }))
})
afterAll(() => fixture?.close())

describe('a client that leaves', () => {
  test('the upstream is aborted when the client leaves in the middle of a stream, after at most a few more events', async () => {
    fixture.upstream.script('m', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 20 })
    const live = await fixture.live('ann', askStream('m'))
    await live.until(' word3')
    const request = fixture.upstream.only('m')
    const before = request.eventsSent
    live.abort()
    await request.ended
    expect(request.eventsSent - before).toBeLessThanOrEqual(MOST_EVENTS)
    expect(request.completed).toBe(false)
  })

  test('the upstream is aborted when the client leaves before the first byte', async () => {
    fixture.upstream.script('m', { kind: 'silence' })
    const sent = send(fixture.gateway.url, ask('m'), { key: 'ann' })
    await fixture.upstream.receivedAtLeast('m', 1)
    sent.destroy()
    await fixture.upstream.only('m').ended
  })

  test('no other channel is tried after the client has left', async () => {
    fixture.upstream.script('m', { kind: 'silence' })
    const sent = send(fixture.gateway.url, askStream('m'), { key: 'ann' })
    await fixture.upstream.receivedAtLeast('m', 1)
    sent.destroy()
    await fixture.upstream.only('m').ended
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(fixture.upstream.received('m')).toHaveLength(1)
  })

  test('the upstream calls of 20 streams end when their clients leave at once', async () => {
    fixture.upstream.script('m', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 10 })
    const lives = await Promise.all(Array.from({ length: 20 }, () => fixture.live('ann', askStream('m'))))
    await Promise.all(lives.map((live) => live.until(' word1')))
    for (const live of lives) live.abort()
    await Promise.all(fixture.upstream.received('m').map(({ ended }) => ended))
    expect(fixture.upstream.received('m')).toHaveLength(20)
  })
})

test('a channel with on_client_gone: drain reads the response to its end after the client has left', async () => {
  fixture.upstream.script('drained', { kind: 'stream', events: 12, paceMs: 20 })
  const live = await fixture.live('ann', askStream('drained'))
  await live.until(' word1')
  live.abort()
  await fixture.upstream.only('drained').ended
  expect(fixture.upstream.only('drained')).toMatchObject({ completed: true, eventsSent: 12 })
})

test('guards do not check what a stream brings after its client has left', async () => {
  const frames = Array.from({ length: 40 }, (_, n) => contentFrame(` word${n}`))
  const { promise: after, resolve: goOn } = Promise.withResolvers<void>()
  const rest = { after, frames: [...frames, finishFrame(), DONE_FRAME] }
  fixture.upstream.script('drained', { kind: 'stream', frames, paceMs: 20, rest })
  const live = await fixture.live('checked', askStream('drained'))
  await live.until(' word1')
  live.abort()
  // The gateway must notice this before the rest of the stream arrives: at the next event that it sends.
  await untilOver(fixture.gateway.url, 0)
  goOn()
  await fixture.upstream.only('drained').ended
  const database = databaseOf(fixture.gateway.dataDir)
  const verdicts = (): string => {
    const row = database.usageOf(String(live.headers['x-request-id'])) as unknown
    return String((row as { readonly guards?: string } | undefined)?.guards)
  }
  await expect.poll(verdicts).toMatch(/^words=flagged;count=[0-9]+$/)
  expect(Number(verdicts().split('=').at(-1))).toBeLessThanOrEqual(frames.length)
})

test('no user has all places of responses that are read to their end after their clients have left', async () => {
  const { promise: after, resolve: goOn } = Promise.withResolvers<void>()
  const frames = Array.from({ length: 200 }, (_, n) => contentFrame(` word${n}`))
  const rest = { after, frames: [finishFrame(), DONE_FRAME] }
  fixture.upstream.script('drained', { kind: 'stream', frames, paceMs: 50, rest })
  const leave = async (key: string): Promise<void> => {
    const live = await fixture.live(key, askStream('drained'))
    await live.until(' word1')
    live.abort()
  }
  await Promise.all(Array.from({ length: 64 }, () => leave('ann')))
  await untilOver(fixture.gateway.url, 0)
  await leave('bob')
  await untilOver(fixture.gateway.url, 0)
  goOn()
  const requests = fixture.upstream.received('drained')
  await Promise.all(requests.map(({ ended }) => ended))
  expect(requests.at(-1)?.completed).toBe(true)
  expect(requests.filter(({ completed }) => completed)).toHaveLength(56 + 1)
})
