import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { CHAT_CONVERSATION } from '@sluice/wire/chat'
import { GEMINI_CONVERSATION } from '@sluice/wire/gemini'
import { scanObject } from '@sluice/wire/json/json-scan'
import { MESSAGES_CONVERSATION } from '@sluice/wire/messages'
import { RESPONSES_CONVERSATION } from '@sluice/wire/responses'
import type { Headers } from '../../http/request.ts'
import { SESSION_HEADERS, sessionOf, sessionTag } from './session.ts'

const FORMS = {
  chat: CHAT_CONVERSATION,
  messages: MESSAGES_CONVERSATION,
  responses: RESPONSES_CONVERSATION,
  gemini: GEMINI_CONVERSATION,
}

function session(body: object, headers: Headers = {}, dialect: keyof typeof FORMS = 'messages') {
  return sessionOf(headers, scanObject(Buffer.from(JSON.stringify(body))), FORMS[dialect])
}

const HELLO = { messages: [{ role: 'user', content: 'hello' }] }

describe('a named session', () => {
  test('a header names it, in the order of the contract', () => {
    const given: Record<string, string> = {}
    for (const [index, name] of SESSION_HEADERS.toReversed().entries()) {
      given[name] = `id ${index}`
      expect(session({ ...HELLO, session_id: 'body' }, given)).toMatchObject({
        id: `id ${index}`,
        isNamed: true,
      })
    }
  })

  test('an id that is empty or longer than 256 characters is passed over', () => {
    const long = 'x'.repeat(257)
    expect(session({ ...HELLO, prompt_cache_key: 'key' }, { 'x-session-id': long, session_id: '' })).toEqual({
      id: 'key',
      isNamed: true,
      hasCacheKey: true,
    })
    expect(session({ ...HELLO, session_id: long, prompt_cache_key: 'x'.repeat(256) })?.id).toHaveLength(256)
  })

  test('session_id comes before prompt_cache_key, and both before metadata.user_id', () => {
    const metadata = { user_id: 'user_1_account_2_session_0f-3' }
    expect(session({ ...HELLO, session_id: 'a', prompt_cache_key: 'b', metadata })?.id).toBe('a')
    expect(session({ ...HELLO, prompt_cache_key: 'b', metadata })?.id).toBe('b')
    expect(session({ ...HELLO, session_id: 7, metadata })?.id).toBe('session_0f-3')
    expect(session({ ...HELLO, metadata: { user_id: '{"device_id":"d","session_id":"0f-3"}' } })?.id).toBe(
      '0f-3',
    )
    for (const user_id of ['ann', '{"session_id":7}', '{', '{"a":1}', 'null', 7])
      expect(session({ ...HELLO, metadata: { user_id } })?.isNamed).toBe(false)
  })
})

describe('a session by how its conversation begins', () => {
  const idOf = (body: object, dialect: keyof typeof FORMS = 'messages') => session(body, {}, dialect)?.id
  const mark = { cache_control: { type: 'ephemeral' } }

  test('later turns, sampling and cache directives do not change it', () => {
    const plain = { system: 'be kind', tools: [{ name: 'a' }], ...HELLO }
    const later = {
      model: 'm',
      temperature: 1,
      system: [{ type: 'text', text: 'be kind', ...mark }],
      tools: [{ name: 'a', ...mark }],
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'hello', ...mark }] },
        { role: 'assistant', content: 'hi' },
        { role: 'user', content: 'more' },
      ],
    }
    expect(idOf(later)).toBe(idOf(plain))
  })

  test('tools, system and first message each change it', () => {
    const body = { system: 'be kind', tools: [{ name: 'a' }], ...HELLO }
    const ids = [
      body,
      { ...body, system: 'be brief' },
      { ...body, tools: [{ name: 'b' }] },
      { ...body, messages: [{ role: 'user', content: 'hello!' }] },
    ].map((one) => idOf(one))
    expect(new Set(ids).size).toBe(4)
  })

  test('the nonce of a billing header does not change it', () => {
    const body = (nonce: string) => ({
      ...HELLO,
      system: [
        { type: 'text', text: `x-anthropic-billing-header: cc_version=2; cch=${nonce}` },
        { type: 'text', text: 'be kind' },
      ],
    })
    expect(idOf(body('1'))).toBe(idOf(body('2')))
  })

  test('system messages of chat are part of the beginning', () => {
    const chat = (system: string, ...more: object[]) =>
      idOf(
        { messages: [{ role: 'system', content: system }, { role: 'user', content: 'hello' }, ...more] },
        'chat',
      )
    expect(chat('a', { role: 'assistant', content: 'hi' })).toBe(chat('a'))
    expect(chat('b')).not.toBe(chat('a'))
  })

  test('the input of responses is a text or its items', () => {
    const item = { role: 'user', content: [{ type: 'input_text', text: 'hello' }] }
    const of = (input: unknown) => idOf({ instructions: 'be kind', input }, 'responses')
    expect(of([item, { role: 'assistant', content: 'hi' }])).toBe(of('hello'))
    expect(of('hello!')).not.toBe(of('hello'))
  })

  test('contents of gemini', () => {
    const of = (text: string, ...more: object[]) =>
      idOf({ contents: [{ role: 'user', parts: [{ text }] }, ...more] }, 'gemini')
    expect(of('hello', { role: 'model', parts: [{ text: 'hi' }] })).toBe(of('hello'))
    expect(of('hello!')).not.toBe(of('hello'))
  })

  test('a request without a turn has none', () => {
    expect(session({ messages: [] })).toBeUndefined()
    expect(session({ messages: [{ role: 'system', content: 'a' }] }, {}, 'chat')).toBeUndefined()
  })
})

test('the tag of a session differs by user, by session, and by how it is named', () => {
  const key = randomBytes(32)
  const tags = [
    sessionTag(key, 1, { id: 'a', isNamed: true }, 16),
    sessionTag(key, 2, { id: 'a', isNamed: true }, 16),
    sessionTag(key, 1, { id: 'b', isNamed: true }, 16),
    sessionTag(key, 1, { id: 'a', isNamed: false }, 16),
  ]
  expect(new Set(tags).size).toBe(4)
  for (const tag of tags) expect(tag).toMatch(/^[0-9a-f]{16}$/)
})
