import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, formCall, type Part, recordingParts, waveFile } from '../fixtures/form.ts'
import { answered, events, json } from '../fixtures/media-fixture.ts'
import { atNight } from '../runner/tier.ts'

const ACTIONS = ['block', 'redact', 'flag'] as const
const CODE = 'four two'
const match = { regex: ['four\\s+two', 'code-[0-9]+-x'] }

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: { ...priced(['m', 'rank']), pictures: { price: { image: { default: 0.02 } } } },
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('pictures', upstream.baseUrl('pictures')),
      channel('rank', upstream.baseUrl('rank'), { protocol: 'rerank' }),
    ],
    guards: [
      ...ACTIONS.map((action) => ({
        name: `${action}-output`,
        do: action,
        match,
        where: ['output'],
        tokens: [`token-${action}`],
      })),
      { name: 'swap', do: 'replace', match, where: ['input'], tokens: ['token-swap'] },
    ],
    users: [
      ROOT,
      user(
        2,
        'ann',
        [...ACTIONS, 'swap', 'plain'].map((name) => token(name)),
      ),
    ],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

function transcribe(
  key: string,
  behaviour: Behaviour,
  fields: Record<string, string> = {},
  path = '/v1/audio/transcriptions',
): Promise<FullResponse> {
  fixture.upstream.script('m', behaviour)
  const more = Object.entries(fields).map(([name, content]): Part => ({ name, content }))
  const body = formBytes(recordingParts('m', waveFile(1), more))
  return call(fixture.gateway.url, body, formCall(path, key, body))
}
const draw = (key: string, behaviour: Behaviour, fields: object = {}): Promise<FullResponse> => {
  fixture.upstream.script('pictures', behaviour)
  const body = { model: 'pictures', prompt: 'a circle', ...fields }
  return call(fixture.gateway.url, body, { path: '/v1/images/generations', key })
}
const rowOf = ({ headers }: FullResponse) => {
  const row = database.usageOf(String(headers['x-request-id'])) as unknown as Record<string, unknown>
  return { note: row['note'], guards: row['guards'], reason: row['reason'], quota: row['quota'] }
}
const verdictsOf = ({ headers }: FullResponse): unknown => headers['x-gateway-guards']
type Event = Readonly<Record<string, unknown>>
const eventsIn = ({ text }: FullResponse): Event[] =>
  text
    .split('\n\n')
    .flatMap((frame) => /^data: (.+)$/m.exec(frame)?.[1] ?? [])
    .filter((data) => data !== '[DONE]')
    .map((data) => JSON.parse(data) as Event)

const VERBOSE = {
  task: 'transcribe',
  duration: 2.5,
  text: `Say ${CODE} now.`,
  segments: [
    { id: 0, start: 0, end: 1, text: 'Say four', tokens: [1, 2, 3] },
    { id: 1, start: 1, end: 2.5, text: ' two now.', tokens: [4] },
  ],
  words: ['Say', 'four', 'two', 'now'].map((word, index) => ({ word, start: index, end: index + 1 })),
  logprobs: [{ token: 'four', logprob: -0.1 }],
}
const SRT =
  '1\r\n00:00:00,000 --> 00:00:01,000\r\nSay four\r\n\r\n2\r\n00:00:01,000 --> 00:00:02,500\r\ntwo now.\r\n'

describe.each(['/v1/audio/transcriptions', '/v1/audio/translations'])('a transcript of %s', (path) => {
  test('a guard redacts a match in the text, segments, words and log probabilities of a JSON transcript', async () => {
    const answer = await transcribe('redact', json(VERBOSE), { response_format: 'verbose_json' }, path)
    const { segments, words, ...rest } = JSON.parse(answer.text) as typeof VERBOSE
    expect(rest).toEqual({ task: 'transcribe', duration: 2.5, text: 'Say [REDACTED] now.', logprobs: [] })
    expect(segments.map((one) => [one.text, one.tokens])).toEqual([
      ['Say [REDACTED]', []],
      [' now.', []],
    ])
    expect(words.map(({ word }) => word)).toEqual(['Say', '[REDACTED]', '', 'now'])
    expect(verdictsOf(answer)).toBe('redact-output=redacted;count=1')
    expect(rowOf(answer)).toMatchObject({ guards: 'redact-output=redacted;count=1', note: '' })
  })

  test('a JSON transcript that a guard blocks is empty, and is charged', async () => {
    const answer = await transcribe('block', json(VERBOSE), {}, path)
    expect([answer.status, JSON.parse(answer.text)]).toEqual([
      200,
      { task: 'transcribe', duration: 2.5, text: '', segments: [], words: [], logprobs: [] },
    ])
    expect(rowOf(answer)).toMatchObject({ note: 'guard_blocked', guards: 'block-output=blocked;count=1' })
    expect(rowOf(answer).quota).toBeGreaterThan(0)
  })

  test('a transcript that is only flagged, or that no guard checks, is unchanged byte for byte', async () => {
    const text = JSON.stringify(VERBOSE, undefined, 1)
    const flagged = await transcribe('flag', answered('application/json', text), {}, path)
    expect([flagged.text, verdictsOf(flagged)]).toEqual([text, 'flag-output=flagged;count=1'])
    const plain = await transcribe('plain', answered('application/json', text), {}, path)
    expect([plain.text, verdictsOf(plain)]).toEqual([text, undefined])
  })

  test('a plain-text transcript is redacted by a guard, or empty if the guard blocks it', async () => {
    const said = `Say ${CODE} now.\n`
    const redacted = await transcribe('redact', answered('text/plain', said), {}, path)
    expect(redacted.text).toBe('Say [REDACTED] now.\n')
    const blocked = await transcribe('block', answered('text/plain', said), {}, path)
    expect([blocked.status, blocked.text, rowOf(blocked).note]).toEqual([200, '', 'guard_blocked'])
    const flagged = await transcribe('flag', answered('text/plain', said), {}, path)
    expect(flagged.text).toBe(said)
  })

  test('a guard redacts a match across two cues of subtitles, and keeps the times of the cues', async () => {
    const redacted = await transcribe('redact', answered('text/plain', SRT), { response_format: 'srt' }, path)
    expect(redacted.text).toBe(SRT.replace('four', '[REDACTED]').replace('two now', ' now'))
    const blocked = await transcribe('block', answered('text/plain', SRT), { response_format: 'srt' }, path)
    expect(blocked.text).toBe('')
  })
})

const said = (text: string): Event & { type: string } => ({
  type: 'transcript.text.delta',
  delta: text,
  logprobs: [{ token: text, logprob: -1 }],
})
const DONE = {
  type: 'transcript.text.done',
  text: `Say ${CODE} now.`,
  logprobs: [],
  usage: { input_tokens: 9, output_tokens: 7, total_tokens: 16 },
}
const STREAM = events(said('Say f'), said('our t'), said('wo now.'), DONE)

describe('a streamed transcript', () => {
  test('a guard redacts a match across events of a streamed transcript, and in the full text of its last event', async () => {
    const answer = await transcribe('redact', STREAM, { stream: 'true' })
    const given = eventsIn(answer)
    const deltas = given.filter(({ type }) => type === 'transcript.text.delta')
    expect(deltas.map(({ delta }) => delta).join('')).toBe('Say [REDACTED] now.')
    expect(given.at(-1)).toEqual({ ...DONE, text: 'Say [REDACTED] now.' })
    expect(answer.text).not.toMatch(/our t|"token":"/)
    expect(rowOf(answer)).toMatchObject({ guards: 'redact-output=redacted;count=1', reason: 'complete' })
  })

  test('a streamed transcript ends before a match that a guard blocks, with its usual last event', async () => {
    const answer = await transcribe('block', STREAM, { stream: 'true' })
    const given = eventsIn(answer)
    expect(given.at(-1)).toEqual({ type: 'transcript.text.done', text: 'Say ' })
    expect(
      given
        .slice(0, -1)
        .map(({ delta }) => delta)
        .join(''),
    ).toBe('Say ')
    expect(answer.text).not.toMatch(/four|our|now/)
    expect(rowOf(answer)).toMatchObject({ note: 'guard_blocked', guards: 'block-output=blocked;count=1' })
    expect(rowOf(answer).quota).toBeGreaterThan(0)
  })

  test('a streamed transcript that a guard blocks ends at once, even if its provider does not end it', async () => {
    const frames = ['Say f', 'our t', 'wo now.'].map((text) => `data: ${JSON.stringify(said(text))}\n\n`)
    const answer = await transcribe(
      'block',
      { kind: 'stream', frames, usage: null, ending: 'stall' },
      { stream: 'true' },
    )
    expect(eventsIn(answer).at(-1)).toEqual({ type: 'transcript.text.done', text: 'Say ' })
    expect(rowOf(answer)).toMatchObject({ note: 'guard_blocked', reason: 'cut' })
  })

  test("a streamed transcript whose end resembles the beginning of a guard's match is sent in full", async () => {
    const text = 'Say four'
    const answer = await transcribe('redact', events(said(text), { ...DONE, text }), { stream: 'true' })
    const given = eventsIn(answer)
    expect(given.map(({ type, delta, text }) => delta ?? [type, text])).toEqual([
      ...given.slice(0, -1).map(({ delta }) => delta),
      ['transcript.text.done', text],
    ])
    expect(
      given
        .slice(0, -1)
        .map(({ delta }) => delta)
        .join(''),
    ).toBe(text)
  })

  test('a streamed transcript is sent to its end if its connection breaks while a guard checks its last event', async () => {
    const text = 'four '.repeat(400_000)
    const stream = { ...events(said('Many'), { ...DONE, text }), ending: 'close' } as Behaviour
    const answer = await transcribe('redact', stream, { stream: 'true' })
    expect(eventsIn(answer).at(-1)?.['text']).toHaveLength(text.length)
    expect(rowOf(answer).reason).toBe('complete')
  })

  test('a guard redacts a match across two segments of a streamed transcript', async () => {
    const segment = (text: string, id: string) => ({
      type: 'transcript.text.segment',
      id,
      text,
      speaker: 'A',
    })
    const answer = await transcribe(
      'redact',
      events(segment('Say four', '0'), segment(' two now.', '1'), DONE),
      { stream: 'true' },
    )
    const given = eventsIn(answer)
    const texts = given.filter(({ type }) => type === 'transcript.text.segment').map(({ text }) => text)
    expect(texts.join('')).toBe('Say [REDACTED] now.')
    expect(given.at(-1)?.['text']).toBe('Say [REDACTED] now.')
  })

  test('a guard checks a streamed transcript whose only text is in its last event', async () => {
    const redacted = await transcribe('redact', events(DONE), { stream: 'true' })
    expect(eventsIn(redacted)).toEqual([{ ...DONE, text: 'Say [REDACTED] now.' }])
    const blocked = await transcribe('block', events(DONE), { stream: 'true' })
    expect(eventsIn(blocked)).toEqual([{ type: 'transcript.text.done', text: '' }])
    expect(rowOf(blocked).note).toBe('guard_blocked')
  })
})

const PICTURES = {
  created: 1,
  data: [
    { b64_json: 'aGVsbG8=', revised_prompt: `A "circle", ${CODE}` },
    { b64_json: 'aGVsbG8=', revised_prompt: 'A square' },
  ],
}

describe('the revised prompt of a picture', () => {
  test('a guard redacts a match in the revised prompt of a generated picture, and keeps the pictures', async () => {
    const answer = await draw('redact', json(PICTURES), { n: 2 })
    expect(JSON.parse(answer.text)).toEqual({
      ...PICTURES,
      data: [
        { b64_json: 'aGVsbG8=', revised_prompt: 'A "circle", [REDACTED]' },
        { b64_json: 'aGVsbG8=', revised_prompt: 'A square' },
      ],
    })
    expect(verdictsOf(answer)).toBe('redact-output=redacted;count=1')
  })

  test('generated pictures whose revised prompt a guard blocks are not sent, but charged', async () => {
    const answer = await draw('block', json(PICTURES), { n: 2 })
    expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { created: 1, data: [] }])
    expect(rowOf(answer)).toMatchObject({ note: 'guard_blocked', quota: 20_000 })
  })

  test('the revised prompt of a picture has the original value that a guard replaced in the prompt', async () => {
    await draw('swap', json(PICTURES), { prompt: `paint ${CODE}` })
    const sent = JSON.parse(fixture.upstream.received('pictures').at(-1)?.text ?? '') as { prompt: string }
    expect(sent.prompt).toMatch(/^paint \[\[SWAP_[0-9a-f]{8}\]\]$/)
    const data = [{ url: 'https://x.example/1.png', revised_prompt: sent.prompt }]
    const answer = await draw('swap', json({ created: 1, data }), { prompt: `paint ${CODE}` })
    expect(JSON.parse(answer.text)).toEqual({
      created: 1,
      data: [{ url: 'https://x.example/1.png', revised_prompt: `paint ${CODE}` }],
    })
  })

  test('an answer with pictures whose revised prompts have no match of a guard is unchanged byte for byte', async () => {
    const text = JSON.stringify({ ...PICTURES, data: PICTURES.data.slice(1) }, undefined, 2)
    const answer = await draw('redact', answered('application/json', text))
    expect(answer.text).toBe(text)
  })
})

test('an answer with pictures whose JSON is too deep to be checked by a guard is not sent', async () => {
  const deep = '['.repeat(20_000) + ']'.repeat(20_000)
  const body = `{"data":[{"b64_json":"aGk=","revised_prompt":"${CODE}"}],"deep":${deep}}`
  expect((await draw('plain', answered('application/json', body))).status).toBe(200)
  const answer = await draw('redact', answered('application/json', body))
  expect([answer.status, answer.text]).toEqual([500, expect.stringContaining('upstream_error')])
  expect(answer.text).not.toContain(CODE)
})

test.each([
  ['as an event', (picture: object) => events({ type: 'image_generation.completed', ...picture })],
  ['as JSON', (picture: object) => json({ created: 1, data: [picture] })],
])(
  'a picture above 32 MiB in a stream that a guard checks, sent %s, is not sent, but charged',
  async (_, behaviour) => {
    const picture = { b64_json: 'x'.repeat(33 * 2 ** 20) }
    const answer = await draw('redact', behaviour(picture), { stream: true })
    expect([answer.status, answer.text]).toEqual([500, expect.stringContaining('"code":"upstream_error"')])
    expect(rowOf(answer)).toMatchObject({ quota: 10_000 })
  },
)

atNight(
  'a picture above 32 MiB after a part of it is not a failure of the channel, because the gateway cannot check it',
  async () => {
    const part = { type: 'image_generation.partial_image', partial_image_index: 0, b64_json: 'AAAA' }
    const picture = { type: 'image_generation.completed', b64_json: 'x'.repeat(33 * 2 ** 20) }
    // So many failures in a row would rest the channel.
    for (let calls = 0; calls < 5; calls += 1) {
      const { text } = await draw('redact', events(part, picture), { stream: true })
      expect(text).toContain('partial_image')
      expect(text).toContain('"code":"upstream_error"')
    }
    const { text } = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/metrics' })
    expect(text).toContain('sluice_resting_channels 0\n')
  },
)

interface Chunk {
  readonly choices: {
    readonly delta: { readonly content?: unknown; readonly audio?: { transcript?: string } }
  }[]
}
const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const chat = async (key: string, deltas: readonly object[]): Promise<{ text: string; chunks: Chunk[] }> => {
  const frames = [...deltas.map((delta) => chunk(delta)), chunk({}, 'stop'), 'data: [DONE]\n\n']
  fixture.upstream.script('m', { kind: 'stream', frames, ending: 'no done' })
  const answer = await call(
    fixture.gateway.url,
    { model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] },
    { path: '/v1/chat/completions', key },
  )
  return { text: answer.text, chunks: eventsIn(answer) as unknown as Chunk[] }
}
const deltasOf = (chunks: readonly Chunk[]) =>
  chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta))

test('a guard redacts a match across events in the transcript of a spoken chat answer', async () => {
  const audio = ['Say fo', 'ur tw', 'o.'].map((transcript) => ({ audio: { id: 'a', transcript } }))
  const { chunks, text } = await chat('redact', [
    { role: 'assistant' },
    ...audio,
    { audio: { id: 'a', data: 'AAAA' } },
  ])
  const said = deltasOf(chunks).map((delta) => delta.audio?.transcript ?? '')
  expect(said.join('')).toBe('Say [REDACTED].')
  expect(text).toContain('AAAA')
  const blocked = await chat('block', audio)
  expect(
    deltasOf(blocked.chunks)
      .map((delta) => delta.audio?.transcript ?? '')
      .join(''),
  ).toBe('Say ')
  expect(blocked.text).toContain('content_filter')
})

test('a guard redacts matches across events of content blocks, separately in texts and thoughts', async () => {
  const block = (text: string) => ({ content: [{ type: 'text', text }] })
  const thought = (text: string) => ({
    content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }],
  })
  const { chunks, text } = await chat('redact', [
    thought('hm fo'),
    thought('ur two'),
    block('Say fo'),
    block('ur two'),
    { content: ' now' },
  ])
  const blocks = deltasOf(chunks).flatMap(({ content }) =>
    typeof content === 'string'
      ? [{ type: 'text', text: content }]
      : ((content ?? []) as { type: string; text?: string; thinking?: { text: string }[] }[]),
  )
  const textOf = (type: string): string =>
    blocks
      .filter((one) => one.type === type)
      .map((one) => one.text ?? one.thinking?.map((part) => part.text).join(''))
      .join('')
  expect([textOf('text'), textOf('thinking')]).toEqual(['Say [REDACTED] now', 'hm [REDACTED]'])
  expect(text).not.toMatch(/ur two/)
})

test('the documents in a rerank response have the original values that a guard replaced in the request', async () => {
  const result = (document: unknown) => ({
    id: 'r',
    results: [{ index: 0, relevance_score: 0.9, document }],
    meta: { billed_units: { search_units: 1 } },
  })
  const ask = () =>
    call(
      fixture.gateway.url,
      { model: 'rank', query: 'q', documents: [`see ${CODE}`], return_documents: true },
      { path: '/v1/rerank', key: 'swap' },
    )
  fixture.upstream.script('rank', json(result({ text: 'x' })))
  await ask()
  const sent = JSON.parse(fixture.upstream.received('rank').at(-1)?.text ?? '') as { documents: unknown[] }
  expect(JSON.stringify(sent)).not.toContain(CODE)
  const [document] = sent.documents
  fixture.upstream.script('rank', json(result(typeof document === 'string' ? { text: document } : document)))
  const answer = await ask()
  expect([answer.status, answer.text]).toEqual([200, expect.stringContaining(`see ${CODE}`)])
})
