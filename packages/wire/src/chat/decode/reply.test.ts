import { describe, expect, test } from 'vitest'
import type { Reply } from '../../reply.ts'
import { decodeReply } from './reply.ts'

const decode = (reply: unknown): Reply => decodeReply(Buffer.from(JSON.stringify(reply)))
const answer = (message: object, finish_reason: string | null = 'stop') =>
  decode({ id: 'c1', model: 'm', choices: [{ index: 0, message, finish_reason }] })

describe('a whole reply', () => {
  test('a decoded chat reply has its thoughts first, then texts, then tool calls', () => {
    const call = (id: string, name: string, args?: string) => ({ id, function: { name, arguments: args } })
    expect(
      answer({ tool_calls: [call('a', 'f', '{"b": 1}'), call('b', 'f')], content: 'x', reasoning: 'hm' }),
    ).toEqual({
      id: 'c1',
      model: 'm',
      parts: [
        { kind: 'thinking', text: 'hm' },
        { kind: 'text', text: 'x' },
        { kind: 'tool-call', id: 'a', name: 'f', input: '{"b": 1}' },
        { kind: 'tool-call', id: 'b', name: 'f', input: '' },
      ],
      stop: { reason: 'tool-calls' },
      usage: undefined,
    })
  })

  test('a decoded chat reply cites the sources of the whole answer by their numbers in its texts', () => {
    const message = { content: 'No [1], and [1].', reasoning: '[1]' }
    const { parts } = decode({ choices: [{ message }], citations: ['https://a.test'] })
    const cited = (start: number) => ({ url: 'https://a.test', title: '', span: { start, end: start + 3 } })
    expect(parts).toEqual([
      { kind: 'thinking', text: '[1]' },
      { kind: 'text', text: 'No [1], and [1].', citations: [cited(3), cited(12)] },
    ])
  })

  test('a decoded chat reply cites at most 256 sources of the whole answer, and as many of their marks', () => {
    const citationsOf = (content: string, sources: number): unknown => {
      const citations = Array.from({ length: sources }, (_, n) => `https://a.test/${n}`)
      const [part] = decode({ choices: [{ message: { content } }], citations }).parts
      return part?.kind === 'text' && part.citations
    }
    expect(citationsOf('No.', 300)).toHaveLength(256)
    expect(citationsOf('[1]'.repeat(300), 1)).toHaveLength(256)
  })

  test.each([{}, { index: 0 }])(
    'each element of a whole chat reply is a separate tool call, even if their ids are equal: %j',
    (place) => {
      const calls = ['get', 'put', 'get'].map((name, n) => ({
        ...place,
        id: 'call_0',
        function: { name, arguments: n === 2 ? '' : `{"a":${n}}` },
      }))
      const { parts, stop } = answer({ tool_calls: calls }, 'tool_calls')
      expect(parts).toEqual(
        calls.map(({ id, function: { name, arguments: input } }) => ({ kind: 'tool-call', id, name, input })),
      )
      expect(stop).toEqual({ reason: 'tool-calls' })
    },
  )

  test.each<[string, object, object[]]>([
    ['null', { content: null }, []],
    ['a refusal', { content: null, refusal: 'no' }, [{ kind: 'text', text: 'no', refusal: true }]],
    [
      'content in parts',
      {
        content: [
          { type: 'thinking', thinking: 'hm' },
          { type: 'text', text: 'x' },
          { type: 'refusal', refusal: 'no' },
        ],
      },
      [
        { kind: 'thinking', text: 'hm' },
        { kind: 'text', text: 'x' },
        { kind: 'text', text: 'no', refusal: true },
      ],
    ],
    [
      'pictures beside the content and in it',
      {
        content: [
          { type: 'text', text: 'x' },
          { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
        ],
        images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,QQ==' } }],
      },
      [
        { kind: 'text', text: 'x' },
        { kind: 'text', text: '![image](https://example.com/a.png)', withoutMedia: '' },
        { kind: 'text', text: '![image](data:image/png;base64,QQ==)', withoutMedia: '' },
      ],
    ],
    [
      'a tool call in pieces',
      {
        tool_calls: [
          { id: 'a', function: { name: 'f', arguments: '{"x"' } },
          { function: { arguments: ':1}' } },
        ],
      },
      [{ kind: 'tool-call', id: 'a', name: 'f', input: '{"x":1}' }],
    ],
    [
      'the legacy function',
      { function_call: { name: 'f', arguments: '{}' } },
      [{ kind: 'tool-call', id: 'call_c1_0', name: 'f', input: '{}' }],
    ],
    [
      'members without content',
      {
        content: 'x',
        refusal: '',
        function_call: { name: '', arguments: '' },
        audio: { transcript: '' },
        tool_calls: null,
        reasoning_content: '',
      },
      [{ kind: 'text', text: 'x' }],
    ],
  ])('a whole chat reply is decoded to the expected parts: %s', (_, message, parts) => {
    expect(answer(message).parts).toEqual(parts)
  })

  test('a chat reply without a finish reason is decoded as a normal end', () => {
    expect(answer({ content: 'x' }, null).stop).toEqual({ reason: 'end' })
    expect(answer({ content: 'x' }, '').stop).toEqual({ reason: 'end' })
    expect(answer({ refusal: 'no' }).stop).toEqual({ reason: 'end' })
  })

  test('of several choices in a chat reply the first one by index is decoded', () => {
    const choice = (index: number) => ({ index, message: { content: String(index) }, finish_reason: 'stop' })
    expect(decode({ choices: [choice(1), choice(0)] }).parts).toEqual([{ kind: 'text', text: '0' }])
  })

  test.each<[string, string]>([
    ['an error', JSON.stringify({ error: { message: 'x' }, choices: [] })],
    ['an error beside an answer', JSON.stringify({ error: 'x', choices: [{ message: { content: 'x' } }] })],
    ['no choice', JSON.stringify({ choices: [] })],
    ['another object', JSON.stringify({ type: 'message' })],
    ['an array', '[]'],
    ['invalid JSON', '<html>'],
  ])('a body that is not a chat reply is refused: %s', (_, body) => {
    expect(() => decodeReply(Buffer.from(body))).toThrow(expect.objectContaining({ code: 'upstream_error' }))
  })
})
