import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { streamedChat, wholeChat } from '../fixtures/chat-behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import {
  type Form,
  FORMS,
  type Protocol,
  PROTOCOLS,
  REFUSED,
  requestOf,
} from '../fixtures/guarded-dialects.ts'
import { streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'

const CODE = 'code-4711-x'
const KEYS = ['redact', 'replace', 'block', 'plain'] as const
type Key = (typeof KEYS)[number]

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced([...PROTOCOLS]),
    channels: PROTOCOLS.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
    guards: KEYS.filter((name) => name !== 'plain').map((name) => ({
      name,
      do: name,
      match: { regex: 'code-[0-9]+-x' },
      where: ['output'],
      tokens: [`token-${name}`],
    })),
    users: [
      ROOT,
      user(
        2,
        'ann',
        KEYS.map((name) => token(name)),
      ),
    ],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

/** Members of requests that have the model think, by dialect. */
const THINKING: Readonly<Record<Protocol, object>> = {
  chat: { reasoning_effort: 'low' },
  messages: { max_tokens: 4000, thinking: { type: 'enabled', budget_tokens: 2000 } },
  responses: { reasoning: { effort: 'low', summary: 'auto' } },
  gemini: { generationConfig: { thinkingConfig: { includeThoughts: true } } },
}

async function ask(client: Protocol, to: Protocol, form: Form, key: Key, behaviour: Behaviour) {
  fixture.upstream.script(to, behaviour)
  const [path, body] = requestOf(client, to, form)
  const answer = await call(fixture.gateway.url, JSON.stringify({ ...body, ...THINKING[client] }), {
    path,
    key,
    headers: { 'x-goog-api-key': `sk-${key}` },
  })
  expect(answer.status, answer.text).toBe(200)
  return answer
}
const verdicts = ({ headers }: FullResponse): unknown => {
  const row = database.usageOf(String(headers['x-request-id'])) as unknown as Record<string, unknown>
  return row['guards']
}

/** A text without the ids and times that the gateway makes for each call. */
const unnamed = (text: string): string =>
  text
    .replaceAll(/\b(?:chatcmpl-|resp_|msg_|rs_|gen-)[\w-]+/g, 'id')
    .replaceAll(/("(?:created|created_at|completed_at)":|"responseId":)[^,}]+/g, '$1')

const SIGNED = {
  whole: wholeMessage([{ thinking: `I think ${CODE}, so`, signature: 'c2lnbmVk' }, { text: 'ok' }]),
  streamed: streamedMessage([{ thinking: `I think ${CODE}, so`, signature: 'c2lnbmVk' }, { text: 'ok' }]),
}

describe.each(PROTOCOLS.flatMap((client) => FORMS.map((form) => [client, form] as const)))(
  'signed reasoning that a %s client reads, %s',
  (client, form) => {
    test.each(['redact', 'replace'] as const)(
      'a guard with the action %s does not change signed reasoning, and only flags a match in it',
      async (action) => {
        const plain = await ask(client, 'messages', form, 'plain', SIGNED[form])
        const answer = await ask(client, 'messages', form, action, SIGNED[form])
        expect(plain.text).toContain('-4711-x')
        expect(unnamed(answer.text)).toBe(unnamed(plain.text))
        expect(verdicts(answer)).toBe(`${action}=flagged;count=1`)
      },
    )

    test('signed reasoning that a guard blocks ends the answer like a refusal', async () => {
      const answer = await ask(client, 'messages', form, 'block', SIGNED[form])
      expect(answer.text).toContain(`"${REFUSED[client]}"`)
      expect(answer.text).not.toMatch(/code-|, so/)
    })
  },
)

describe.each(FORMS)('reasoning that is not signed, %s', (form) => {
  const thinking = { thoughts: `I think ${CODE}, so`, text: 'ok' }
  const unsigned = { whole: wholeChat(thinking), streamed: streamedChat(thinking) }

  test.each(PROTOCOLS)(
    'reasoning without a signature is redacted by a guard for a %s client',
    async (client) => {
      const answer = await ask(client, 'chat', form, 'redact', unsigned[form])
      expect(answer.text).toContain('I think [REDACTED]')
      expect(answer.text).not.toContain(CODE)
      expect(verdicts(answer)).toBe('redact=redacted;count=1')
    },
  )
})
