import { describe, expect, test } from 'vitest'
import { conversationOf, upstreamOf } from '../../../../../test/samples/conversation.ts'
import type { Conversation, Effort, Part, Thinking, Tool, Turn } from '../../conversation.ts'
import { encodeRequest } from './request.ts'
import { maxTokensOf, withoutThinkingSuffix, withSuffixThinking } from './thinking.ts'

const user: Turn = { role: 'user', parts: [{ kind: 'text', text: 'hi' }] }
const call: Part = { kind: 'tool-call', id: 'a', name: 'f', input: '{}' }
const result: Turn = {
  role: 'user',
  parts: [{ kind: 'tool-result', callId: 'a', parts: [], isError: false }],
}
const thought: Part = { kind: 'thinking', text: 'hm', proof: { protocol: 'messages', value: 's' } }

const tool: Tool = { name: 'f', description: undefined, schema: undefined, strict: undefined }

const FIELDS = ['max_tokens', 'thinking', 'output_config', 'temperature', 'top_p', 'top_k'] as const

/** The request for a model of this name, which may have the suffix. */
function sent(fields: Partial<Conversation>, name = 'm'): { fields: object; dropped: string[] } {
  const upstream = upstreamOf(name)
  const replyContext = conversationOf({ turns: [user], tools: [tool], ...fields })
  const meant =
    withoutThinkingSuffix(name) === undefined
      ? replyContext
      : withSuffixThinking(replyContext, upstream.capabilities)
  const dropped = new Set<string>()
  const body = JSON.parse(encodeRequest(meant, upstream, dropped).toString()) as Record<string, unknown>
  expect(maxTokensOf(meant, upstream.capabilities)).toBe(body['max_tokens'])
  return {
    fields: Object.fromEntries(FIELDS.filter((f) => f in body).map((f) => [f, body[f]])),
    dropped: [...dropped].sort(),
  }
}

const SAMPLING = { temperature: 0.3, topP: 0.5, topK: 7 }
const budget = (tokens: number): Thinking => ({ kind: 'budget', tokens })
const effort = (named: Effort | undefined): Thinking => ({ kind: 'adaptive', effort: named })
const enabled = (budget_tokens: number) => ({ type: 'enabled', budget_tokens })

describe('the thinking suffix', () => {
  test.each([
    ['claude-x-thinking', 'claude-x'],
    ['-thinking', undefined],
    ['claude-x', undefined],
    ['claude-thinking-x', undefined],
  ])('the -thinking suffix of %s is sent to messages as %s', (model, expected) => {
    expect(withoutThinkingSuffix(model)).toBe(expected)
  })

  test('the suffix -thinking of a model name becomes a budget of 80 percent of max_tokens, with temperature 1 and no top_p', () => {
    expect(sent({ maxTokens: 10_000, ...SAMPLING }, 'claude-x-thinking').fields).toEqual({
      max_tokens: 10_000,
      thinking: enabled(8000),
      temperature: 1,
    })
    expect(sent({}, 'claude-x-thinking').fields).toEqual({
      max_tokens: 8192,
      thinking: enabled(6553),
      temperature: 1,
    })
  })

  test('the suffix -thinking of a model name raises max_tokens so that the minimum thinking budget fits', () => {
    expect(sent({ maxTokens: 100 }, 'claude-x-thinking').fields).toMatchObject({
      max_tokens: 1280,
      thinking: enabled(1024),
    })
  })

  test.each([
    'claude-opus-4-7-thinking',
    'vendor/claude-opus-4-7-20260101-thinking',
    'claude-opus-4-8-thinking',
    'claude-sonnet-5-thinking',
  ])('the thinking suffix is adaptive thinking at high effort for %s', (model) => {
    expect(sent({ maxTokens: 100 }, model).fields).toEqual({
      max_tokens: 100,
      thinking: { type: 'adaptive' },
      output_config: { effort: 'high' },
    })
  })

  test('the suffix -thinking of a model name overrides a reasoning effort, but not a thinking budget in tokens', () => {
    expect(sent({ thinking: effort('low') }, 'claude-x-thinking').fields).toMatchObject({
      thinking: enabled(6553),
    })
    expect(sent({ thinking: budget(3000) }, 'claude-x-thinking').fields).toMatchObject({
      max_tokens: 8192,
      thinking: enabled(3000),
    })
    expect(sent({ thinking: budget(1500) }, 'claude-opus-4-8-thinking').fields).toMatchObject({
      thinking: { type: 'adaptive' },
      output_config: { effort: 'low' },
    })
  })

  test('the suffix -thinking of a model name has no effect on a model that does not think, and is reported as dropped', () => {
    expect(sent({}, 'claude-3-5-haiku-thinking')).toEqual({
      fields: { max_tokens: 8192 },
      dropped: ['thinking'],
    })
  })
})

describe('a thinking effort', () => {
  test.each([
    ['low', 1280],
    ['medium', 2048],
    ['high', 4096],
  ] as const)(
    'the reasoning effort %s becomes a thinking budget of %i tokens for messages',
    (named, tokens) => {
      expect(sent({ thinking: effort(named) }, 'claude-sonnet-4-5')).toEqual({
        fields: { max_tokens: 8192, thinking: enabled(tokens), temperature: 1 },
        dropped: [],
      })
    },
  )

  test('a reasoning effort above high becomes a thinking budget of 8192 or 16384 tokens, below the max_tokens that is sent', () => {
    expect(sent({ thinking: effort('xhigh'), maxTokens: 8193 }).fields).toMatchObject({
      max_tokens: 8193,
      thinking: enabled(8192),
    })
    expect(sent({ thinking: effort('xhigh') }).fields).toMatchObject({
      max_tokens: 16_384,
      thinking: enabled(8192),
    })
    expect(sent({ thinking: effort('max'), maxTokens: 1000 }).fields).toMatchObject({
      max_tokens: 17_384,
      thinking: enabled(16_384),
    })
  })

  test('thinking without an effort becomes a medium budget where the messages model has budgets', () => {
    expect(sent({ thinking: effort(undefined) }).fields).toMatchObject({ thinking: enabled(2048) })
  })

  test.each(['claude-opus-4-7', 'claude-opus-4-8', 'claude-sonnet-5', 'anthropic/claude-4.7-opus'])(
    'a reasoning effort is sent by its name to %s, which has no thinking budgets',
    (model) => {
      for (const named of ['low', 'medium', 'high', 'xhigh', 'max'] as const)
        expect(sent({ thinking: effort(named), maxTokens: 100 }, model)).toEqual({
          fields: { max_tokens: 100, thinking: { type: 'adaptive' }, output_config: { effort: named } },
          dropped: [],
        })
    },
  )

  test.each([
    [2047, 'low'],
    [2048, 'medium'],
    [4095, 'medium'],
    [4096, 'high'],
    [100_000, 'high'],
  ] as const)(
    'a messages model without thinking budgets gets, in place of a budget of %i tokens, the effort %s',
    (tokens, named) => {
      expect(sent({ thinking: budget(tokens) }, 'claude-opus-5').fields).toEqual({
        max_tokens: 8192,
        thinking: { type: 'adaptive' },
        output_config: { effort: named },
      })
    },
  )
})

describe('thinking that is off', () => {
  test.each(['m', 'claude-sonnet-4-6', 'claude-opus-4-8', 'claude-opus-5', 'claude-haiku-5-5'])(
    'a request to turn thinking off is sent as disabled thinking to %s',
    (model) => {
      expect(sent({ thinking: { kind: 'off' } }, model).fields).toEqual({
        max_tokens: 8192,
        thinking: { type: 'disabled' },
      })
    },
  )

  test('a thinking budget of zero turns thinking off', () => {
    expect(sent({ thinking: budget(0) })).toEqual({
      fields: { max_tokens: 8192, thinking: { type: 'disabled' } },
      dropped: [],
    })
  })

  test.each(['claude-opus-5-5', 'claude-sonnet-5-5', 'claude-fable-5', 'claude-mythos-preview'])(
    'a request to turn thinking off becomes the lowest effort for %s, which always thinks',
    (model) => {
      expect(sent({ thinking: { kind: 'off' } }, model)).toEqual({
        fields: { max_tokens: 8192, thinking: { type: 'adaptive' }, output_config: { effort: 'low' } },
        dropped: [],
      })
    },
  )

  test('a request to turn thinking off is not sent to a messages model that does not think', () => {
    expect(sent({ thinking: { kind: 'off' } }, 'claude-3-5-haiku')).toEqual({
      fields: { max_tokens: 8192 },
      dropped: [],
    })
  })
})

describe('requests with thinking', () => {
  test('sampling fields are sent to messages where the model does not think', () => {
    expect(sent(SAMPLING)).toEqual({
      fields: { max_tokens: 8192, temperature: 0.3, top_p: 0.5, top_k: 7 },
      dropped: [],
    })
    expect(sent({ ...SAMPLING, thinking: { kind: 'off' } }).fields).toEqual({
      max_tokens: 8192,
      thinking: { type: 'disabled' },
      temperature: 0.3,
      top_p: 0.5,
      top_k: 7,
    })
  })

  test('a temperature above the maximum of the messages dialect is lowered to this maximum', () => {
    expect(sent({ temperature: 1.5 })).toEqual({
      fields: { max_tokens: 8192, temperature: 1 },
      dropped: ['temperature'],
    })
    expect(sent({ temperature: 1 })).toEqual({ fields: { max_tokens: 8192, temperature: 1 }, dropped: [] })
  })

  test.each([1280, 2048, 4096])('a thinking budget of %i tokens is lowered below max_tokens', (tokens) => {
    expect(sent({ thinking: budget(tokens) }).fields).toEqual({
      max_tokens: 8192,
      thinking: enabled(tokens),
      temperature: 1,
    })
    expect(sent({ thinking: budget(tokens), maxTokens: 1000 }).fields).toMatchObject({
      max_tokens: tokens + 1000,
      thinking: enabled(tokens),
    })
    expect(sent({ thinking: budget(tokens), maxTokens: tokens }).fields).toMatchObject({
      max_tokens: 2 * tokens,
    })
    expect(sent({ thinking: budget(tokens), maxTokens: tokens + 1 }).fields).toMatchObject({
      max_tokens: tokens + 1,
    })
  })

  test('a thinking budget below the minimum of messages upstreams is raised to it', () => {
    expect(sent({ thinking: budget(1) }).fields).toMatchObject({ thinking: enabled(1024) })
  })

  test('sampling fields that cannot be combined with thinking are left out and reported as dropped', () => {
    expect(sent({ ...SAMPLING, thinking: budget(1280) }).dropped).toEqual(['temperature', 'top_k', 'top_p'])
    expect(sent({ temperature: 1, topP: 1, thinking: budget(1280) }).dropped).toEqual([])
    expect(sent({ ...SAMPLING, thinking: effort(undefined) }, 'claude-opus-4-8')).toEqual({
      fields: { max_tokens: 8192, thinking: { type: 'adaptive' } },
      dropped: ['temperature', 'top_k', 'top_p'],
    })
  })

  test.each([{ kind: 'any' }, { kind: 'tool', name: 'f' }] as const)(
    'thinking is disabled where the tool choice %j forces a call',
    (toolChoice) => {
      const { fields, dropped } = sent({ thinking: budget(1280), toolChoice, ...SAMPLING })
      expect(fields).toEqual({ max_tokens: 8192, temperature: 0.3, top_p: 0.5, top_k: 7 })
      expect(dropped).toEqual(['thinking'])
    },
  )

  test('thinking is disabled if the messages request contains the beginning of the answer', () => {
    const turns: Turn[] = [user, { role: 'assistant', parts: [{ kind: 'text', text: '{' }] }]
    expect(sent({ thinking: budget(1280), turns }).dropped).toEqual(['thinking'])
  })

  test('thinking by budget is disabled after a tool call that the client returned without thoughts', () => {
    const round = (...parts: Part[]): Turn[] => [user, { role: 'assistant', parts }, result]
    expect(sent({ thinking: budget(1280), turns: round(call) })).toMatchObject({ dropped: ['thinking'] })
    const unsigned: Part = { kind: 'thinking', text: 'hm' }
    expect(sent({ thinking: budget(1280), turns: round(unsigned, call) })).toMatchObject({
      dropped: ['reasoning_content', 'thinking'],
    })
    expect(sent({ thinking: budget(1280), turns: round(thought, call) }).dropped).toEqual([])
    expect(sent({ thinking: effort('high'), turns: round(call) }, 'claude-opus-5').dropped).toEqual([])
    const after: Turn[] = [...round(call), { role: 'assistant', parts: [{ kind: 'text', text: 'x' }] }, user]
    expect(sent({ thinking: budget(1280), turns: after }).dropped).toEqual([])
  })
})
