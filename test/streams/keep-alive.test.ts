import { GoogleGenAI } from '@google/genai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkResponsesStream } from '../conversion/responses-grammar.ts'
import { contentFrame, finishFrame, roleFrame } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { geminiFrames } from '../fixtures/gemini-behaviour.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { frames, upstreamNamed } from '../fixtures/responses-behaviour.ts'
import { watchedFetch } from '../fixtures/watched-fetch.ts'

/** A gateway that regards a stream as silent after one second already. */
const copy = await patchedProgram([
  { file: 'src/call/streamed-response.ts', text: 'MAX_SILENCE_MS = 15_000', by: 'MAX_SILENCE_MS = 500' },
])
let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture(
    (upstream) => ({
      models: priced(['chat', 'responses', 'gemini']),
      channels: [
        channel('chat', upstream.baseUrl('chat')),
        channel('responses', upstream.baseUrl('responses'), { protocol: 'responses' }),
        channel('gemini', upstream.baseUrl('gemini'), { protocol: 'gemini' }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { root: copy.root },
  )
})
afterAll(async () => {
  await fixture?.close()
  copy.discard()
})

interface Silent {
  readonly before: readonly string[]
  readonly after: readonly string[]
  /** The text that the client must receive in between. */
  readonly until: string
}

/** The stream for a responses client, from an upstream that is silent until the client received a text. */
async function told(model: string, { before, after, until }: Silent): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const rest = { after: promise, frames: after }
  fixture.upstream.script(model, { kind: 'stream', frames: before, rest, ending: 'no done' })
  const live = await fixture.live('ann', { model, input: 'hi', stream: true }, { path: '/v1/responses' })
  await live.until(until)
  resolve()
  return (await live.end()).text
}

const inProgress = (number: number): string => `"type":"response.in_progress","sequence_number":${number},`

test('a converted responses stream repeats response.in_progress during silence, numbered like every event', async () => {
  const text = await told('chat', {
    // In one piece, so that no silence on a busy machine comes between them.
    before: [roleFrame() + contentFrame('Hi')],
    after: [contentFrame(' there'), finishFrame()],
    until: inProgress(6),
  })
  checkResponsesStream(text, true)
  expect(text).toContain(inProgress(5))
})

test('a converted responses stream begins even if the upstream sends only comments', async () => {
  const text = await told('chat', {
    before: [': keep-alive\n\n'],
    after: [roleFrame(), contentFrame('Hi'), finishFrame()],
    until: inProgress(2),
  })
  checkResponsesStream(text, true)
  expect(text.split('event: response.created')).toHaveLength(2)
})

test("a native responses stream repeats response.in_progress during silence, and keeps the upstream's events unchanged", async () => {
  const all = frames({ text: 'Hello there.' })
  const text = await told('responses', {
    // In one piece each, so that there is no other silence on a busy machine.
    before: [`${all.slice(0, 5).join('')}: comment\n\n`],
    after: [all.slice(5).join('')],
    until: inProgress(4),
  })
  const events = upstreamNamed(text).split(/(?<=\n\n)/)
  const added = events.filter((event) => event.includes(inProgress(4)))
  expect(added.length).toBeGreaterThan(0)
  expect(JSON.parse(added[0]?.slice(added[0].indexOf('{')) ?? '')).toMatchObject({
    response: { id: 'resp_upstream', object: 'response', status: 'in_progress', output: [] },
  })
  const own = events.filter((event) => !added.includes(event) && !event.startsWith(':'))
  expect(own.join('')).toBe(all.join(''))
})

test('a messages client gets a ping event while its upstream is silent', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const rest = { after: promise, frames: [finishFrame()] }
  fixture.upstream.script('chat', { kind: 'stream', frames: [roleFrame(), contentFrame('Hi')], rest })
  const body = { model: 'chat', stream: true, max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }
  const live = await fixture.live('ann', body, { path: '/v1/messages' })
  await live.until('event: ping')
  resolve()
  expect((await live.end()).text).toContain('event: message_stop')
})

/** Streams to a Gemini client, from an upstream that is silent until the client received a comment. */
const GEMINI = [
  ['gemini', geminiFrames({ text: 'Hello there.' })],
  ['chat', [roleFrame(), contentFrame('Hel'), contentFrame('lo there.'), finishFrame()]],
] as const
const COMMENT = ': keep-alive\r\n\r\n'

test.each(GEMINI)(
  'a Gemini client gets a comment between events while its upstream is silent, from a channel of %s',
  async (model, all) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const rest = { after: promise, frames: all.slice(2) }
    fixture.upstream.script(model, { kind: 'stream', frames: all.slice(0, 2), rest, ending: 'no done' })
    const path = `/v1beta/models/${model}:streamGenerateContent?alt=sse`
    const live = await fixture.live('ann', { contents: [{ parts: [{ text: 'hi' }] }] }, { path })
    await live.until(COMMENT)
    resolve()
    const { text } = await live.end()
    expect(text).toMatch(/^data: /)
    const own = text.replaceAll(COMMENT, '')
    if (model === 'gemini') expect(own).toBe(all.join(''))
    expect(own.split('\r\n\r\n').slice(0, -1)).toSatisfy((events: string[]) =>
      events.every((event) => event.startsWith('data: {') && JSON.parse(event.slice(6))),
    )
  },
)

test.each(GEMINI)(
  "Google's client ignores the comments that keep a silent stream alive, from a channel of %s",
  async (model, all) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const rest = { after: promise, frames: all.slice(2) }
    fixture.upstream.script(model, { kind: 'stream', frames: all.slice(0, 2), rest, ending: 'no done' })
    const client = new GoogleGenAI({
      apiKey: 'sk-ann',
      httpOptions: {
        baseUrl: fixture.gateway.url,
        fetch: watchedFetch((read) => read.includes(COMMENT) && resolve()),
      },
    })
    let text = ''
    let reason: unknown
    for await (const chunk of await client.models.generateContentStream({ model, contents: 'hi' })) {
      text += chunk.text ?? ''
      reason = chunk.candidates?.[0]?.finishReason ?? reason
    }
    expect([text, reason]).toEqual(['Hello there.', 'STOP'])
  },
)
