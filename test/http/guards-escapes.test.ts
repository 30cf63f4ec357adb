import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ESCAPED_TEXTS, SECRET_VALUES, withoutValue, withValue } from '../fixtures/escaped-texts.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { answerOf, askGuarded, FORMS, type Protocol, PROTOCOLS } from '../fixtures/guarded-dialects.ts'
import { byTier } from '../runner/tier.ts'

const VALUES = Object.entries(SECRET_VALUES)
const match = [{ secrets: true }, { pii: ['email', 'credit_card', 'iban'] }]

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced([...PROTOCOLS]),
    channels: PROTOCOLS.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
    guards: ['block', 'redact', 'replace'].flatMap((action) =>
      match.map((one, index) => ({
        name: `${action}-${index}`,
        do: action,
        where: action === 'replace' ? ['input', 'tool_results'] : undefined,
        match: one,
        tokens: [`token-${action}`],
      })),
    ),
    users: [
      ROOT,
      user(
        2,
        'ann',
        ['block', 'redact', 'replace'].map((name) => token(name)),
      ),
    ],
  }))
})
afterAll(() => fixture?.close())

/** A request with the result of a tool, and arguments that a tool was called with. */
const REQUESTS: Readonly<Record<Protocol, (result: string, args: string) => [path: string, body: object]>> = {
  chat: (content, args) => [
    '/v1/chat/completions',
    {
      model: 'chat',
      messages: [
        { role: 'user', content: 'hi' },
        {
          role: 'assistant',
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: args } }],
        },
        { role: 'tool', tool_call_id: 'c1', content },
      ],
    },
  ],
  messages: (content, args) => [
    '/v1/messages',
    {
      model: 'messages',
      max_tokens: 5,
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'f', input: JSON.parse(args) }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content }] },
      ],
    },
  ],
  responses: (output, args) => [
    '/v1/responses',
    {
      model: 'responses',
      input: [
        { role: 'user', content: 'hi' },
        { type: 'function_call', call_id: 'c1', name: 'f', arguments: args },
        { type: 'function_call_output', call_id: 'c1', output },
      ],
    },
  ],
  gemini: (result, args) => [
    '/v1beta/models/gemini:generateContent',
    {
      contents: [
        { role: 'user', parts: [{ text: 'hi' }] },
        {
          role: 'model',
          parts: [{ functionCall: { name: 'f', args: JSON.parse(args) }, thoughtSignature: 'c2ln' }],
        },
        { role: 'user', parts: [{ functionResponse: { name: 'f', response: { result } } }] },
      ],
    },
  ],
}

async function send(client: Protocol, key: string, request: [path: string, body: object], text = 'hi') {
  fixture.upstream.script(client, answerOf(client, 'whole', { text }))
  const [path, body] = request
  const answer = await call(fixture.gateway.url, JSON.stringify(body), {
    path,
    key,
    headers: { 'x-goog-api-key': `sk-${key}` },
  })
  return { answer, sent: fixture.upstream.received(client).map(({ text }) => JSON.parse(text) as unknown) }
}

/** By day each third text is tried. */
const CASES = ESCAPED_TEXTS.filter((_, at) => at % byTier(3, 1) === 0).map(
  (text) => [text.name, text] as const,
)
const NO_ARGS = '{"n":1}'

describe.each(PROTOCOLS)('a request of a %s client', (client) => {
  test.each(CASES)('is blocked for each kind of secret in the result of a tool: %s', async (_, text) => {
    for (const [name, value] of VALUES) {
      const { answer, sent } = await send(client, 'block', REQUESTS[client](withValue(text, value), NO_ARGS))
      expect([answer.status, sent], name).toEqual([400, []])
    }
  })

  test.each(CASES)(
    'is sent with what takes the place of a secret, and is otherwise the same: %s',
    async (_, text) => {
      for (const [index, [, value]] of VALUES.entries()) {
        if (index % 4 > 0) continue
        const given = withValue(text, value)
        const expected = withoutValue(text)
        const results = await send(client, 'redact', REQUESTS[client](given, NO_ARGS))
        expect(results.sent).toEqual([REQUESTS[client](expected, NO_ARGS)[1]])
        const args = (note: string): string => JSON.stringify({ note, n: 1 })
        const calls = await send(client, 'redact', REQUESTS[client]('ok', args(given)))
        expect(calls.sent).toEqual([REQUESTS[client]('ok', args(expected))[1]])
      }
    },
  )

  test.each(CASES)(
    'has tokens in the place of secrets, which are put back in the answer: %s',
    async (_, text) => {
      const given = withValue(text, SECRET_VALUES['mail'] ?? '')
      const { sent } = await send(client, 'replace', REQUESTS[client](given, NO_ARGS))
      const [found] = /\[\[EMAIL_[0-9a-f]{8}\]\]/.exec(JSON.stringify(sent)) ?? []
      expect(sent).toEqual([REQUESTS[client](withoutValue(text, found), NO_ARGS)[1]])
      const back = await send(client, 'replace', REQUESTS[client](given, NO_ARGS), withoutValue(text, found))
      expect(back.answer.text).toContain(
        JSON.stringify(withoutValue(text, SECRET_VALUES['mail'])).slice(1, -1),
      )
    },
  )
})

const ROADS = PROTOCOLS.flatMap((client) =>
  PROTOCOLS.flatMap((to) => FORMS.map((form) => [client, to, form] as const)),
)

describe.each(ROADS)('an answer to a %s client from a %s channel, %s', (client, to, form) => {
  test('is sent with what takes the place of a secret, in text and in arguments, and is otherwise the same', async () => {
    for (const [index, text] of ESCAPED_TEXTS.entries()) {
      const [name, value] = VALUES[index % VALUES.length] ?? ['', '']
      const given = withValue(text, value)
      const input = (note: string): string => JSON.stringify({ note, n: 1 })
      const content = { text: given, input: input(given) }
      const answer = await askGuarded(fixture, client, to, form, 'redact', content)
      const expected = withoutValue(text)
      const args: unknown = JSON.parse(input(expected))
      expect([answer.text, answer.args], `${text.name}, ${name}`).toEqual([expected, args])
      const blocked = await askGuarded(fixture, client, to, form, 'block', content)
      expect(blocked.raw, `${text.name}, ${name}`).not.toContain(value)
    }
  })
})
