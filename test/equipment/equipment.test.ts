import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { completionText, DONE_FRAME, usageText } from './behaviour.ts'
import { call, events, open, streamedContent } from './client.ts'
import { type ScriptedUpstream, startUpstream } from './scripted-upstream.ts'

let upstream: ScriptedUpstream
beforeAll(async () => {
  upstream = await startUpstream()
})
afterAll(() => upstream.stop())

const STREAM = { model: 'm', stream: true, stream_options: { include_usage: true } }
const at = (lane: string): [string, { path: string; key: string }] => [
  `http://127.0.0.1:${upstream.port}`,
  { path: `/${lane}/v1/chat/completions`, key: 'client' },
]
const ask = (lane: string, body: object = { model: 'm' }) => call(at(lane)[0], body, at(lane)[1])
const stream = (lane: string) => open(at(lane)[0], STREAM, at(lane)[1])

describe('the scripted upstream', () => {
  test('the scripted upstream answers whole and records requests', async () => {
    upstream.script('whole', { kind: 'whole', content: 'hi', usage: usageText(3, 1) })
    const answer = await ask('whole')
    expect(answer.text).toBe(completionText('hi', usageText(3, 1), 'm'))
    const got = upstream.only('whole')
    await got.ended
    expect(got).toMatchObject({ path: '/v1/chat/completions', text: '{"model":"m"}', completed: true })
    expect(got.headers.authorization).toBe('Bearer sk-client')
  })

  test('the scripted upstream streams the given number of events, and usage where requested', async () => {
    upstream.script('stream', { kind: 'stream', events: 3, word: 'x' })
    const answer = await (await stream('stream')).end()
    expect(streamedContent(answer.text)).toBe('xxx')
    expect(events(answer.text).at(-2)).toContain('"choices":[],"usage":{"prompt_tokens":10')
    expect(answer.text.endsWith(DONE_FRAME)).toBe(true)
    expect(upstream.only('stream').eventsSent).toBe(3)
  })

  test('the scripted upstream gives each request the next behaviour, and repeats the last', async () => {
    upstream.script('turns', { kind: 'status', status: 503 }, { kind: 'whole' })
    expect([(await ask('turns')).status, (await ask('turns')).status, (await ask('turns')).status]).toEqual([
      503, 200, 200,
    ])
  })

  test.each(['reset', 'close'] as const)(
    'the scripted upstream breaks a stream by %s after its events',
    async (ending) => {
      upstream.script(`broken-${ending}`, { kind: 'stream', events: 2, ending })
      const answer = await (await stream(`broken-${ending}`)).end()
      expect(answer.broken).toBe(true)
      expect(events(answer.text)).toHaveLength(3)
    },
  )

  test('the scripted upstream notices that the client hung up, and stops', async () => {
    upstream.script('endless', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 5 })
    const live = await stream('endless')
    await upstream.only('endless').sentAtLeast(3)
    live.abort()
    await upstream.only('endless').ended
    const { eventsSent, completed } = upstream.only('endless')
    expect(completed).toBe(false)
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(upstream.only('endless').eventsSent).toBeLessThanOrEqual(eventsSent + 1)
  })

  test('the scripted upstream can stay silent, drop connections, and send raw bytes', async () => {
    upstream.script('drop', { kind: 'drop' })
    await expect(ask('drop')).rejects.toThrow(/hang up|ECONNRESET/)
    upstream.script('raw', {
      kind: 'raw',
      bytes: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok',
      ending: 'close',
    })
    expect((await ask('raw')).text).toBe('ok')
    upstream.script('silence', { kind: 'silence' })
    const waiting = open(at('silence')[0], {}, at('silence')[1])
    await upstream.receivedAtLeast('silence', 1)
    const first = await Promise.race([
      waiting.catch(() => 'answered'),
      new Promise((r) => setTimeout(r, 100, 'silent')),
    ])
    expect(first).toBe('silent')
  })

  test('the scripted upstream holds a response back until its promise settles', async () => {
    let release: (value?: unknown) => void = () => {}
    upstream.script('held', { kind: 'whole', after: new Promise((resolve) => (release = resolve)) })
    const answer = ask('held')
    await upstream.receivedAtLeast('held', 1)
    expect(upstream.only('held').endedAt).toBeUndefined()
    release()
    expect((await answer).status).toBe(200)
  })
})
