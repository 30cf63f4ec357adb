import { expect, test } from 'vitest'
import { conversationOf } from '../../../test/samples/conversation.ts'
import {
  CHAT_BREAKPOINTS,
  CHAT_CACHE_MARKS,
  MESSAGES_CACHE_MARKS,
  RESPONSES_BREAKPOINTS,
  type CacheMarkRules,
  withAcceptedCacheMarks,
  withCacheLifetimeOfRequest,
} from './cache-marks.ts'
import { readCacheMark } from './messages/cache-mark.ts'
import type { CacheMark, Conversation } from './conversation.ts'

const cache = { ttl: '1h' } as const

/** A conversation with this mark on every object that may have one. */
function marked(mark: object): Conversation {
  const text = { kind: 'text', text: 'hi', ...mark } as const
  const media = {
    kind: 'media',
    source: { kind: 'inline', mediaType: 'image/png', data: 'AAAA' },
    ...mark,
  } as const
  return conversationOf({
    system: [text],
    tools: [{ name: 'f', description: undefined, schema: undefined, strict: undefined, ...mark }],
    turns: [
      { role: 'assistant', parts: [{ kind: 'tool-call', id: 'a', name: 'f', input: '{}', ...mark }] },
      {
        role: 'user',
        parts: [
          { kind: 'tool-result', callId: 'a', parts: [text, media], isError: false, ...mark },
          { kind: 'opaque', protocol: 'messages', value: { cache_control: { type: 'ephemeral' } } },
          media,
        ],
      },
    ],
  })
}

/** The marks of a request of user's texts, and what was reported. */
function adapted(
  marks: readonly (CacheMark | undefined)[],
  rules: CacheMarkRules | undefined,
): { marks: (CacheMark | undefined)[]; dropped: string[] } {
  const turns = marks.map((mark) => ({
    role: 'user' as const,
    parts: [{ kind: 'text' as const, text: 'x', ...(mark && { cache: mark }) }],
  }))
  const dropped = new Set<string>()
  const result = withAcceptedCacheMarks(conversationOf({ turns }), rules, dropped)
  const kept = result.turns.map(({ parts: [part] }) => (part?.kind === 'text' ? part.cache : undefined))
  return { marks: kept, dropped: [...dropped] }
}

const breakpoint = (ttl?: CacheMark['ttl']): CacheMark => ({ ttl, field: 'prompt_cache_breakpoint' })

test('cache marks are removed for an upstream that does not support them, and reported as dropped', () => {
  const dropped = new Set<string>()
  expect(withAcceptedCacheMarks(marked({ cache }), undefined, dropped)).toEqual(marked({}))
  expect([...dropped]).toEqual(['cache_control'])
})

test('a cache mark that is only inside a tool result is found', () => {
  const conversation = conversationOf({
    turns: [
      {
        role: 'user',
        parts: [
          { kind: 'tool-result', callId: 'a', parts: [{ kind: 'text', text: 'x', cache }], isError: false },
        ],
      },
    ],
  })
  const dropped = new Set<string>()
  expect(JSON.stringify(withAcceptedCacheMarks(conversation, undefined, dropped))).not.toContain('ttl')
  expect([...dropped]).toEqual(['cache_control'])
})

test('adapting the cache marks of a conversation that has none returns the same object', () => {
  const dropped = new Set<string>()
  const conversation = marked({})
  expect(withAcceptedCacheMarks(conversation, MESSAGES_CACHE_MARKS, dropped)).toBe(conversation)
  expect(dropped.size).toBe(0)
})

test.each([
  [undefined, '30m'],
  ['5m', '30m'],
  ['1h', '12h'],
] as const)('cache_control with a lifetime of %s becomes a breakpoint of %s', (ttl, longer) => {
  expect(adapted([{ ttl }], CHAT_BREAKPOINTS)).toEqual({ marks: [breakpoint(longer)], dropped: [] })
})

test.each([
  [undefined, '1h', []],
  ['30m', '1h', []],
  // The longest lifetime of the target is shorter.
  ['12h', '1h', ['prompt_cache_breakpoint.ttl']],
] as const)('a breakpoint with a lifetime of %s becomes cache_control of %s', (ttl, longer, dropped) => {
  expect(adapted([breakpoint(ttl)], MESSAGES_CACHE_MARKS)).toEqual({
    marks: [{ ttl: longer }],
    dropped: [...dropped],
  })
})

test('a cache breakpoint without a lifetime gets the lifetime that the request states for its cache', () => {
  expect(adapted([breakpoint()], CHAT_BREAKPOINTS).marks).toEqual([breakpoint()])
  const turns = [
    { role: 'user' as const, parts: [{ kind: 'text' as const, text: 'x', cache: breakpoint() }] },
  ]
  const conversation = withCacheLifetimeOfRequest(conversationOf({ turns }), { ttl: '12h' })
  expect(conversation.turns[0]?.parts[0]).toMatchObject({ cache: breakpoint('12h') })
})

test('of more than four cache marks the last four are sent to messages, and the others reported as dropped', () => {
  const marks = Array.from({ length: 6 }, () => ({ ttl: '5m' }) as const)
  const { marks: kept, dropped } = adapted(marks, MESSAGES_CACHE_MARKS)
  expect(kept.map((mark) => mark !== undefined)).toEqual([false, false, true, true, true, true])
  expect(dropped).toEqual(['cache_control'])
})

test('an earlier cache mark gets at least the lifetime of a later one', () => {
  const { marks, dropped } = adapted([{ ttl: undefined }, { ttl: '1h' }, { ttl: '5m' }], MESSAGES_CACHE_MARKS)
  expect(marks).toEqual([{ ttl: '1h' }, { ttl: '1h' }, { ttl: '5m' }])
  expect(dropped).toEqual([])
})

test("cache marks on tools, calls and answers are dropped where OpenAI's protocols have no place for them", () => {
  const places = (rules: CacheMarkRules): number =>
    JSON.stringify(withAcceptedCacheMarks(marked({ cache }), rules, new Set())).split(
      'prompt_cache_breakpoint',
    ).length - 1
  // System, two parts of the result, the result and the picture.
  expect(places(CHAT_BREAKPOINTS)).toBe(5)
  const answer = conversationOf({
    turns: [{ role: 'assistant', parts: [{ kind: 'text', text: 'x', cache }] }],
  })
  const dropped = new Set<string>()
  expect(withAcceptedCacheMarks(answer, CHAT_BREAKPOINTS, dropped)).not.toEqual(
    withAcceptedCacheMarks(answer, undefined, new Set()),
  )
  expect([...dropped]).toEqual([])
  withAcceptedCacheMarks(answer, RESPONSES_BREAKPOINTS, dropped)
  expect([...dropped]).toEqual(['cache_control'])
})

test('a cache mark on the last part of a tool result is moved to the result itself for messages, but not for chat', () => {
  const text = { kind: 'text', text: 'a' } as const
  const given = conversationOf({
    turns: [
      {
        role: 'user',
        parts: [
          { kind: 'tool-result', callId: 'a', parts: [text, { ...text, cache }], isError: false },
          { kind: 'tool-result', callId: 'b', parts: [{ ...text, cache }, text], isError: false },
        ],
      },
    ],
  })
  const [atEnd, before] = withAcceptedCacheMarks(given, MESSAGES_CACHE_MARKS, new Set()).turns[0]?.parts ?? []
  expect(atEnd).toEqual({ kind: 'tool-result', callId: 'a', parts: [text, text], isError: false, cache })
  expect(before).toMatchObject({ parts: [{ cache }, text] })
  expect(withAcceptedCacheMarks(given, CHAT_CACHE_MARKS, new Set()).turns).toEqual(given.turns)
})

test.each([
  [{ type: 'x' }, "Invalid 'block.cache_control.type': expected 'ephemeral', got something else."],
  [
    { type: 'ephemeral', ttl: '2h' },
    "Invalid 'block.cache_control.ttl': expected '5m' or '1h', got something else.",
  ],
  ['ephemeral', "Invalid 'block.cache_control.type': expected 'ephemeral', got something else."],
])('a cache_control of %j is refused where it is kept, and reported as dropped elsewhere', (given, error) => {
  const conversation = marked(readCacheMark({ cache_control: given }, 'block'))
  for (const rules of [MESSAGES_CACHE_MARKS, CHAT_CACHE_MARKS, CHAT_BREAKPOINTS])
    expect(() => withAcceptedCacheMarks(conversation, rules, new Set())).toThrow(error)
  const dropped = new Set<string>()
  expect(withAcceptedCacheMarks(conversation, undefined, dropped)).toEqual(marked({}))
  expect([...dropped]).toEqual(['cache_control'])
})
