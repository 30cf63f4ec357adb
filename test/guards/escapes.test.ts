import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ESCAPED_TEXTS, SECRET_VALUES, withoutValue, withValue } from '../fixtures/escaped-texts.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { answerOf, askGuarded, FORMS, type Protocol, PROTOCOLS } from '../fixtures/guarded-dialects.ts'
import { byTier, pairsByDay } from '../runner/tier.ts'

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

const NO_ARGS = '{"n":1}'

/** Secrets of a text: by day one, which differs from text to text and from client to client. */
const valuesAt = (number: number): readonly (readonly [name: string, value: string])[] =>
  byTier([VALUES[number % VALUES.length] ?? ['', '']], VALUES)

describe.each(PROTOCOLS.map((client, at) => [client, 5 * at] as const))(
  'a request of a %s client',
  (client, first) => {
    test('is blocked for each kind of secret in the result of a tool, however the text is escaped', async () => {
      for (const [at, text] of ESCAPED_TEXTS.entries())
        for (const [name, value] of valuesAt(first + at)) {
          const request = REQUESTS[client](withValue(text, value), NO_ARGS)
          const { answer, sent } = await send(client, 'block', request)
          expect([answer.status, sent], `${text.name}, ${name}`).toEqual([400, []])
        }
    })

    test('is sent with what takes the place of a secret, and is otherwise the same', async () => {
      for (const [at, text] of ESCAPED_TEXTS.entries())
        for (const [name, value] of valuesAt(first + at + 1)) {
          const given = withValue(text, value)
          const expected = withoutValue(text)
          const results = await send(client, 'redact', REQUESTS[client](given, NO_ARGS))
          expect(results.sent, `${text.name}, ${name}`).toEqual([REQUESTS[client](expected, NO_ARGS)[1]])
          const args = (note: string): string => JSON.stringify({ note, n: 1 })
          const calls = await send(client, 'redact', REQUESTS[client]('ok', args(given)))
          expect(calls.sent, `${text.name}, ${name}`).toEqual([REQUESTS[client]('ok', args(expected))[1]])
        }
    })

    test('has tokens in the place of secrets, which are put back in the answer', async () => {
      for (const [at, text] of ESCAPED_TEXTS.entries()) {
        if ((first + at) % byTier(PROTOCOLS.length, 1) > 0) continue
        const given = withValue(text, SECRET_VALUES['mail'] ?? '')
        const { sent } = await send(client, 'replace', REQUESTS[client](given, NO_ARGS))
        const [found] = /\[\[EMAIL_[0-9a-f]{8}\]\]/.exec(JSON.stringify(sent)) ?? []
        expect(sent, text.name).toEqual([REQUESTS[client](withoutValue(text, found), NO_ARGS)[1]])
        const back = await send(
          client,
          'replace',
          REQUESTS[client](given, NO_ARGS),
          withoutValue(text, found),
        )
        expect(back.answer.text, text.name).toContain(
          JSON.stringify(withoutValue(text, SECRET_VALUES['mail'])).slice(1, -1),
        )
      }
    })
  },
)

const ANSWERS = pairsByDay(
  PROTOCOLS.flatMap((client) =>
    PROTOCOLS.flatMap((to) =>
      FORMS.flatMap((form) => ESCAPED_TEXTS.map((text, at) => [client, to, form, text, at] as const)),
    ),
  ),
)

test.each(PROTOCOLS)(
  'an answer to a %s client is sent with what takes the place of a secret, in text and in arguments, and is otherwise the same',
  async (asking) => {
    for (const [client, to, form, text, at] of ANSWERS) {
      if (client !== asking) continue
      const [name, value] = VALUES[at % VALUES.length] ?? ['', '']
      const given = withValue(text, value)
      const input = (note: string): string => JSON.stringify({ note, n: 1 })
      const content = { text: given, input: input(given) }
      const answer = await askGuarded(fixture, client, to, form, 'redact', content)
      const expected = withoutValue(text)
      const args: unknown = JSON.parse(input(expected))
      const where = `${form} from ${to}: ${text.name}, ${name}`
      expect([answer.text, answer.args], where).toEqual([expected, args])
      const blocked = await askGuarded(fixture, client, to, form, 'block', content)
      expect(blocked.raw, where).not.toContain(value)
    }
  },
)
