import { createSecretKey, type KeyObject } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { CHAT_COMPARISON_RULES } from './chat/index.ts'
import {
  ConversationDigests,
  type ConversationComparisonRules,
  type DigestSeed,
  conversationOpening,
} from './conversation-digests.ts'
import { conversationFingerprint } from './conversation-fingerprint.ts'
import { CONVERSE_COMPARISON_RULES } from './converse/index.ts'
import { GEMINI_COMPARISON_RULES } from './gemini/index.ts'
import { scanObject } from './json/json-scan.ts'
import type { ScannedObject } from './json/scanned-object.ts'
import { MESSAGES_COMPARISON_RULES } from './messages/index.ts'
import { RESPONSES_COMPARISON_RULES } from './responses/index.ts'

const KEY = createSecretKey(Buffer.alloc(32, 7))
const SEED: DigestSeed = { text: 'seed', mark: 0x5eed }

function digests(form: ConversationComparisonRules, request: object, seed = SEED): ConversationDigests {
  return new ConversationDigests(scanObject(Buffer.from(JSON.stringify(request))), form, {
    key: KEY,
    seed,
    model: 'm',
  })
}

function last(form: ConversationComparisonRules, request: object, seed = SEED): string {
  const all = digests(form, request, seed)
  return all.digest(all.turns).toString('hex')
}

const hi = { role: 'user', content: 'hi' }

describe('what separates conversations', () => {
  test('two seeds give different digests of the same conversation', () => {
    const request = { model: 'm', messages: [hi] }
    expect(last(CHAT_COMPARISON_RULES, request, { text: 'other', mark: 1 })).not.toBe(
      last(CHAT_COMPARISON_RULES, request),
    )
  })
  test('cache_control within tool arguments or schemas is content and no cache directive, so it changes the digest', () => {
    const call = (input: object): object => ({
      messages: [{ role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input }] }],
    })
    expect(last(MESSAGES_COMPARISON_RULES, call({ cache_control: 1 }))).not.toBe(
      last(MESSAGES_COMPARISON_RULES, call({})),
    )
    const schema = (properties: object): object => ({
      messages: [hi],
      tools: [{ name: 'f', input_schema: { type: 'object', properties } }],
    })
    expect(last(MESSAGES_COMPARISON_RULES, schema({ cache_control: {} }))).not.toBe(
      last(MESSAGES_COMPARISON_RULES, schema({})),
    )
  })
  test('a text with citations, or divided into two parts, gives another conversation digest than the plain text', () => {
    const cited = { role: 'user', content: [{ type: 'text', text: 'hi', citations: [] }] }
    expect(last(MESSAGES_COMPARISON_RULES, { messages: [cited] })).not.toBe(
      last(MESSAGES_COMPARISON_RULES, { messages: [hi] }),
    )
    const two = { role: 'user', content: [hi, hi].map(() => ({ type: 'text', text: 'hi' })) }
    expect(last(MESSAGES_COMPARISON_RULES, { messages: [two] })).not.toBe(
      last(MESSAGES_COMPARISON_RULES, { messages: [hi] }),
    )
  })
  test.each([
    ['thinking', { thinking: { type: 'enabled', budget_tokens: 2000 } }],
    ['a choice of tools', { tool_choice: { type: 'any' } }],
    ['an unknown member', { persona: 'pirate' }],
  ])(
    'the digest of a conversation differs for requests that differ in a member that changes the answer: %s',
    (_, member) => {
      expect(last(MESSAGES_COMPARISON_RULES, { messages: [hi], ...member })).not.toBe(
        last(MESSAGES_COMPARISON_RULES, { messages: [hi] }),
      )
    },
  )
  test.each([
    [
      'a part',
      CHAT_COMPARISON_RULES,
      [{ role: 'user', content: [{ type: 'text', text: 'hi', cache_control: {} }, hi] }],
    ],
    [
      'a turn',
      MESSAGES_COMPARISON_RULES,
      [{ role: 'user', content: [{ type: 'text', text: 'hi' }, hi], cache_control: {} }],
    ],
    [
      'a result in a result',
      MESSAGES_COMPARISON_RULES,
      [
        {
          role: 'user',
          content: [{ type: 'tool_result', content: [{ type: 'text', text: 'a', cache_control: {} }, hi] }],
        },
      ],
    ],
    [
      'a detail of reasoning',
      CHAT_COMPARISON_RULES,
      [{ role: 'assistant', reasoning_details: [{ text: 'a', cache_control: {} }] }],
    ],
  ])('a cache directive does not change the digest of a conversation, at %s', (_, form, messages) => {
    const without = JSON.parse(JSON.stringify({ messages }).replace(',"cache_control":{}', '')) as object
    expect(JSON.stringify(without)).not.toContain('cache_control')
    expect(last(form, { messages })).toBe(last(form, without))
  })
  test('the short digest of a system prompt depends on the system instruction of a Gemini request, whatever role it states', () => {
    const system = (role: string, text: string): string =>
      conversationFingerprint(
        scanObject(
          Buffer.from(JSON.stringify({ contents: [hi], systemInstruction: { role, parts: [{ text }] } })),
        ),
        GEMINI_COMPARISON_RULES,
        KEY,
      ).system()
    for (const role of ['system', 'user', 'model']) expect(system(role, 'a')).not.toBe(system(role, 'b'))
  })
  test('the digest of a Gemini conversation depends on generationConfig, except for the settings of sampling', () => {
    const request = (generationConfig: object): object => ({
      contents: [{ parts: [{ text: 'hi' }] }],
      generationConfig,
    })
    const plain = last(
      GEMINI_COMPARISON_RULES,
      request({ temperature: 1, thinkingConfig: { thinkingBudget: 0 } }),
    )
    expect(
      last(
        GEMINI_COMPARISON_RULES,
        request({ topP: 1, maxOutputTokens: 9, thinkingConfig: { thinkingBudget: 0 } }),
      ),
    ).toBe(plain)
    expect(
      last(GEMINI_COMPARISON_RULES, request({ temperature: 1, thinkingConfig: { thinkingBudget: 9 } })),
    ).not.toBe(plain)
  })
})

describe('the marks', () => {
  const marks = (request: object): number[] => {
    const all = digests(MESSAGES_COMPARISON_RULES, request)
    return Array.from({ length: all.turns }, (_, index) => all.mark(index + 1))
  }
  const LONG = 'The quick brown fox. '.repeat(500)
  const said = (text: string): object => ({ role: 'user', content: [{ type: 'text', text }] })
  test('conversations of equal lengths have different short digests (marks) in each turn from the first difference on', () => {
    const all = Array.from({ length: 100 }, (_, index) =>
      marks({ messages: [said(`task ${100 + index} ${LONG}`), said('hello'), hi] }),
    )
    for (const turn of [0, 1, 2]) expect(new Set(all.map((one) => one[turn])).size).toBe(100)
  })
  test('the short digests (marks) of a conversation do not change if it continues, or if a text gets a cache directive', () => {
    const more = { type: 'text', text: LONG, cache_control: { type: 'ephemeral' } }
    const before = marks({ system: LONG, messages: [{ role: 'user', content: LONG }, said('b')] })
    const after = marks({
      messages: [{ role: 'user', content: [more] }, { role: 'user', content: 'b' }, hi],
      system: [{ ...more }],
    })
    expect(after.slice(0, 2)).toEqual(before)
    expect(after[2]).not.toBe(before[1])
  })
})

describe("Claude Code's billing line", () => {
  const HEADER = 'x-anthropic-billing-header: '
  const system = (given: unknown): object => ({ system: given, messages: [hi] })
  const block = (text: string): object => ({ type: 'text', text })
  const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
  const REQUESTS: readonly [
    string,
    ConversationComparisonRules,
    (header: string, words: string) => object,
  ][] = [
    ['a block', MESSAGES_COMPARISON_RULES, (header, words) => system([block(header), block(words)])],
    ['the first line of a text', MESSAGES_COMPARISON_RULES, (header, words) => system(`${header}\n${words}`)],
    [
      'a block of Converse',
      CONVERSE_COMPARISON_RULES,
      (header, words) => system([{ text: header }, { text: words }]),
    ],
    [
      'a system message of chat',
      CHAT_COMPARISON_RULES,
      (header, words) => ({ messages: [{ role: 'system', content: `${header}\n${words}` }, hi] }),
    ],
    [
      'a part of a system message of chat',
      CHAT_COMPARISON_RULES,
      (header, words) => ({ messages: [{ role: 'system', content: [block(header), block(words)] }, hi] }),
    ],
    [
      'instructions',
      RESPONSES_COMPARISON_RULES,
      (header, words) => ({ instructions: `${header}\n${words}`, input: [hi] }),
    ],
    [
      'an item',
      RESPONSES_COMPARISON_RULES,
      (header, words) => ({
        input: [{ role: 'developer', content: [{ type: 'input_text', text: `${header}\n${words}` }] }, hi],
      }),
    ],
    [
      'a system instruction',
      GEMINI_COMPARISON_RULES,
      (header, words) => ({ systemInstruction: { parts: [{ text: header }, { text: words }] }, contents }),
    ],
    [
      'a system instruction, as older clients spell it',
      GEMINI_COMPARISON_RULES,
      (header, words) => ({ system_instruction: { parts: { text: `${header}\n${words}` } }, contents }),
    ],
  ]

  test.each(REQUESTS)(
    "the billing line of Claude Code, as %s, does not affect a conversation's digest, but adds its bytes to the upper bound",
    (_, form, request) => {
      const [one, another] = ['a', 'bbbb'].map((nonce) =>
        digests(form, request(HEADER + nonce, 'You are Claude.')),
      )
      const turns = one?.turns ?? 0
      expect(one?.digest(turns)).toEqual(another?.digest(turns))
      expect((another?.bound(turns, 10) ?? 0) - (one?.bound(turns, 10) ?? 0)).toBe(3)
    },
  )
  test.each(REQUESTS)(
    'a changed billing line of Claude Code, as %s, makes no other session and no change of the system prompt',
    (_, form, request) => {
      const [one, another] = ['a', 'bbbb'].map((nonce) =>
        scanObject(Buffer.from(JSON.stringify(request(HEADER + nonce, 'You are Claude.')))),
      )
      const opening = (scan: ScannedObject | undefined): string =>
        Buffer.concat([...(conversationOpening(scan!, form) ?? [])]).toString()
      expect(opening(one)).toBe(opening(another))
      expect(opening(one)).toContain('You are Claude.')
      const print = (scan: ScannedObject | undefined): string[] => {
        const printed = conversationFingerprint(scan!, form, createSecretKey(Buffer.alloc(32, 1)))
        return [printed.system(), printed.messages(printed.turns)]
      }
      expect(print(one)).toEqual(print(another))
    },
  )
  test.each(REQUESTS)(
    'a change after the billing line of Claude Code, as %s, gives another conversation digest',
    (_, form, request) => {
      const [one, another] = ['You are Claude.', 'You are Cloud.'].map((words) =>
        last(form, request(`${HEADER}a`, words)),
      )
      expect(one).not.toBe(another)
    },
  )
})

describe('the bound of a conversation that goes on', () => {
  const picture = (url: string): object => ({
    role: 'user',
    content: [{ type: 'image_url', image_url: { url } }],
  })
  const INLINE = `data:image/png;base64,${'A'.repeat(40_000)}`
  const bound = (messages: readonly object[], turn: number): number =>
    digests(CHAT_COMPARISON_RULES, { model: 'm', messages }).bound(turn, 1000)

  test('the upper bound of a continued prompt is its reported tokens, the appended bytes, and 8 tokens for each message', () => {
    const more = [
      { role: 'assistant', content: 'hello' },
      { role: 'user', content: 'more' },
    ]
    const bytes = JSON.stringify(more).length - 2
    const framing = JSON.stringify({ model: 'm', messages: [] }).length
    expect(bound([hi, ...more], 1)).toBeGreaterThanOrEqual(1000 + bytes + 16)
    expect(bound([hi, ...more], 1)).toBeLessThanOrEqual(1000 + bytes + 16 + framing + 1)
  })
  test('a picture appended to a known conversation adds the fixed number of tokens of a picture to the upper bound of its prompt', () => {
    const more = bound([hi, picture(INLINE)], 1)
    expect(more).toBeGreaterThan(11_000)
    expect(more).toBeLessThan(11_300)
  })
  test('a picture appended to a known conversation counts if the name of its member is written with escapes', () => {
    const text = JSON.stringify({ model: 'm', messages: [hi, picture('https://example.com/a.png')] })
    const escaped = text.replaceAll('"content":[', String.raw`"cont\u0065nt":[`)
    expect(escaped).not.toBe(text)
    const scope = { key: KEY, seed: SEED, model: 'm' }
    const known = new ConversationDigests(scanObject(Buffer.from(escaped)), CHAT_COMPARISON_RULES, scope)
    expect(known.bound(1, 1000)).toBeGreaterThan(11_000)
  })
  test('a picture appended to a known conversation in a tool result counts as a picture, and not by its bytes', () => {
    const source = { type: 'base64', media_type: 'image/png', data: 'A'.repeat(40_000) }
    const content = [{ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'image', source }] }]
    const known = digests(MESSAGES_COMPARISON_RULES, { messages: [hi, { role: 'user', content }] })
    const without = digests(MESSAGES_COMPARISON_RULES, {
      messages: [hi, { role: 'user', content: 'A'.repeat(40_000) }],
    })
    expect(known.bound(1, 1000)).toBeLessThan(without.bound(1, 1000))
  })
  test('a picture in a turn whose tokens were reported is not counted again', () => {
    expect(bound([picture(INLINE), hi], 1)).toBeLessThan(1200)
  })
  test('a picture given by its URL in a turn whose tokens were reported is counted again, because it may have changed', () => {
    expect(bound([picture('https://example.com/a.png'), hi], 1)).toBeGreaterThan(11_000)
  })
})

test.each([
  ['responses that continue a stored one', RESPONSES_COMPARISON_RULES, { previous_response_id: 'resp_1' }],
  ['responses that may be truncated', RESPONSES_COMPARISON_RULES, { truncation: 'auto' }],
  [
    'messages that may be compacted',
    MESSAGES_COMPARISON_RULES,
    { context_management: { edits: [{ type: 'compact_20260112' }] } },
  ],
  ['contents in a cache', GEMINI_COMPARISON_RULES, { cachedContent: 'cachedContents/1' }],
  ['an answer that is continued', GEMINI_COMPARISON_RULES, { continuation_token: 'dG9rZW4=' }],
])(
  'the prompt tokens of %s cannot be computed from those of an earlier request of the conversation',
  (_, form, member) => {
    const scan = (request: object) => scanObject(Buffer.from(JSON.stringify(request)))
    expect(form.isUnforeseeable?.(scan(member))).toBe(true)
    expect(form.isUnforeseeable?.(scan({ truncation: 'disabled' }))).toBe(false)
  },
)

// Texts of more than 8 KB are digested in another way than short ones.
describe.each([
  ['short', 1],
  ['long', 2_000],
])('a conversation of %s texts', (_, repeated) => {
  const text = 'some text. '.repeat(repeated)
  const said = [hi, { role: 'assistant', content: text }, { role: 'user', content: text }]
  const of = (messages: readonly object[]): ConversationDigests =>
    digests(CHAT_COMPARISON_RULES, { messages })
  const whole = of([...said, { role: 'assistant', content: text }, hi])

  test('a longer conversation has, at the last turn of the shorter one that it continues, the same digest and mark', () => {
    const earlier = of(said)
    expect(whole.digest(3)).toEqual(earlier.digest(3))
    expect(whole.digest(3).readUInt32LE()).toBe(earlier.mark(3))
  })
  test('two conversations have different digests if one byte differs, whether first, last, or in between', () => {
    for (const at of [0, Math.floor(text.length / 2), text.length - 1]) {
      const other = `${text.slice(0, at)}#${text.slice(at + 1)}`
      const edited = of([hi, { role: 'assistant', content: other }, { role: 'user', content: text }])
      expect(edited.digest(1)).toEqual(whole.digest(1))
      // The mark covers a few bytes only, so that the digest itself must tell them apart.
      expect(edited.digest(3).subarray(4)).not.toEqual(whole.digest(3).subarray(4))
    }
  })
  test('the digest of a conversation depends on the seed, and where its texts are long, also on the key', () => {
    const scan = scanObject(Buffer.from(JSON.stringify({ messages: said })))
    const under = (scope: { readonly key?: KeyObject; readonly seed?: DigestSeed }): Buffer =>
      new ConversationDigests(scan, CHAT_COMPARISON_RULES, {
        key: KEY,
        seed: SEED,
        model: 'm',
        ...scope,
      }).digest(3)
    expect(under({ seed: { ...SEED, text: 'other' } })).not.toEqual(under({}))
    const otherKey = createSecretKey(Buffer.alloc(32, 8))
    expect(under({ key: otherKey }).equals(under({}))).toBe(repeated === 1)
  })
})
