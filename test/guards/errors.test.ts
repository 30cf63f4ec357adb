import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { answerOf, PROTOCOLS, type Protocol, requestOf } from '../fixtures/guarded-dialects.ts'

const CODE = 'code 4711 x'
const SAID = `the answer was: ${CODE}, which is not allowed`
const NOTE = { deep: [SAID] }
const KEYS = ['redact', 'block'] as const

/** An error with the text of an answer, by the protocol of the channel. */
const ERRORS: Readonly<Record<Protocol, object>> = {
  chat: { error: { message: SAID, type: 'invalid_request_error', param: SAID, code: SAID, x: NOTE } },
  messages: { type: 'error', error: { type: 'invalid_request_error', message: SAID, x: NOTE }, x: NOTE },
  responses: { error: { message: SAID, type: 'invalid_request_error', param: null, code: SAID, x: NOTE } },
  gemini: { error: { code: 400, message: SAID, status: 'INVALID_ARGUMENT', details: [NOTE] } },
}
const event = (type: string, data: object): string => `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`
const EVENTS: Readonly<Record<Protocol, string>> = {
  chat: `data: ${JSON.stringify(ERRORS.chat)}\n\n`,
  messages: event('error', ERRORS.messages),
  responses: event('error', { type: 'error', code: SAID, message: SAID, param: null, sequence_number: 1 }),
  gemini: `data: ${JSON.stringify(ERRORS.gemini)}\n\n`,
}

/** The first frames of a plain answer. */
function begun(protocol: Protocol): readonly string[] {
  const plain = answerOf(protocol, 'streamed', { text: 'some words of the answer' })
  return plain.kind === 'stream' ? (plain.frames ?? []).slice(0, 4) : []
}

/** Where an error comes. */
const PLACES: readonly [string, 'whole' | 'streamed', (protocol: Protocol) => Behaviour][] = [
  [
    'a status',
    'whole',
    (protocol) => ({ kind: 'status', status: 400, body: JSON.stringify(ERRORS[protocol]) }),
  ],
  ['an answer', 'whole', (protocol) => ({ kind: 'whole', body: JSON.stringify(ERRORS[protocol]) })],
  ['the first event', 'streamed', (protocol) => ({ kind: 'stream', frames: [EVENTS[protocol]] })],
  [
    'a later event',
    'streamed',
    (protocol) => ({ kind: 'stream', frames: [...begun(protocol), EVENTS[protocol]] }),
  ],
]

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced([...PROTOCOLS]),
    channels: PROTOCOLS.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
    guards: [
      ...KEYS.map((name) => ({
        name,
        do: name,
        where: ['output'],
        match: { regex: CODE },
        tokens: [`token-${name}`],
      })),
      {
        name: 'short',
        do: 'redact',
        where: ['output'],
        match: { regex: '(?:code-)?4711\\S*' },
        tokens: ['token-short'],
      },
    ],
    users: [
      ROOT,
      user(
        2,
        'ann',
        [...KEYS, 'plain', 'short'].map((name) => token(name)),
      ),
    ],
  }))
})
afterAll(() => fixture?.close())

describe.each(PLACES)('what an upstream says in the error of %s', (_, form, behaviour) => {
  test.each(PROTOCOLS.flatMap((client) => PROTOCOLS.map((to) => [client, to] as const)))(
    'is checked by guards of output: %s to %s',
    async (client, to) => {
      fixture.upstream.script(to, behaviour(to))
      const [path, body] = requestOf(client, to, form)
      const texts = await Promise.all(
        [...KEYS, 'plain', 'short'].map(async (key) => {
          const headers = { 'x-goog-api-key': `sk-${key}` }
          return (await call(fixture.gateway.url, JSON.stringify(body), { path, key, headers })).text
        }),
      )
      expect(texts[2]).toContain(CODE)
      expect(texts[0]).not.toContain(CODE)
      expect(texts[0]).toContain('the answer was: [REDACTED], which')
      expect(texts[1]).not.toContain(CODE)
      expect(texts[1]).toContain('a guard refused the words of this error')
    },
  )
})

test.each([
  ['a key', 'code-4711-x'],
  ['digits', '4711471147114711'],
])(
  'an error whose whole message is %s is checked like any other, and its type and code stay',
  async (_, said) => {
    const error = { message: said, type: 'invalid_request_error', code: 'rate_limit_exceeded' }
    fixture.upstream.script('chat', { kind: 'status', status: 400, body: JSON.stringify({ error }) })
    const [path, body] = requestOf('chat', 'chat', 'whole')
    const ask = (key: string) => call(fixture.gateway.url, JSON.stringify(body), { path, key })
    expect((await ask('plain')).json().error).toMatchObject({
      ...error,
      message: expect.stringContaining(said),
    })
    const { message, ...rest } = (await ask('short')).json().error
    expect(message).not.toContain(said)
    expect(rest).toMatchObject({ type: error.type, code: error.code })
  },
)
