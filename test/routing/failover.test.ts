import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Behaviour,
  contentFrame,
  DONE_FRAME,
  errorBody,
  roleFrame,
  usageFrame,
  usageText,
} from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const status = (code: number): Behaviour => ({
  kind: 'status',
  status: code,
  body: errorBody(`status ${code}`),
})
/** Failures after which the next channel is tried. */
const RETRIED: [string, Behaviour][] = [
  ['r404', status(404)],
  ['r429', status(429)],
  ['r500', status(500)],
  ['r502', status(502)],
  ['r503', status(503)],
  ['r529', status(529)],
  ['rdrop', { kind: 'drop' }],
  ['rreset', { kind: 'raw', bytes: '', ending: 'reset' }],
  ['rhalfhead', { kind: 'raw', bytes: 'HTTP/1.1 200 OK\r\ncontent-', ending: 'close' }],
  ['rnothttp', { kind: 'raw', bytes: 'SSH-2.0-OpenSSH_9.2\r\n', ending: 'close' }],
  ['rhtml', { kind: 'whole', body: '<html>canary</html>', headers: { 'content-type': 'text/html' } }],
  ['rsilent', { kind: 'silence' }],
]
/** Statuses that are the client's own fault, so that no other channel is tried. */
const FINAL = [400, 409, 413, 422]
const STREAM_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n'
/** Streams that break after their 200, before the first event. */
const NEVER_BEGUN: [string, Behaviour][] = [
  ['sclosed', { kind: 'raw', bytes: STREAM_HEAD, ending: 'close' }],
  ['sreset', { kind: 'raw', bytes: STREAM_HEAD, ending: 'reset' }],
  ['shalf', { kind: 'raw', bytes: `${STREAM_HEAD}data: {"id":"chat`, ending: 'close' }],
  ['serror', { kind: 'stream', frames: [`data: ${errorBody('no', 'server_error')}\n\n`], ending: 'no done' }],
]
/** Streams that bring their end marker, but no choice. */
const EMPTY: [string, string[]][] = [
  ['edone', [DONE_FRAME]],
  ['ecomment', [`: hm\n\n${DONE_FRAME}`]],
  ['eusage', [usageFrame(usageText(9, 0)), DONE_FRAME]],
]
const MODELS = [
  ...RETRIED.map(([name]) => name),
  ...FINAL.map((code) => `f${code}`),
  ...NEVER_BEGUN.map(([name]) => name),
  ...EMPTY.map(([name]) => name),
  'many',
  'dead',
  'begun',
  'stale',
]

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 2 },
    models: priced([...MODELS, 'refusedport']),
    channels: [
      ...MODELS.map((model) =>
        channel(model, upstream.baseUrl(model), {
          priority: 5,
          // The other models may answer late on a busy machine, so only this one has a short timeout.
          ...(model === 'rsilent' && { timeouts: { first_byte: '500ms' } }),
        }),
      ),
      // Nothing listens on port 1.
      channel('refusedport', 'http://127.0.0.1:1/v1', { priority: 5 }),
      channel('spare', upstream.baseUrl('spare'), { models: [...MODELS, 'refusedport'], priority: 1 }),
      ...[4, 3, 2].map((priority) =>
        channel(`many-${priority}`, upstream.baseUrl(`many-${priority}`), { models: ['many'], priority }),
      ),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

describe('failures before the first byte', () => {
  test.each(RETRIED)('the next channel is tried after %s', async (model, behaviour) => {
    fixture.upstream.script(model, behaviour)
    fixture.upstream.script('spare', { kind: 'whole', content: 'from the spare' })
    const answer = await fixture.chat('ann', ask(model))
    expect(answer.status, answer.text).toBe(200)
    expect(answer.json().choices[0]?.message.content).toBe('from the spare')
    expect(fixture.upstream.received(model).length).toBeGreaterThan(0)
    expect(fixture.upstream.received('spare')).toHaveLength(1)
  })

  test('the next channel is tried after a refused connection', async () => {
    fixture.upstream.script('spare', { kind: 'whole' })
    expect((await fixture.chat('ann', ask('refusedport'))).status).toBe(200)
  })

  test('the next channel is tried when the first one fails before a stream begins', async () => {
    fixture.upstream.script('r503', status(503))
    fixture.upstream.script('spare', { kind: 'stream', events: 2 })
    const answer = await fixture.chat('ann', askStream('r503'))
    expect(answer.status).toBe(200)
    expect(answer.text).toContain('data: [DONE]')
  })

  test.each(NEVER_BEGUN)(
    'the next channel is tried after a stream that broke before its first event: %s',
    async (model, behaviour) => {
      fixture.upstream.script(model, behaviour)
      fixture.upstream.script('spare', { kind: 'stream', events: 2 })
      const answer = await fixture.chat('ann', askStream(model))
      expect(answer.status).toBe(200)
      expect(answer.text).toContain('data: [DONE]')
      expect(answer.text).not.toContain('error')
      expect(fixture.upstream.received(model)).toHaveLength(1)
      expect(fixture.upstream.received('spare')).toHaveLength(1)
    },
  )

  test.each([
    ['ends before its first event', []],
    ['brings an error and nothing else', [`data: ${errorBody('canary', 'server_error')}\n\n`]],
  ])('the next channel is tried after a stream that %s', async (_, frames) => {
    fixture.upstream.script('r503', { kind: 'stream', frames, ending: 'no done' })
    fixture.upstream.script('spare', { kind: 'stream', events: 2 })
    const answer = await fixture.chat('ann', askStream('r503'))
    expect(answer.status).toBe(200)
    expect(answer.text).toContain('word1')
    expect(answer.text).toContain('data: [DONE]')
    expect(answer.text).not.toContain('canary')
  })

  const comments = ': OPENROUTER PROCESSING\n\n'.repeat(3)
  const error = `data: ${errorBody('canary', 'server_error')}\n\n`
  test.each([
    ['and an error', [comments, error]],
    ['with line ends of another kind, and an error', [': hm\r\n\r\nretry: 10\r\n\r\n', error]],
    ['and breaks', [comments]],
  ])('the next channel is tried after a stream with comments %s', async (_, frames) => {
    fixture.upstream.script('r503', { kind: 'stream', frames, paceMs: 50, ending: 'no done' })
    fixture.upstream.script('spare', { kind: 'stream', events: 2 })
    const answer = await fixture.chat('ann', askStream('r503'))
    expect(answer.status).toBe(200)
    expect(answer.text).toContain('data: [DONE]')
    expect(answer.text).not.toMatch(/canary|OPENROUTER|: hm/)
  })

  test.each(EMPTY)(
    'the next channel is tried after a stream without an answer: %s',
    async (model, frames) => {
      for (const path of ['/v1/chat/completions', '/v1/completions']) {
        fixture.upstream.script(model, { kind: 'stream', frames, ending: 'no done' })
        fixture.upstream.script('spare', { kind: 'stream', events: 2 })
        const answer = await fixture.chat('ann', askStream(model, { prompt: 'hi' }), { path })
        expect(fixture.upstream.received(model)).toHaveLength(1)
        expect(answer.text).toContain('word1')
        expect(answer.text).not.toContain(': hm')
      }
    },
  )

  test('the recorded time to the first byte is that of the delivered response, without failed attempts', async () => {
    const { promise: after, resolve: answerNow } = Promise.withResolvers<void>()
    const frames = [`data: ${errorBody('no', 'server_error')}\n\n`]
    fixture.upstream.script('r503', { kind: 'stream', frames, ending: 'no done' })
    fixture.upstream.script('spare', { kind: 'stream', events: 2, after })
    const call = fixture.chat('ann', askStream('r503'))
    await fixture.upstream.receivedAtLeast('spare', 1)
    const askedMs = performance.now()
    await sleep(300)
    const waitedMs = performance.now() - askedMs
    answerNow()
    const { headers } = await call
    const row = databaseOf(fixture.gateway.dataDir).usageOf(String(headers['x-request-id']))
    expect(row?.first_byte_ms).toBeGreaterThanOrEqual(Math.floor(waitedMs))
  })

  test("after a failure of a channel the next channel gets exactly the bytes of the client's request", async () => {
    fixture.upstream.script('r500', status(500))
    fixture.upstream.script('spare', { kind: 'whole' })
    const body = '{ "messages":[{"role":"user","content":"hi"}],"model":"r500", "seed": 9007199254740993 }'
    await fixture.chat('ann', body)
    expect(fixture.upstream.only('spare').text).toBe(body)
  })

  test('the next channel is tried as often as options.retries allows, and not more often', async () => {
    for (const lane of ['many', 'many-4', 'many-3', 'many-2', 'spare'])
      fixture.upstream.script(lane, status(503))
    const answer = await fixture.chat('ann', ask('many'))
    expect(answer.status).toBe(503)
    const tried = (lane: string): number => fixture.upstream.received(lane).length
    expect([tried('many'), tried('many-4'), tried('many-3'), tried('many-2'), tried('spare')]).toEqual([
      1, 1, 1, 0, 0,
    ])
  })
})

describe('no other channel is tried', () => {
  test.each(FINAL)(
    "no other channel is tried after an upstream error with status %i, which is the client's fault",
    async (code) => {
      fixture.upstream.script(`f${code}`, status(code))
      fixture.upstream.script('spare', { kind: 'whole' })
      const answer = await fixture.chat('ann', ask(`f${code}`))
      expect(answer.status).toBe(code)
      expect(fixture.upstream.received(`f${code}`)).toHaveLength(1)
      expect(fixture.upstream.received('spare')).toHaveLength(0)
    },
  )

  test('no other channel is tried once comments before the first event exceed the maximum that is held back', async () => {
    const frames = [`: ${'x'.repeat(1_048_576)}\n\n`, `data: ${errorBody('canary')}\n\n`]
    fixture.upstream.script('begun', { kind: 'stream', frames, paceMs: 50, ending: 'no done' })
    fixture.upstream.script('spare', { kind: 'stream' })
    const answer = await (await fixture.live('ann', askStream('begun'))).end()
    expect(answer.text).toBe(frames.join(''))
    expect(fixture.upstream.received('spare')).toHaveLength(0)
  })

  test('no other channel is tried after content was sent to the client', async () => {
    fixture.upstream.script('begun', {
      kind: 'stream',
      frames: [roleFrame(), contentFrame('begun')],
      ending: 'reset',
    })
    fixture.upstream.script('spare', { kind: 'stream' })
    const answer = await (await fixture.live('ann', askStream('begun'))).end()
    expect(answer.text).toContain('begun')
    expect(answer.text).not.toContain('[DONE]')
    expect(fixture.upstream.received('spare')).toHaveLength(0)
  })
})

test('a call succeeds even if the upstream has closed the kept connection that the call uses first', async () => {
  fixture.upstream.script('stale', { kind: 'drop', when: 'only if reused' })
  fixture.upstream.script('spare', { kind: 'whole' })
  for (let call = 0; call < 4; call++) expect((await fixture.chat('ann', ask('stale'))).status).toBe(200)
})
