import { createSecretKey } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { CHAT_COMPARISON_RULES } from '@sluice/wire/chat'
import { GEMINI_COMPARISON_RULES } from '@sluice/wire/gemini'
import { scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { MESSAGES_COMPARISON_RULES } from '@sluice/wire/messages'
import { RESPONSES_COMPARISON_RULES } from '@sluice/wire/responses'
import type { Headers } from '../http/request.ts'
import { ShortHmac } from './digests/short-hmac.ts'
import { SESSION_HEADERS, type CallSession, type SessionOwner, sessionOfCall } from './session.ts'

const FORMS = {
  chat: CHAT_COMPARISON_RULES,
  messages: MESSAGES_COMPARISON_RULES,
  responses: RESPONSES_COMPARISON_RULES,
  gemini: GEMINI_COMPARISON_RULES,
}

const ownerWith = (secret: Buffer): SessionOwner => ({
  key: createSecretKey(secret),
  hmac: new ShortHmac(secret),
  userId: 1,
})
const OWNER = ownerWith(Buffer.alloc(32, 7))

function session(
  body: object,
  headers: Headers = {},
  dialect: keyof typeof FORMS = 'messages',
  owner = OWNER,
): CallSession | undefined {
  return sessionOfCall(owner, headers, scanOf(body), FORMS[dialect])
}

const scanOf = (body: object): ScannedObject => scanObject(Buffer.from(JSON.stringify(body)))

/** A conversation that consists of one message with this part. */
function chatPart(part: object): object {
  return { messages: [{ role: 'user', content: [part] }] }
}

/** The tag of the session with this id. */
function named(id: string): string | undefined {
  return session({}, { 'x-session-id': id })?.tag
}

/** A first message that a provider may cache. */
const LONG_HELLO = 'hello '.repeat(700)
const HELLO = { messages: [{ role: 'user', content: LONG_HELLO }] }

describe('a named session', () => {
  test('a header names the session before the body does, and the first of several documented headers counts', () => {
    const given: Record<string, string> = {}
    for (const [index, name] of SESSION_HEADERS.toReversed().entries()) {
      given[name] = `id ${index}`
      expect(session({ ...HELLO, session_id: 'body' }, given)).toMatchObject({
        tag: named(`id ${index}`),
        isNamed: true,
      })
    }
  })

  test('a session id that is empty or longer than 256 characters is ignored, and the next one is used', () => {
    const long = 'x'.repeat(257)
    expect(session({ ...HELLO, prompt_cache_key: 'key' }, { 'x-session-id': long, session_id: '' })).toEqual({
      tag: named('key'),
      name: 'key',
      isNamed: true,
      hasCacheKey: true,
    })
    const longest = 'x'.repeat(256)
    expect(session({ ...HELLO, session_id: long, prompt_cache_key: longest })?.tag).toBe(named(longest))
  })

  test('of the fields that name a session, session_id counts before prompt_cache_key, and both before metadata.user_id', () => {
    const metadata = { user_id: 'user_1_account_2_session_0f-3' }
    expect(session({ ...HELLO, session_id: 'a', prompt_cache_key: 'b', metadata })?.tag).toBe(named('a'))
    expect(session({ ...HELLO, prompt_cache_key: 'b', metadata })?.tag).toBe(named('b'))
    expect(session({ ...HELLO, session_id: 7, metadata })?.tag).toBe(named('session_0f-3'))
    expect(session({ ...HELLO, metadata: { user_id: '{"device_id":"d","session_id":"0f-3"}' } })?.tag).toBe(
      named('0f-3'),
    )
    for (const user_id of ['ann', '{"session_id":7}', '{', '{"a":1}', 'null', 7])
      expect(session({ ...HELLO, metadata: { user_id } })?.isNamed).toBe(false)
  })
})

describe('a session by how its conversation begins', () => {
  const tagOf = (body: object, dialect: keyof typeof FORMS = 'messages') => session(body, {}, dialect)?.tag
  const mark = { cache_control: { type: 'ephemeral' } }

  const LONG = 'be kind '.repeat(2_000)

  test.each(['be kind', LONG])(
    'a conversation without a session id is the same session whatever its later turns and sampling parameters are',
    (system) => {
      const plain = { system, tools: [{ name: 'a' }], ...HELLO }
      const later = {
        model: 'm',
        temperature: 1,
        system: [{ type: 'text', text: system, ...mark }],
        tools: [{ name: 'a', ...mark }],
        messages: [
          { role: 'user', content: [{ type: 'text', text: LONG_HELLO, ...mark }] },
          { role: 'assistant', content: 'hi' },
          { role: 'user', content: 'more' },
        ],
      }
      expect(tagOf(later)).toBe(tagOf(plain))
    },
  )

  test.each(['be kind', LONG])(
    'other tools, another system prompt or another first message make another session',
    (system) => {
      const body = { system, tools: [{ name: 'a' }], ...HELLO }
      const tags = [
        body,
        { ...body, system: system.replace(/.$/, '!') },
        { ...body, tools: [{ name: 'b' }] },
        { ...body, messages: [{ role: 'user', content: 'hello!' }] },
      ].map((one) => tagOf(one))
      expect(new Set(tags).size).toBe(4)
    },
  )

  test("requests that differ only in the nonce of Claude Code's billing header belong to the same session", () => {
    const body = (nonce: string) => ({
      ...HELLO,
      system: [
        { type: 'text', text: `x-anthropic-billing-header: cc_version=2; cch=${nonce}` },
        { type: 'text', text: 'be kind' },
      ],
    })
    expect(tagOf(body('1'))).toBe(tagOf(body('2')))
  })

  test('chat requests without a session id belong to the same session only if their system messages are equal', () => {
    const chat = (system: string, ...more: object[]) =>
      tagOf(
        { messages: [{ role: 'system', content: system }, { role: 'user', content: LONG_HELLO }, ...more] },
        'chat',
      )
    expect(chat('a', { role: 'assistant', content: 'hi' })).toBe(chat('a'))
    expect(chat('b')).not.toBe(chat('a'))
  })

  test('a Responses input given as a text and the same input given as an item belong to the same session', () => {
    const item = { role: 'user', content: [{ type: 'input_text', text: LONG_HELLO }] }
    const of = (input: unknown) => tagOf({ instructions: 'be kind', input }, 'responses')
    expect(of([item, { role: 'assistant', content: 'hi' }])).toBe(of(LONG_HELLO))
    expect(of(`${LONG_HELLO}!`)).not.toBe(of(LONG_HELLO))
  })

  test('a Gemini request without a session id belongs to the session that its first entry of contents identifies', () => {
    const of = (text: string, ...more: object[]) =>
      tagOf({ contents: [{ role: 'user', parts: [{ text }] }, ...more] }, 'gemini')
    expect(of(LONG_HELLO, { role: 'model', parts: [{ text: 'hi' }] })).toBe(of(LONG_HELLO))
    expect(of(`${LONG_HELLO}!`)).not.toBe(of(LONG_HELLO))
  })

  test.each<[keyof typeof FORMS, (text: string) => object]>([
    ['chat', (text) => ({ tools: [], messages: [{ role: 'user', content: text }] })],
    ['messages', (text) => ({ system: 'be kind', messages: [{ role: 'user', content: text }] })],
    ['responses', (text) => ({ instructions: 'be kind', input: text })],
    ['gemini', (text) => ({ systemInstruction: { parts: [] }, contents: [{ parts: [{ text }] }] })],
  ])(
    'a conversation in %s without a session id has a session from 4,096 bytes of tools, system and messages on',
    (dialect, body) => {
      const received = (text: string): number =>
        Object.values(body(text)).reduce((sum: number, value) => sum + JSON.stringify(value).length, 0)
      const text = 'x'.repeat(4_096 - received(''))
      expect(tagOf({ ...body(text), metadata: 'y'.repeat(5_000) }, dialect)).toMatch(/^[0-9a-f]{64}$/)
      expect(tagOf({ ...body(text.slice(1)), metadata: 'y'.repeat(5_000) }, dialect)).toBeUndefined()
    },
  )

  test.each<[string, keyof typeof FORMS, object]>([
    [
      'a picture by address',
      'chat',
      chatPart({ type: 'image_url', image_url: { url: 'https://a.example/b' } }),
    ],
    ['a file by id', 'chat', chatPart({ type: 'file', file: { file_id: 'file-1' } })],
    ['a document', 'messages', chatPart({ type: 'document', source: { type: 'file', file_id: 'file_1' } })],
    ['an earlier answer', 'responses', { input: 'go on', previous_response_id: 'resp_1' }],
    [
      'a file of Google',
      'gemini',
      { contents: [{ parts: [{ fileData: { fileUri: 'https://a.example/b' } }] }] },
    ],
    ['a kept context of Google', 'gemini', { contents: [{ parts: [{ text: 'a' }] }], cachedContent: 'a/b' }],
  ])('a short conversation without a session id has a session if it names %s', (_, dialect, body) => {
    expect(tagOf(body, dialect)).toMatch(/^[0-9a-f]{64}$/)
  })

  test('a request without a message of the user has no session', () => {
    expect(session({ messages: [] })).toBeUndefined()
    expect(session({ messages: [{ role: 'system', content: 'a' }] }, {}, 'chat')).toBeUndefined()
  })
})

test('the tag of a session differs by secret, by user, by session id, and by whether the session has an id', () => {
  const text = 'a'.repeat(200)
  const tags = [
    session({}, { 'x-session-id': text }),
    session({}, { 'x-session-id': text }, 'messages', ownerWith(Buffer.alloc(32, 8))),
    session({}, { 'x-session-id': text }, 'messages', { ...OWNER, userId: 2 }),
    session({}, { 'x-session-id': 'b' }),
    // Its beginning consists of the same bytes.
    sessionOfCall(OWNER, {}, scanOf({ messages: [{ role: 'user', content: text }] }), FORMS.messages, true),
  ].map((one) => one?.tag)
  expect(new Set(tags).size).toBe(5)
  for (const tag of tags) expect(tag).toMatch(/^[0-9a-f]{64}$/)
})

test('the headers that may name a session are checked in the documented order, x-session-id first', () => {
  expect(SESSION_HEADERS).toEqual([
    'x-session-id',
    'x-claude-code-session-id',
    'session_id',
    'session-id',
    'x-qwen-code-session-id',
    'x-session-affinity',
    'x-bf-session-id',
  ])
})
