import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, formCall, recordingParts, waveFile } from '../fixtures/form.ts'
import { answered, events, json } from '../fixtures/media-fixture.ts'

const CODE = 'four two'
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const KEYS = ['block', 'redact', 'passing', 'failing', 'masked', 'silent'] as const

/** A service that finds the code, and what it was asked. */
const asked: { texts: string[]; input_type: string }[] = []
let service: Server
let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  service = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const question = JSON.parse(body) as (typeof asked)[number]
      asked.push(question)
      if (request.url?.includes('failing')) return response.writeHead(500).end()
      if (request.url?.includes('silent')) return
      const isFound = question.texts.some((text) => text.includes(CODE))
      const texts = question.texts.map((text) => text.replaceAll(CODE, '#'))
      const action = !isFound ? 'NONE' : request.url?.includes('redact') ? 'GUARDRAIL_INTERVENED' : 'BLOCKED'
      const answer = action === 'GUARDRAIL_INTERVENED' ? { action, texts } : { action }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    })
  })
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
  fixture = await startFixture((upstream) => ({
    models: { ...priced(['m']), pictures: { price: { image: { default: 0.02 } } } },
    channels: [channel('m', upstream.baseUrl('m')), channel('pictures', upstream.baseUrl('pictures'))],
    guards: [
      ...KEYS.map((name) => ({
        name,
        do: name === 'redact' ? 'redact' : 'block',
        where: ['output'],
        match: { webhook: { url: `${url}/${name === 'passing' ? 'failing' : name}` } },
        on_failure: name === 'passing' ? 'pass' : 'block',
        // A busy machine takes longer than the default.
        timeout: '30s',
        tokens: [`token-${name}`],
      })),
      { name: 'mask', do: 'redact', where: ['output'], match: { pii: ['email'] }, tokens: ['token-masked'] },
    ],
    users: [
      ROOT,
      user(
        2,
        'ann',
        KEYS.map((name) => token(name)),
        { access_token: ANN.accessToken },
      ),
    ],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(async () => {
  await fixture?.close()
  service?.close()
})

function transcribe(key: string, behaviour: Behaviour, stream = false): Promise<FullResponse> {
  fixture.upstream.script('m', behaviour)
  const more = stream ? [{ name: 'stream', content: 'true' }] : []
  const body = formBytes(recordingParts('m', waveFile(1), more))
  return call(fixture.gateway.url, body, formCall('/v1/audio/transcriptions', key, body))
}
const rowOf = ({ headers }: FullResponse) => {
  const row = database.usageOf(String(headers['x-request-id'])) as unknown as Record<string, unknown>
  return { note: row['note'], guards: row['guards'], quota: row['quota'] }
}
const TRANSCRIPT = {
  text: `Say ${CODE} now.`,
  segments: [{ id: 0, start: 0, end: 1, text: `Say ${CODE} now.` }],
}
const SRT = `1\n00:00:00,000 --> 00:00:01,000\nSay ${CODE}\n\n2\n00:00:01,000 --> 00:00:02,500\nnow.\n`
const said = (text: string) => ({ type: 'transcript.text.delta', delta: text })
const DONE = { type: 'transcript.text.done', text: `Say ${CODE} now.` }
const STREAM = events(said('Say four'), said(' two now.'), DONE)
const textsOf = ({ text }: FullResponse): unknown[] =>
  text
    .split('\n\n')
    .flatMap((frame) => /^data: (.+)$/m.exec(frame)?.[1] ?? [])
    .map((data) => JSON.parse(data) as { type: string; delta?: string; text?: string })
    .map(({ delta, text }) => delta ?? { done: text })

test("a transcript that a guard's service blocks is empty, and is charged", async () => {
  const answer = await transcribe('block', json(TRANSCRIPT))
  expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { text: '', segments: [] }])
  expect(rowOf(answer)).toMatchObject({ note: 'guard_blocked', guards: 'block=blocked;count=1' })
  expect(rowOf(answer).quota).toBeGreaterThan(0)
  expect(asked.at(-1)).toMatchObject({ texts: [`Say ${CODE} now.`], input_type: 'response' })
})

test("a transcript that a guard's service changes loses its segments, which repeat the text", async () => {
  const answer = await transcribe('redact', json(TRANSCRIPT))
  expect(JSON.parse(answer.text)).toEqual({ text: 'Say # now.', segments: [] })
  expect(answer.headers['x-gateway-guards']).toBe('redact=redacted;count=1')
  const plain = JSON.stringify({ text: 'Nothing.', segments: [{ text: 'Nothing.' }] }, undefined, 1)
  expect((await transcribe('redact', answered('application/json', plain))).text).toBe(plain)
})

test("a guard's service blocks and changes transcripts that are plain text or subtitles", async () => {
  const text = (key: string, body: string) => transcribe(key, answered('text/plain', body))
  expect((await text('block', `Say ${CODE}.\n`)).text).toBe('')
  expect((await text('redact', `Say ${CODE}.\n`)).text).toBe('Say #.\n')
  expect((await text('redact', SRT)).text).toBe(SRT.replace(CODE, '#'))
  expect((await text('block', 'Nothing.\n')).text).toBe('Nothing.\n')
})

test("a streamed transcript is sent only after the guard's service has checked it", async () => {
  expect(textsOf(await transcribe('redact', STREAM, true))).toEqual(['Say # now.', { done: 'Say # now.' }])
  const blocked = await transcribe('block', STREAM, true)
  expect(textsOf(blocked)).toEqual([{ done: '' }])
  expect(rowOf(blocked)).toMatchObject({ note: 'guard_blocked', guards: 'block=blocked;count=1' })
  const free = events(said('Not'), said('hing.'), { ...DONE, text: 'Nothing.' })
  expect(textsOf(await transcribe('block', free, true))).toEqual(['Not', 'hing.', { done: 'Nothing.' }])
})

test.each(['block', 'redact'])(
  "a guard's service judges members of a streamed transcript that no API describes (%s)",
  async (key) => {
    const free = events({ ...said('Nothing.'), note: CODE }, { ...DONE, text: 'Nothing.' })
    const answer = await transcribe(key, free, true)
    expect(answer.text).not.toContain(CODE)
    expect(textsOf(answer)).toEqual(key === 'block' ? [{ done: '' }] : ['Nothing.', { done: 'Nothing.' }])
  },
)

test("where a guard's service fails, on_failure decides whether the transcript is sent", async () => {
  const blocked = await transcribe('failing', json(TRANSCRIPT))
  expect(JSON.parse(blocked.text)).toEqual({ text: '', segments: [] })
  expect(rowOf(blocked).guards).toBe('failing=failed_blocked;count=0')
  const passed = await transcribe('passing', json(TRANSCRIPT))
  expect(JSON.parse(passed.text)).toEqual(TRANSCRIPT)
  expect(rowOf(passed).guards).toBe('passing=failed_passed;count=0')
})

test.each([
  ['in JSON', json({ text: 'Ask ann@example.com.' })],
  ['in plain text', answered('text/plain', 'Ask ann@example.com.')],
  ['that is streamed', events({ ...DONE, text: 'Ask ann@example.com.' })],
] as const)(
  "a guard's service gets a transcript %s as guards of texts have left it",
  async (form, behaviour) => {
    const answer = await transcribe('masked', behaviour, form === 'that is streamed')
    expect(asked.at(-1)?.texts).toEqual(['Ask [REDACTED].'])
    expect(answer.text).toContain('Ask [REDACTED].')
    expect(answer.text).not.toContain('ann@example.com')
  },
)

test.each([
  ['a transcript', () => transcribe('silent', json(TRANSCRIPT))],
  ['a streamed transcript', () => transcribe('silent', STREAM, true)],
  [
    'a picture',
    () => {
      fixture.upstream.script(
        'pictures',
        json({ created: 1, data: [{ b64_json: 'aGk=', revised_prompt: 'x' }] }),
      )
      const path = '/v1/images/generations'
      return call(fixture.gateway.url, { model: 'pictures', prompt: 'x' }, { path, key: 'silent' })
    },
  ],
])(
  "%s is charged and answered with the reason if its call is stopped while a guard's service checks it",
  async (_, send) => {
    const before = asked.length
    const answer = send()
    await vi.waitFor(() => expect(asked).toHaveLength(before + 1), 60_000)
    const { url } = fixture.gateway
    const { data } = await manage<{ items: { id: string }[] }>(url, ANN, 'GET /api/running/self')
    const { status } = await manage(url, ANN, `POST /api/running/${data.items[0]?.id}/stop`)
    expect(status).toBe(200)
    const stopped = await answer
    expect(stopped.status).toBe(503)
    expect(stopped.text).toContain('this call was stopped')
    expect(rowOf(stopped).quota).toBeGreaterThan(0)
  },
)

test("a guard's service checks the revised prompt of a generated picture", async () => {
  fixture.upstream.script(
    'pictures',
    json({ created: 1, data: [{ b64_json: 'aGk=', revised_prompt: CODE }] }),
  )
  const answer = await call(
    fixture.gateway.url,
    { model: 'pictures', prompt: 'x' },
    { path: '/v1/images/generations', key: 'block' },
  )
  expect(JSON.parse(answer.text)).toEqual({ created: 1, data: [] })
  expect(rowOf(answer)).toMatchObject({ note: 'guard_blocked', quota: 10_000 })
})

describe('in a stream of pictures, a service judges the revised prompt', () => {
  const PARTIAL = { type: 'image_generation.partial_image', b64_json: 'aGk=', partial_image_index: 0 }
  const COMPLETED = { type: 'image_generation.completed', b64_json: 'aGVsbG8=' }
  const draw = (key: string, ...more: object[]): Promise<FullResponse> => {
    fixture.upstream.script('pictures', events(PARTIAL, ...more.map((one) => ({ ...COMPLETED, ...one }))))
    return call(
      fixture.gateway.url,
      { model: 'pictures', prompt: 'x', stream: true, partial_images: 1 },
      { path: '/v1/images/generations', key },
    )
  }
  const eventsIn = ({ text }: FullResponse): unknown[] =>
    text.split('\n\n').flatMap((frame) => {
      const [, data] = /^data: (.+)$/m.exec(frame) ?? []
      return data === undefined ? [] : [JSON.parse(data)]
    })

  test("a stream of pictures whose revised prompt a guard's service blocks is not sent, but charged", async () => {
    const answer = await draw('block', { revised_prompt: `A ${CODE}` })
    expect(answer.text).not.toMatch(/aGk=|aGVsbG8=|four/)
    expect(eventsIn(answer)).toEqual([
      { error: expect.objectContaining({ code: 'guard_blocked' }) as unknown },
    ])
    expect(rowOf(answer)).toMatchObject({
      note: 'guard_blocked',
      guards: 'block=blocked;count=1',
      quota: 10_000,
    })
    expect(asked.at(-1)).toMatchObject({ texts: [`A ${CODE}`], input_type: 'response' })
  })

  test("a revised prompt in a stream of pictures is sent as a guard's service changed it, with all other events unchanged", async () => {
    const answer = await draw('redact', { revised_prompt: `A ${CODE}` })
    expect(eventsIn(answer)).toEqual([PARTIAL, { ...COMPLETED, revised_prompt: 'A #' }])
    expect(rowOf(answer)).toMatchObject({ guards: 'redact=redacted;count=1' })
    const free = await draw('redact', { revised_prompt: 'A square' })
    expect(eventsIn(free)).toEqual([PARTIAL, { ...COMPLETED, revised_prompt: 'A square' }])
  })

  test("a guard's service judges members of streamed pictures that no API describes", async () => {
    expect((await draw('block', { note: CODE })).text).not.toMatch(/four two|aGk=/)
    expect(eventsIn(await draw('redact', { note: CODE }))).toEqual([PARTIAL, { ...COMPLETED, note: '#' }])
  })

  test("streamed pictures are sent after a failure of the guard's service only where on_failure says so", async () => {
    const blocked = await draw('failing', { revised_prompt: 'A square' })
    expect(blocked.text).not.toMatch(/aGk=|square/)
    expect(rowOf(blocked).guards).toBe('failing=failed_blocked;count=0')
    const passed = await draw('passing', { revised_prompt: 'A square' })
    expect(eventsIn(passed)).toEqual([PARTIAL, { ...COMPLETED, revised_prompt: 'A square' }])
  })
})
