import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { completionText, contentFrame, DONE_FRAME, finishFrame, usageText } from '../fixtures/behaviour.ts'
import { call, open } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { contentOf } from '../fixtures/content.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, formCall } from '../fixtures/form.ts'
import { geminiFrames } from '../fixtures/gemini-behaviour.ts'

const OPERATOR = { id: 1, accessToken: 'root-access-token' }
const MAIL = 'ann.lee@example.com'
const KEY = 'AKIAIOSFODNN7EXAMPLE'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    rate_limits: { global: { requests: 0 } },
    content_log: { what: 'redacted', readers: 100 },
    models: priced(['m', 'g', 'scribe']),
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('g', upstream.baseUrl('g'), { protocol: 'gemini' }),
      channel('scribe', upstream.baseUrl('scribe')),
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('little', { content_log: { what: 'metadata' } })])],
  }))
})
afterAll(() => fixture?.close())

const url = (): string => fixture.gateway.url

async function keptOf(answer: { readonly headers: Readonly<Record<string, unknown>> }) {
  return (await contentOf(url(), OPERATOR, String(answer.headers['x-request-id']))).parts
}

describe('what is found at level redacted', () => {
  test('the stored arguments and results of tools have no key or address, also after an escaped line break', async () => {
    const text = JSON.stringify({ text: `first\n${KEY}\n${MAIL}` })
    const calls = [{ id: 'c', type: 'function', function: { name: 'save', arguments: text } }]
    const answer = JSON.parse(completionText('', usageText(3, 2))) as { choices: { message: object }[] }
    answer.choices[0]!.message = { role: 'assistant', content: null, tool_calls: calls }
    fixture.upstream.script('m', { kind: 'whole', body: JSON.stringify(answer) })
    const messages = [
      { role: 'user', content: 'save it' },
      { role: 'assistant', content: null, tool_calls: calls },
      { role: 'tool', tool_call_id: 'c', content: text },
    ]
    const given = await fixture.chat('ann', { model: 'm', messages })
    expect(given.status, given.text).toBe(200)
    const parts = await keptOf(given)
    const kept = JSON.stringify({ text: 'first\n[REDACTED]\n[REDACTED]' })
    const [, , result] = (
      JSON.parse(parts.request_received?.text ?? '') as { messages: { content: string }[] }
    ).messages
    expect(result?.content).toBe(kept)
    expect(parts.answer_received?.text).toContain(`"arguments":${JSON.stringify(kept)}`)
    for (const found of [KEY, MAIL]) expect(JSON.stringify(parts)).not.toContain(found)
  })

  test('the conversation of redacted content is redacted too, also where pieces of a stream are joined', async () => {
    const frames = [contentFrame('to ann.lee@exa'), contentFrame('mple.com now'), finishFrame(), DONE_FRAME]
    fixture.upstream.script('m', { kind: 'stream', frames })
    const messages = [{ role: 'user', content: [{ type: 'text', text: `it is ${KEY}` }] }]
    const answer = await fixture.chat('ann', { model: 'm', messages, stream: true })
    const content = await contentOf(url(), OPERATOR, String(answer.headers['x-request-id']))
    expect(content.conversation).toEqual([
      { role: 'user', parts: [{ kind: 'text', text: 'it is [REDACTED]' }] },
      { role: 'assistant', parts: [{ kind: 'text', text: 'to [REDACTED] now' }] },
    ])
    for (const found of [KEY, 'ann.lee', 'mple.com']) expect(JSON.stringify(content)).not.toContain(found)
  })

  test('a match that a stream divides is redacted, whatever comments and events without data are between', async () => {
    const frames = [
      contentFrame('to ann.lee@exa'),
      `: about ${MAIL}\n\n`,
      'data:\n\n',
      contentFrame('mple.com now'),
      finishFrame(),
      DONE_FRAME,
    ]
    fixture.upstream.script('m', { kind: 'stream', frames })
    const parts = JSON.stringify(await keptOf(await fixture.chat('ann', askStream('m'))))
    expect(parts).toContain('to [REDACTED]')
    expect(parts).toContain(': about [REDACTED]')
    for (const piece of ['ann.lee', 'mple.com']) expect(parts).not.toContain(piece)
  })

  test('a Gemini stream as a list that its client left is redacted over the borders of its elements', async () => {
    const frames = geminiFrames({ text: `xx ${MAIL} ` }).slice(0, 1)
    const [first = ''] = frames
    const piece = (text: string): string => first.replace('"xx "', JSON.stringify(text))
    fixture.upstream.script('g', {
      kind: 'stream',
      frames: [piece('to ann.lee@exa'), piece('mple.com now'), ...Array<string>(400).fill(piece('word '))],
      drip: true,
      paceMs: 20,
    })
    const live = await open(
      url(),
      { contents: [{ parts: [{ text: 'hi' }] }] },
      {
        path: '/v1beta/models/g:streamGenerateContent',
        headers: { 'x-goog-api-key': 'sk-ann' },
      },
    )
    await live.until('word ')
    live.abort()
    const parts = await keptOf(live)
    expect(parts.answer_sent?.text).toMatch(/^\[/)
    for (const part of [parts.answer_received, parts.answer_sent]) {
      expect(part?.text).toContain('to [REDACTED]')
      expect(part?.text).not.toMatch(/ann\.lee|mple\.com/)
    }
  })

  test('a form without files is redacted as a whole, also if a line of it looks like an event', async () => {
    fixture.upstream.script('scribe', { kind: 'whole', body: '{"text":"heard"}' })
    const form = formBytes([
      { name: 'model', content: 'scribe' },
      { name: 'prompt', content: `data: 1\nspelled ${MAIL}` },
      { name: 'file', content: 'RIFF', filename: 'a.wav' },
    ])
    const answer = await call(url(), form, formCall('/v1/audio/transcriptions', 'ann', form))
    expect(answer.status, answer.text).toBe(200)
    const { request_received: request } = await keptOf(answer)
    expect(request?.text).toBe(String(form).replace(MAIL, '[REDACTED]'))
  })

  test('a transcript is redacted over the borders of its segments, and an answer keeps no log probabilities that spell a match', async () => {
    const segments = ['pay 4111 1111', ' 1111 1111 now'].map((text, id) => ({ id, text }))
    fixture.upstream.script('scribe', { kind: 'whole', body: JSON.stringify({ text: 'pay it', segments }) })
    const form = formBytes([
      { name: 'model', content: 'scribe' },
      { name: 'file', content: 'RIFF', filename: 'a.wav' },
    ])
    const transcript = await keptOf(
      await call(url(), form, formCall('/v1/audio/transcriptions', 'ann', form)),
    )
    expect(transcript.answer_received?.text).not.toContain('1111')
    const answer = JSON.parse(completionText(MAIL, usageText(3, 2))) as { choices: Record<string, unknown>[] }
    answer.choices[0]!['logprobs'] = {
      content: ['ann', '.lee@exam', 'ple.com'].map((text) => ({ token: text })),
    }
    fixture.upstream.script('m', { kind: 'whole', body: JSON.stringify(answer) })
    const parts = await keptOf(await fixture.chat('ann', ask('m', { logprobs: true })))
    expect(parts.answer_received?.text).toContain('"logprobs":null')
    expect(JSON.stringify(parts)).not.toMatch(/\.lee|ple\.com/)
  })
})

const CANARY = 'a canary sentence'
const chatWith = (fields: object): object => ask('m', fields as Record<string, unknown>)

describe('what is kept at level metadata', () => {
  test.each([
    [
      'the role of a chat message',
      '/v1/chat/completions',
      { model: 'm', messages: [{ role: CANARY, content: 'x' }] },
    ],
    [
      'the role of a Gemini content',
      '/v1beta/models/g:generateContent',
      { contents: [{ role: CANARY, parts: [{ text: 'x' }] }] },
    ],
    ['the type of a tool', '/v1/chat/completions', chatWith({ tools: [{ type: CANARY }] })],
    [
      'the name of a tool',
      '/v1/chat/completions',
      chatWith({ tools: [{ type: 'function', function: { name: CANARY } }] }),
    ],
    [
      'parameters',
      '/v1/chat/completions',
      chatWith({
        size: CANARY,
        verbosity: CANARY,
        tool_choice: CANARY,
        truncation: CANARY,
        service_tier: CANARY,
        reasoning_effort: CANARY,
        stop: CANARY,
        user: CANARY,
        metadata: { note: CANARY },
        [CANARY]: 1,
      }),
    ],
    [
      'descriptions and schemas of tools',
      '/v1/chat/completions',
      chatWith({
        tools: [
          {
            type: 'function',
            function: {
              name: 'save',
              description: CANARY,
              parameters: { properties: { to: { description: CANARY, enum: [CANARY] } } },
            },
          },
        ],
      }),
    ],
    [
      'the format of speech',
      '/v1/audio/speech',
      { model: 'scribe', input: 'x', voice: 'alloy', response_format: CANARY },
    ],
  ])('no sentence is stored that stands in %s', async (_, path, body) => {
    const error = JSON.stringify({
      error: { message: CANARY, type: CANARY, code: CANARY },
      stop_reason: CANARY,
    })
    for (const lane of ['m', 'g', 'scribe'])
      fixture.upstream.decide(lane, () => ({ kind: 'status', status: 400, body: error }))
    const answer = await call(url(), body, { path, key: 'little' })
    const parts = await keptOf(answer)
    expect(parts.request_received?.bytes).toBe(JSON.stringify(body).length)
    expect(JSON.stringify(parts)).not.toContain('canary')
  })
})
