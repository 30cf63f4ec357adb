import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import {
  answerOf,
  askGuarded,
  type Content,
  eventsOf,
  type Form,
  FORMS,
  type Given,
  type Loose,
  type Protocol,
  PROTOCOLS,
  REFUSED,
  requestOf,
} from '../fixtures/guarded-dialects.ts'

const ACTIONS = ['block', 'redact', 'replace', 'flag'] as const

const CODE = 'code-4711-x'
const match = { regex: 'code-[0-9]+-x' }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced([...PROTOCOLS, 'repaired']),
    channels: [
      ...PROTOCOLS.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
      channel('repaired', upstream.baseUrl('repaired'), { protocol: 'gemini', repair: true }),
    ],
    guards: [
      ...ACTIONS.flatMap((action) => [
        { name: `${action}-text`, do: action, match, where: ['output'], tokens: [`token-${action}text`] },
        {
          name: `${action}-args`,
          do: action,
          match,
          where: ['tool_arguments'],
          tokens: [`token-${action}args`],
        },
      ]),
      { name: 'watch', do: 'block', mode: 'monitor', match, tokens: ['token-watch'] },
      { name: 'swap', do: 'replace', match, where: ['input'], tokens: ['token-swap'] },
    ],
    users: [
      ROOT,
      user(2, 'ann', [
        ...ACTIONS.flatMap((action) => [token(`${action}text`), token(`${action}args`)]),
        ...['watch', 'swap', 'plain'].map((name) => token(name)),
      ]),
    ],
  }))
})
afterAll(() => fixture?.close())

function ask(
  client: Protocol,
  to: Protocol,
  form: Form,
  key: string,
  content: Content,
  text?: string,
): Promise<Given> {
  return askGuarded(fixture, client, to, form, key, content, text)
}

const ROADS = PROTOCOLS.flatMap((client) =>
  PROTOCOLS.flatMap((to) => FORMS.map((form) => [client, to, form] as const)),
)
const SAID = `It is ${CODE}, yes: "${CODE}"`
const ARGS = { to: `a "${CODE}"\n`, x: 1 }

/** Whether an event has a piece of the text, and whether it ends the text, by the dialect of the client. */
const ORDER: Record<Protocol, { piece: (event: Loose) => unknown; end: (event: Loose) => unknown }> = {
  chat: {
    piece: ({ choices }) => choices?.[0]?.['delta']?.['content'],
    end: ({ choices }) => choices?.[0]?.['finish_reason'],
  },
  messages: {
    piece: ({ delta }) => delta?.['text'],
    end: ({ type }) => type === 'content_block_stop',
  },
  responses: {
    piece: ({ type }) => type === 'response.output_text.delta',
    end: ({ type }) => type === 'response.output_text.done',
  },
  gemini: {
    piece: ({ candidates }) => candidates?.[0]?.['content']?.['parts']?.[0]?.['text'],
    end: ({ candidates }) => candidates?.[0]?.['finishReason'],
  },
}

describe.each(PROTOCOLS.flatMap((client) => PROTOCOLS.map((to) => [client, to] as const)))(
  'a stream of a %s client from a %s channel',
  (client, to) => {
    test("a stream whose text ends like the beginning of a guard's match is sent in full, before its last events", async () => {
      const text = 'It is code-47'
      const given = await ask(client, to, 'streamed', 'redacttext', { text })
      expect([given.text, given.status]).toEqual([text, 200])
      const events = eventsOf(given.raw)
      const order = ORDER[client]
      const last = events.findLastIndex((event) => order.piece(event))
      const first = events.findIndex((event) => order.end(event))
      expect(last).toBeGreaterThan(0)
      expect(last).toBeLessThanOrEqual(first)
    })
  },
)

describe.each(ROADS)('a %s client and a %s channel, %s', (client, to, form) => {
  test("an answer that a guard redacts has the model's text with each match redacted", async () => {
    const given = await ask(client, to, form, 'redacttext', { text: SAID })
    expect(given.text).toBe('It is [REDACTED], yes: "[REDACTED]"')
    expect(given.raw).not.toContain(CODE)
    expect(given.verdicts).toBe(form === 'whole' ? 'redact-text=redacted;count=2' : undefined)
  })

  test("an answer that a guard blocks has the finish reason of a refusal in the client's dialect, and no part of the match", async () => {
    const given = await ask(client, to, form, 'blocktext', { text: SAID })
    expect([given.status, given.finish]).toEqual([200, REFUSED[client]])
    expect(given.raw).not.toContain(CODE)
    expect(given.raw).not.toContain('yes')
    expect(['', 'It is ']).toContain(given.text)
  })

  test('a match that a guard with the action replace finds in an answer becomes a placeholder in double brackets', async () => {
    const given = await ask(client, to, form, 'replacetext', { text: SAID })
    expect(given.text).toBe('It is [[REPLACE_TEXT]], yes: "[[REPLACE_TEXT]]"')
    expect(given.raw).not.toContain(CODE)
    const args = await ask(client, to, form, 'replaceargs', { text: 'ok', input: JSON.stringify(ARGS) })
    expect(args.args).toEqual({ to: 'a "[[REPLACE_ARGS]]"\n', x: 1 })
    expect(args.raw).not.toContain(CODE)
  })

  test('an answer that a guard only flags is sent unchanged', async () => {
    const given = await ask(client, to, form, 'flagtext', { text: SAID })
    expect(given.text).toBe(SAID)
  })

  test('tool arguments that a guard redacts are valid JSON without the match', async () => {
    const given = await ask(client, to, form, 'redactargs', { text: 'ok', input: JSON.stringify(ARGS) })
    expect(given.args).toEqual({ to: 'a "[REDACTED]"\n', x: 1 })
    expect(given.raw).not.toContain(CODE)
  })

  test('an answer whose tool arguments have a match that a guard blocks ends with the finish reason of a refusal', async () => {
    const given = await ask(client, to, form, 'blockargs', { text: 'ok', input: JSON.stringify(ARGS) })
    expect(given.finish).toBe(REFUSED[client])
    expect(given.raw).not.toContain(CODE)
  })

  test('a value that a guard replaced in the request is restored in the text and in the tool arguments of the answer', async () => {
    fixture.upstream.script(to, answerOf(to, form, { text: 'x' }))
    const [path, body] = requestOf(client, to, form, `mail ${CODE}`)
    await call(fixture.gateway.url, JSON.stringify(body), {
      path,
      key: 'swap',
      headers: { 'x-goog-api-key': 'sk-swap' },
    })
    const sent = fixture.upstream.received(to)[0]?.text ?? ''
    const mark = /\[\[[A-Z0-9_-]+_[0-9a-f]{8}\]\]/.exec(sent)?.[0] ?? ''
    expect(sent).not.toContain(CODE)
    const content = { text: `To ${mark}.`, input: JSON.stringify({ to: mark }) }
    const given = await ask(client, to, form, 'swap', content, `mail ${CODE}`)
    expect([given.text, given.args]).toEqual([`To ${CODE}.`, { to: CODE }])
    const stranger = await ask(client, to, form, 'swap', content, 'no value')
    expect(stranger.text).toBe(`To ${mark}.`)
  })

  test('a guard in monitor mode changes neither the text nor the tool arguments of an answer', async () => {
    const given = await ask(client, to, form, 'watch', { text: SAID, input: JSON.stringify(ARGS) })
    expect([given.text, given.args]).toEqual([SAID, ARGS])
  })
})

test('a guard redacts a match that is divided over several stream events in the arguments of a legacy function_call', async () => {
  const chunk = (delta: object): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`
  const pieces = ['{"to":"co', 'de-47', '11-x"}'].map((text) => chunk({ function_call: { arguments: text } }))
  const end =
    'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}\n\ndata: [DONE]\n\n'
  fixture.upstream.script('chat', {
    kind: 'stream',
    frames: [chunk({ role: 'assistant', function_call: { name: 'f', arguments: '' } }), ...pieces, end],
    ending: 'no done',
  })
  const answer = await call(
    fixture.gateway.url,
    JSON.stringify({ model: 'chat', stream: true, messages: [{ role: 'user', content: 'hi' }] }),
    { path: '/v1/chat/completions', key: 'redactargs' },
  )
  const given = eventsOf(answer.text)
    .flatMap((event) => event['choices'] ?? [])
    .map((choice: Loose) => choice['delta']['function_call']?.['arguments'] ?? '')
    .join('')
  expect(JSON.parse(given)).toEqual({ to: '[REDACTED]' })
})

const LAST_EVENTS: readonly (readonly [how: string, pieces: readonly string[]])[] = [
  ['continues into', ['say co', 'de-4711-x now']],
  ['is only in', ['say ', 'code-4711-x now']],
]
describe.each(LAST_EVENTS)('a match that %s the last event', (_, pieces) => {
  test.each([
    ['gemini', 'redact', 'alt=sse', 'say [REDACTED] now', 'STOP'],
    ['gemini', 'block', 'alt=sse', 'say ', 'SAFETY'],
    ['gemini', 'redact', 'alt=json', 'say [REDACTED] now', 'STOP'],
    ['gemini', 'block', 'alt=json', 'say ', 'SAFETY'],
    ['repaired', 'redact', 'alt=sse', 'say [REDACTED] now', 'STOP'],
    ['repaired', 'block', 'alt=sse', 'say ', 'SAFETY'],
  ] as const)(
    'a guard finds a match that continues into the last event of a Gemini stream, or is only in it (%s, %s, %s)',
    async (model, action, form, said, reason) => {
      const frames = pieces.map((text, index) => {
        const end = index === pieces.length - 1 && { finishReason: 'STOP' }
        const candidates = [{ index: 0, content: { parts: [{ text }], role: 'model' }, ...end }]
        const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 }
        return `data: ${JSON.stringify({ candidates, usageMetadata })}\n\n`
      })
      fixture.upstream.script(model, { kind: 'stream', frames, ending: 'no done' })
      const body = JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'hi' }] }] })
      const answer = await call(fixture.gateway.url, body, {
        path: `/v1beta/models/${model}:streamGenerateContent?${form}`,
        key: `${action}text`,
        headers: { 'x-goog-api-key': `sk-${action}text` },
      })
      const events = form === 'alt=sse' ? eventsOf(answer.text) : (JSON.parse(answer.text) as Loose[])
      const candidates = events.flatMap((event) => event['candidates'] ?? [])
      const texts = candidates.flatMap((one: Loose) => one['content']?.['parts'] ?? [])
      expect(texts.map((one: Loose) => one['text']).join('')).toBe(said)
      expect(candidates.at(-1)?.['finishReason']).toBe(reason)
    },
  )
})
