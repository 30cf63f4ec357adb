import { expect, test } from 'vitest'
import { conversationOf } from '../../../test/conversation.ts'
import { withoutCacheMarks } from './cache-marks.ts'
import type { Conversation } from './conversation.ts'

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

test('all cache marks are removed, and nothing else', () => {
  const dropped = new Set<string>()
  expect(withoutCacheMarks(marked({ cache }), dropped)).toEqual(marked({}))
  expect([...dropped]).toEqual(['cache_control'])
})

test('a mark that is only inside a tool result is found', () => {
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
  expect(JSON.stringify(withoutCacheMarks(conversation, dropped))).not.toContain('ttl')
  expect([...dropped]).toEqual(['cache_control'])
})

test('a conversation without marks stays the same object', () => {
  const dropped = new Set<string>()
  const conversation = marked({})
  expect(withoutCacheMarks(conversation, dropped)).toBe(conversation)
  expect(dropped.size).toBe(0)
})
