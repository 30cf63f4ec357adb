import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, formCall, recordingParts, waveFile } from '../fixtures/form.ts'
import { answered, events, json } from '../fixtures/media-fixture.ts'

/** What guards look for, in answers of media at places that no API describes. */
const CODE = 'code 4711 x'
const ACTIONS = ['redact', 'block'] as const

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: { ...priced(['m']), pictures: { price: { image: { default: 0.02 } } } },
    channels: ['m', 'pictures'].map((name) => channel(name, upstream.baseUrl(name))),
    guards: ACTIONS.map((action) => ({
      name: action,
      do: action,
      match: { regex: CODE },
      tokens: [`token-${action}`],
    })),
    users: [
      ROOT,
      user(
        2,
        'ann',
        ACTIONS.map((name) => token(name)),
      ),
    ],
  }))
})
afterAll(() => fixture?.close())

function transcribe(
  key: string,
  behaviour: Behaviour,
  fields: Record<string, string>,
): Promise<FullResponse> {
  fixture.upstream.script('m', behaviour)
  const more = Object.entries(fields).map(([name, content]) => ({ name, content }))
  const body = formBytes(recordingParts('m', waveFile(1), more))
  return call(fixture.gateway.url, body, formCall('/v1/audio/transcriptions', key, body))
}

const TRANSCRIPTS: Readonly<Record<string, object>> = {
  'a member': { text: 'a', note: CODE },
  'a member deep within': { text: 'a', x: { y: [CODE] } },
  'the speaker of a segment': { text: 'a', segments: [{ text: 'a', speaker: CODE }] },
  'a member of a word': { text: 'a', words: [{ word: 'a', other: CODE }] },
  'a name': { text: 'a', [CODE]: 1 },
  'a word of the protocol': { text: 'a', language: CODE, usage: { type: CODE } },
  'a task': { text: 'a', task: CODE },
}

test.each(
  ACTIONS.flatMap((action) =>
    Object.entries(TRANSCRIPTS).map(([where, body]) => [action, where, body] as const),
  ),
)('a guard that would %s checks a transcript everywhere: %s', async (action, _where, body) => {
  const answer = await transcribe(action, json(body), {})
  expect(answer.status).toBe(200)
  expect(answer.text).not.toContain(CODE)
  expect(answer.headers['x-gateway-guards']).toMatch(new RegExp(`^${action}=(?:redacted|blocked);`))
})

const TIMES = '00:00:00,000 --> 00:00:01,000\n'
test.each([
  ['text', `A --> ${CODE}`],
  ['text', `A --> B\n\n${CODE}`],
  ['srt', `${CODE}\n\n1\n${TIMES}hi\n`],
  ['srt', `${CODE}\n${TIMES}hi\n`],
  ['srt', `1\n00:00:00,000 --> 00:00:01,000 ${CODE}\nhi\n`],
  ['vtt', `WEBVTT ${CODE}\n\n00:00.000 --> 00:01.000\nhi\n`],
  ['vtt', `WEBVTT\n\nSTYLE\n${CODE}\n\n00:00.000 --> 00:01.000\nhi\n`],
  ['vtt', `WEBVTT\r\r00:00.000 --> 00:01.000\rhi\r\rNOTE ${CODE}\r`],
])('a guard checks all lines of a transcript but its times and numbers: %s %j', async (format, body) => {
  const answer = await transcribe('redact', answered('text/plain', body), { response_format: format })
  expect(answer.text).toBe(body.replace(CODE, '[REDACTED]'))
})

const DONE = {
  type: 'transcript.text.done',
  text: 'hi',
  usage: { type: 'tokens', input_tokens: 1, output_tokens: 1 },
}
type Event = { readonly type: string; readonly [field: string]: unknown }
const EVENTS: Readonly<Record<string, Event>> = {
  'a member': { type: 'transcript.text.delta', delta: 'hi', note: CODE },
  'an event': { type: 'transcript.note', note: CODE },
  'a speaker': { type: 'transcript.text.segment', id: '1', start: 0, end: 1, text: 'hi', speaker: CODE },
  'a name': { type: 'transcript.text.delta', delta: 'hi', [CODE]: 1 },
  'an object as the text': { type: 'transcript.text.delta', delta: { a: CODE } },
  'an object as log probabilities': {
    type: 'transcript.text.delta',
    delta: 'hi',
    logprobs: { content: [{ token: CODE }] },
  },
  'log probabilities of an event': { type: 'transcript.note', logprobs: [{ token: CODE }] },
  'the last event': { ...DONE, segments: [{ text: CODE }] },
}

test.each(
  ACTIONS.flatMap((action) =>
    Object.entries(EVENTS).map(([where, event]) => [action, where, event] as const),
  ),
)('a guard that would %s checks the events of a transcript everywhere: %s', async (action, _where, event) => {
  const answer = await transcribe(action, events(event, DONE), { stream: 'true' })
  expect(answer.status).toBe(200)
  expect(answer.text).not.toContain(CODE)
})

test('what a guard holds back of a segment is sent without what it has redacted beside it', async () => {
  const segment = { type: 'transcript.text.segment', id: '1', text: 'It is code 47', note: CODE }
  const { text } = await transcribe('redact', events(segment, DONE), { stream: 'true' })
  expect(text).toContain('code 47')
  expect(text).not.toContain(CODE)
})

const FINISHED = {
  type: 'image_generation.completed',
  b64_json: 'aGk=',
  usage: { input_tokens: 1, output_tokens: 1 },
}
const PICTURES: Readonly<Record<string, readonly [body: object, event: Event]>> = {
  'a member': [{ data: [{ b64_json: 'aGk=', note: CODE }] }, { ...FINISHED, note: CODE }],
  'beside the pictures': [
    { data: [{ b64_json: 'aGk=' }], note: { deep: [CODE] } },
    { type: 'x', note: CODE },
  ],
  'a name': [{ data: [{ b64_json: 'aGk=', [CODE]: 1 }] }, { ...FINISHED, [CODE]: 1 }],
  'in place of a picture': [{ data: [{ b64_json: CODE }] }, { ...FINISHED, b64_json: CODE }],
  'an address': [{ data: [{ url: `https://example.com/?${CODE}` }] }, { ...FINISHED, url: CODE }],
}

test.each(
  ACTIONS.flatMap((action) =>
    Object.entries(PICTURES).map(([where, given]) => [action, where, given] as const),
  ),
)(
  'a guard that would %s checks an answer with pictures everywhere: %s',
  async (action, _where, [body, event]) => {
    for (const [behaviour, stream] of [
      [json(body), false],
      [events(event, FINISHED), true],
    ] as const) {
      fixture.upstream.script('pictures', behaviour)
      const request = { model: 'pictures', prompt: 'a circle', stream }
      const answer = await call(fixture.gateway.url, request, { path: '/v1/images/generations', key: action })
      expect(answer.status).toBe(200)
      expect(answer.text).not.toContain(CODE)
    }
  },
)
