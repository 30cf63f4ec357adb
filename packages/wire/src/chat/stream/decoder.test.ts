import { anyCharacter } from '../../../../../test/generators/characters.ts'
import { NO_USAGE } from '../../usage.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Reply, ReplyEvent } from '../../reply.ts'
import { decodeReply } from '../decode/reply.ts'
import { ChatStreamDecoder } from './decoder.ts'
import { foldReply } from '../../../../../test/conversion/fold-reply.ts'

const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
const READ = { ...NO_USAGE, input: 10, output: 5 }
const DONE = 'data: [DONE]\n\n'

const frame = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
const chunk = (delta: unknown, fields: object = {}, choice: object = {}): string =>
  frame({
    id: 'c1',
    object: 'chat.completion.chunk',
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: null, ...choice }],
    ...fields,
  })
const finish = (reason: string, fields: object = {}): string => chunk({}, fields, { finish_reason: reason })
const calls = (...pieces: unknown[]): string => chunk({ tool_calls: pieces })
const piece = (
  index: number | undefined,
  id: string | undefined,
  name: string | undefined,
  args?: string | null,
) => ({
  index,
  id,
  function: { name, arguments: args },
})

function decode(...frames: string[]): ReplyEvent[] {
  const decoder = new ChatStreamDecoder()
  return [...decoder.push(Buffer.from(frames.join(''))), ...decoder.end()]
}

const whole = (...frames: string[]): Reply | undefined => foldReply(decode(...frames))
const partsOf = (...frames: string[]) => whole(...frames, finish('stop'), DONE)?.parts
/** What Perplexity found, as it says in each chunk. */
const SOURCES = {
  citations: ['https://a.test', 'https://b.test'],
  search_results: [
    { url: 'https://a.test', title: 'A' },
    { url: 'https://b.test', title: 'B' },
  ],
}
const picture = (url: string) => ({ type: 'image_url', image_url: { url } })
const call = (id: string, name: string, input: string) => ({ kind: 'tool-call', id, name, input })

describe('the parts of a stream', () => {
  test('a decoded chat stream has events for the start, the growth and the end of thoughts, texts and calls', () => {
    expect(
      decode(
        chunk({ role: 'assistant', content: '' }),
        chunk({ reasoning_content: 'hm' }),
        chunk({ reasoning_content: '…', content: 'He' }),
        chunk({ content: 'llo' }),
        calls(piece(0, 'a', 'f', '')),
        calls(piece(0, undefined, undefined, '{}')),
        finish('tool_calls'),
        frame({ id: 'c1', choices: [], usage: USAGE }),
        DONE,
      ),
    ).toEqual([
      { kind: 'start', id: 'c1', model: 'm', usage: undefined },
      { kind: 'part-start', index: 0, part: { kind: 'thinking' } },
      { kind: 'thinking', index: 0, text: 'hm' },
      { kind: 'thinking', index: 0, text: '…' },
      { kind: 'part-end', index: 0 },
      { kind: 'part-start', index: 1, part: { kind: 'text' } },
      { kind: 'text', index: 1, text: 'He' },
      { kind: 'text', index: 1, text: 'llo' },
      { kind: 'part-end', index: 1 },
      { kind: 'part-start', index: 2, part: { kind: 'tool-call', id: 'a', name: 'f' } },
      { kind: 'tool-input', index: 2, text: '{}' },
      { kind: 'part-end', index: 2 },
      { kind: 'end', stop: { reason: 'tool-calls' }, usage: READ },
    ])
  })

  test.each<[string, string[], unknown[]]>([
    [
      'both names of thoughts in one delta are one thought',
      [chunk({ reasoning: 'hm', reasoning_content: 'hm' })],
      [{ kind: 'thinking', text: 'hm' }],
    ],
    [
      '`reasoning`',
      [chunk({ reasoning: 'h' }), chunk({ reasoning: 'm' })],
      [{ kind: 'thinking', text: 'hm' }],
    ],
    [
      'details where nothing else says it',
      [chunk({ reasoning_details: [{ type: 'reasoning.text', text: 'hm' }] })],
      [{ kind: 'thinking', text: 'hm' }],
    ],
    [
      'details beside the same thought',
      [chunk({ reasoning: 'hm', reasoning_details: [{ text: 'hm' }] })],
      [{ kind: 'thinking', text: 'hm' }],
    ],
    [
      'sources by their numbers in the text, and those without a number with the whole text',
      [
        chunk({ content: '😀 ' }, SOURCES),
        chunk({ content: 'Yes [' }, SOURCES),
        chunk({ content: '2]. [9]' }, SOURCES),
      ],
      [
        {
          kind: 'text',
          text: '😀 Yes [2]. [9]',
          citations: [
            { url: 'https://b.test', title: 'B', span: { start: 6, end: 9 } },
            { url: 'https://a.test', title: 'A' },
          ],
        },
      ],
    ],
    [
      'sources that arrive behind the text',
      [chunk({ content: 'Yes [1].' }), chunk({}, { citations: ['https://a.test'] })],
      [{ kind: 'text', text: 'Yes [1].', citations: [{ url: 'https://a.test', title: '' }] }],
    ],
    [
      'sources that are annotations as well',
      [
        chunk(
          {
            content: '[1]',
            annotations: [{ type: 'url_citation', url_citation: { url: 'https://b.test' } }],
          },
          SOURCES,
        ),
      ],
      [{ kind: 'text', text: '[1]', citations: [{ url: 'https://b.test', title: '' }] }],
    ],
    [
      'signed details in pieces, some of them equal',
      [
        ...['ha', 'ha'].map((text) =>
          chunk({
            reasoning: text,
            reasoning_details: [{ type: 'reasoning.text', text, index: 0, id: null }],
          }),
        ),
        chunk({ reasoning_details: [{ type: 'reasoning.text', signature: 'SIG', index: 0 }], content: 'x' }),
        chunk({ reasoning_details: [{ type: 'reasoning.text', text: 'so', index: 0 }] }),
        chunk({ reasoning_details: [{ type: 'reasoning.encrypted', data: 'ENC', id: 'a', index: 1 }] }),
      ],
      [
        { kind: 'thinking', text: 'haha' },
        { kind: 'text', text: 'x' },
        { kind: 'thinking', text: 'so' },
        {
          kind: 'opaque',
          protocol: 'chat',
          value: {
            reasoning_details: [
              { type: 'reasoning.text', text: 'haha', index: 0, id: null, signature: 'SIG' },
              { type: 'reasoning.text', text: 'so', index: 0 },
              { type: 'reasoning.encrypted', data: 'ENC', id: 'a', index: 1 },
            ],
          },
        },
      ],
    ],
    [
      'content in parts',
      [
        chunk({
          content: [
            { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
            { type: 'text', text: 'x' },
          ],
        }),
      ],
      [
        { kind: 'thinking', text: 'hm' },
        { kind: 'text', text: 'x' },
      ],
    ],
    ['what is said in sound', [chunk({ audio: { transcript: 'x' } })], [{ kind: 'text', text: 'x' }]],
    [
      'null and empty deltas',
      [chunk({ content: null, refusal: '', tool_calls: null, reasoning: null }), chunk({ content: 'x' })],
      [{ kind: 'text', text: 'x' }],
    ],
    [
      'a whole answer in one frame',
      [
        frame({
          id: 'c1',
          choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
        }),
      ],
      [{ kind: 'text', text: 'x' }],
    ],
    [
      'a message that repeats the deltas',
      [
        chunk({ content: 'x' }, {}, { message: { content: 'x' } }),
        chunk({ content: 'y' }, {}, { message: { content: 'xy' } }),
      ],
      [{ kind: 'text', text: 'xy' }],
    ],
    [
      'a last message that repeats the deltas',
      [
        chunk({ content: 'x', tool_calls: [piece(0, 'a', 'f', '{"x":1}')] }),
        frame({
          id: 'c1',
          choices: [
            {
              index: 0,
              message: { content: 'x', tool_calls: [piece(undefined, 'a', 'f', '{"x":1}')] },
              finish_reason: 'tool_calls',
            },
          ],
        }),
      ],
      [{ kind: 'text', text: 'x' }, call('a', 'f', '{"x":1}')],
    ],
    [
      'a message after deltas that say nothing, and beside one',
      [chunk({ role: 'assistant', content: '' }), chunk({}, {}, { message: { content: 'x' } })],
      [{ kind: 'text', text: 'x' }],
    ],
    [
      'a picture, as a link of its own that contains the data',
      [
        chunk({ content: 'x' }),
        chunk({ content: '', images: [picture('data:image/png;base64,QQ==')] }),
        chunk({ content: 'y', images: [picture('https://example.com/a.png')] }),
        chunk({ content: 'z', images: [picture('https://example.com/a.png')] }),
      ],
      [
        { kind: 'text', text: 'x' },
        { kind: 'text', text: '![image](data:image/png;base64,QQ==)', withoutMedia: '' },
        { kind: 'text', text: 'y' },
        { kind: 'text', text: '![image](https://example.com/a.png)', withoutMedia: '' },
        { kind: 'text', text: 'z' },
        { kind: 'text', text: '![image](https://example.com/a.png)', withoutMedia: '' },
      ],
    ],
    [
      'of several choices the first',
      [
        chunk({ content: 'b' }, {}, { index: 1 }),
        chunk({ content: 'a' }),
        chunk({ content: 'b' }, {}, { index: 1 }),
      ],
      [{ kind: 'text', text: 'a' }],
    ],
    [
      'a choice without a number',
      [chunk({ content: 'a' }, {}, { index: undefined })],
      [{ kind: 'text', text: 'a' }],
    ],
  ])(
    'a change from text to thoughts or calls in a chat stream begins a new part: %s',
    (_, frames, expected) => {
      expect(partsOf(...frames)).toEqual(expected)
    },
  )
})

test('marks of sources are found in a chat stream whose texts may be copied', () => {
  const decoder = new ChatStreamDecoder()
  decoder.copiesTexts = true
  const texts = [...Array.from({ length: 20 }, () => 'a'), '[1', ']']
  const frames = [...texts.map((content) => chunk({ content }, SOURCES)), finish('stop'), DONE]
  const reply = foldReply(frames.flatMap((text) => decoder.push(Buffer.from(text))))
  expect(reply?.parts).toMatchObject([
    { citations: [{ url: 'https://a.test', span: { start: 20, end: 23 } }, { url: 'https://b.test' }] },
  ])
})

describe('the forms of tool calls', () => {
  const f = call('a', 'f', '{"x":1}')
  test.each<[string, string[], unknown[]]>([
    ['whole', [calls(piece(0, 'a', 'f', '{"x":1}'))], [f]],
    [
      'in pieces',
      [
        calls(piece(0, 'a', 'f', '')),
        calls(piece(0, undefined, undefined, '{"x"')),
        calls(piece(0, undefined, undefined, ':1}')),
      ],
      [f],
    ],
    ['id and name in each piece', [calls(piece(0, 'a', 'f', '{"x"')), calls(piece(0, 'a', 'f', ':1}'))], [f]],
    [
      'an empty id in later pieces',
      [calls(piece(0, 'a', 'f', '')), calls(piece(0, '', undefined, '{"x":1}')), calls(piece(0, '', '', ''))],
      [f],
    ],
    [
      'another id in each piece',
      [calls(piece(0, 'a', 'f', '{"x"')), calls(piece(0, 'b', undefined, ':1}'))],
      [f],
    ],
    [
      'no arguments at first, or null',
      [
        calls(piece(0, 'a', 'f')),
        calls(piece(0, undefined, undefined, null)),
        calls(piece(0, undefined, undefined, '{"x":1}')),
      ],
      [f],
    ],
    [
      'no index, but the id',
      [calls(piece(undefined, 'a', 'f', '{"x"')), calls(piece(undefined, 'a', undefined, ':1}'))],
      [f],
    ],
    [
      'neither index nor id in later pieces',
      [calls(piece(undefined, 'a', 'f', '{"x"')), calls(piece(undefined, undefined, undefined, ':1}'))],
      [f],
    ],
    [
      'the name after the arguments',
      [calls(piece(0, 'a', undefined, '{"x"')), calls(piece(0, undefined, 'f', ':1}'))],
      [f],
    ],
    ['the arguments as an object', [calls({ id: 'a', function: { name: 'f', arguments: { x: 1 } } })], [f]],
    [
      'several in one delta',
      [calls(piece(0, 'a', 'f', '{"x":1}'), piece(1, 'b', 'g', '{}'))],
      [f, call('b', 'g', '{}')],
    ],
    [
      'several in one delta without index',
      [calls(piece(undefined, 'a', 'f', '{"x":1}'), piece(undefined, 'b', 'f', '{}'))],
      [f, call('b', 'f', '{}')],
    ],
    [
      'several under one index',
      [calls(piece(0, 'a', 'f', '{"x":1}')), calls(piece(0, 'b', 'f', '{}'))],
      [f, call('b', 'f', '{}')],
    ],
    ...[undefined, 0].map((index): [string, string[], unknown[]] => [
      `several with one id, under index ${index}`,
      [
        calls(piece(index, 'a', 'f', '{"x"')),
        calls(piece(index, 'a', 'f', ':1}')),
        calls(piece(index, 'a', 'f', '')),
        calls(piece(index, 'a', 'g', '')),
        calls(piece(index, 'a', undefined, '{}')),
        calls(piece(index, 'a', 'g', '{"y":2}')),
      ],
      [f, call('a', 'g', '{}'), call('a', 'g', '{"y":2}')],
    ]),
    [
      'without ids, one name twice',
      [calls(piece(undefined, undefined, 'f', '{"x":1}')), calls(piece(undefined, undefined, 'f', '{}'))],
      [call('call_c1_0', 'f', '{"x":1}'), call('call_c1_1', 'f', '{}')],
    ],
    [
      'without ids, the name in each piece',
      [calls(piece(undefined, undefined, 'f', '{"x"')), calls(piece(undefined, undefined, 'f', ':1}'))],
      [call('call_c1_0', 'f', '{"x":1}')],
    ],
    [
      'the id later than the name',
      [calls(piece(0, undefined, 'f', '{"x"')), calls(piece(0, 'a', 'f', ':1}'))],
      [call('call_c1_0', 'f', '{"x":1}')],
    ],
    [
      'interleaved',
      [
        calls(piece(0, 'a', 'f', '{"x"')),
        calls(piece(1, 'b', 'g', '{')),
        calls(piece(0, undefined, undefined, ':1}')),
        calls(piece(1, undefined, undefined, '}')),
      ],
      [f, call('b', 'g', '{}')],
    ],
    [
      'announced before any arguments',
      [
        calls(piece(0, 'a', 'f', ''), piece(1, 'b', 'g', '')),
        calls(piece(0, undefined, undefined, '{"x":1}')),
        calls(piece(1, undefined, undefined, '{}')),
      ],
      [f, call('b', 'g', '{}')],
    ],
    [
      'with text after',
      [calls(piece(0, 'a', 'f', '{"x":1}')), chunk({ content: 'x' })],
      [f, { kind: 'text', text: 'x' }],
    ],
    ['never named', [calls(piece(0, 'a', undefined, '{}'))], []],
    [
      'the legacy function',
      [
        chunk({ function_call: { name: 'f', arguments: '' } }),
        chunk({ function_call: { arguments: '{"x":1}' } }),
      ],
      [call('call_c1_0', 'f', '{"x":1}')],
    ],
    ['an empty legacy function', [chunk({ function_call: { name: '', arguments: '' } })], []],
    ['no object', [calls(null, 7, {})], []],
  ])('tool calls of a chat stream are decoded: %s', (_, frames, expected) => {
    expect(partsOf(...frames)).toEqual(expected)
  })

  test('a tool call in a chat stream ends only when the next part begins', () => {
    const kinds = decode(
      calls(piece(0, 'a', 'f', '{"x": "}{\\""')),
      calls(piece(0, undefined, undefined, '}')),
      calls(piece(1, 'b', 'g', '{')),
    ).map((event) => ('index' in event ? `${event.kind} ${event.index}` : event.kind))
    expect(kinds).toEqual([
      'start',
      'part-start 0',
      'tool-input 0',
      'tool-input 0',
      'part-end 0',
      'part-start 1',
      'tool-input 1',
    ])
  })
})

test('white space that arrives after a streamed tool call has ended is not added to its arguments', () => {
  const events = decode(
    calls(piece(0, 'a', 'f', '{}')),
    chunk({ content: 'x' }),
    calls(piece(0, undefined, undefined, '\n')),
    finish('stop'),
  )
  expect(events.filter(({ kind }) => kind === 'tool-input')).toHaveLength(1)
})

describe('the end of a stream', () => {
  const stopOf = (...frames: string[]) => whole(...frames, DONE)?.stop.reason
  test.each([
    ['stop', 'end'],
    ['length', 'length'],
    ['content_filter', 'refusal'],
    ['eos', 'end'],
    ['tool_calls', 'end'],
  ])('the finish reason %s of chat is decoded as %s', (reason, expected) => {
    expect(stopOf(chunk({ content: 'x' }), finish(reason))).toBe(expected)
  })

  test.each(['stop', 'tool_calls', 'function_call'])(
    'streamed tool calls that end with %s are decoded as calls that expect their results',
    (reason) => {
      expect(stopOf(calls(piece(0, 'a', 'f', '{}')), finish(reason))).toBe('tool-calls')
    },
  )

  test('streamed tool calls that were cut off by the maximum of tokens are not decoded as calls that expect results', () => {
    expect(stopOf(calls(piece(0, 'a', 'f', '{')), finish('length'))).toBe('length')
  })

  test('a refusal in a chat stream is decoded as one text part that is marked as a refusal', () => {
    const refused = whole(chunk({ refusal: 'I can' }), chunk({ refusal: 'not' }), finish('stop'), DONE)
    expect(refused).toMatchObject({
      parts: [{ kind: 'text', text: 'I cannot', refusal: true }],
      stop: { reason: 'end' },
    })
  })

  test('usage is read from any chunk of a chat stream, and the last report counts', () => {
    const late = frame({ choices: [], usage: USAGE })
    for (const frames of [
      [chunk({ content: 'x' }), finish('stop', { usage: USAGE })],
      [chunk({ content: 'x' }), finish('stop', { usage: null }), late],
      [chunk({ content: 'x' }, { usage: { ...USAGE, completion_tokens: 1 } }), finish('stop'), late],
      [chunk({ content: 'x' }), finish('stop', { x_groq: { usage: USAGE } })],
      [2, 3].map((output, index) =>
        chunk({ content: 'x' }, {}, { index, usage: { prompt_tokens: 10, completion_tokens: output } }),
      ),
      [chunk({ content: 'x' }, { usage: USAGE }), chunk({ content: 'y' }), finish('stop', { usage: null })],
    ]) {
      expect(whole(...frames, DONE)?.usage).toEqual(READ)
    }
  })

  test('a decoded chat stream begins with the first chunk that has a choice', () => {
    const filter = frame({ id: '', model: '', choices: [], prompt_filter_results: [] })
    expect(decode(filter)).toEqual([])
    expect(decode(filter, chunk({ content: 'x' }))[0]).toEqual({
      kind: 'start',
      id: 'c1',
      model: 'm',
      usage: undefined,
    })
  })

  test('a chat stream ends normally after a finish reason, or with [DONE] without one', () => {
    expect(decode(chunk({ content: 'x' }), finish('stop')).at(-1)).toMatchObject({ kind: 'end' })
    expect(decode(chunk({ content: 'x' }), DONE).at(-1)).toMatchObject({
      kind: 'end',
      stop: { reason: 'end' },
    })
    expect(decode(chunk({ content: 'x' }), finish('stop'), 'data: [DONE]').at(-1)).toMatchObject({
      kind: 'end',
    })
  })

  test('a chat stream that is cut off is decoded without an end', () => {
    const decoder = new ChatStreamDecoder()
    decoder.push(Buffer.from(chunk({ content: 'x' })))
    expect(decoder.end()).toEqual([])
  })

  test('events after the end of a chat stream are ignored', () => {
    const events = decode(chunk({ content: 'x' }), finish('stop'), DONE)
    expect(decode(chunk({ content: 'x' }), finish('stop'), DONE, chunk({ content: 'y' }), DONE)).toEqual(
      events,
    )
  })

  test('a chat stream without any content is decoded as a failure', () => {
    expect(decode(DONE)).toMatchObject([{ kind: 'failure', type: 'api_error' }])
  })

  test('an error in the middle of a chat stream is decoded as a failure, and nothing follows it', () => {
    const error = { error: { message: 'too much', type: 'rate_limit_error' } }
    const failure = { kind: 'failure', type: 'rate_limit_error', message: 'too much', status: 429 }
    expect(decode(chunk({ content: 'x' }), frame(error), DONE).slice(3)).toEqual([failure])
    expect(decode(`event: error\n${frame({ message: 'too much', type: 'rate_limit_error' })}`)).toEqual([
      failure,
    ])
    expect(decode(chunk({}, error, { finish_reason: 'error' }))).toMatchObject([failure])
    const beside = {
      message: 'too much',
      type: 'rate_limit_error',
      choices: [{ index: 0, delta: { content: 'x' } }],
    }
    expect(decode(`event: error\n${frame(beside)}`)).toEqual([failure])
  })

  test('comments, invalid JSON and empty frames in a chat stream are skipped', () => {
    expect(
      partsOf(
        ': ping\n\n',
        'data: {oops\n\n',
        'data: 7\n\n',
        frame({ error: null }),
        chunk({ content: 'x' }, { error: null }),
      ),
    ).toEqual([{ kind: 'text', text: 'x' }])
  })
})

describe('laws of stream decoding', () => {
  const words = fc.string({ unit: anyCharacter })
  const args = fc.oneof(
    fc.json().filter((text) => text !== 'null' && text !== '""'),
    fc.constant('{"a": 9007199254740993, "2":0, "1":0}'),
    fc.constant(''),
  )
  const message = fc.record({
    reasoning: words,
    content: words,
    refusal: fc.option(words),
    calls: fc.array(fc.tuple(fc.string({ minLength: 1 }), args), { maxLength: 3 }),
  })

  /** Cuts a text into pieces. */
  function cut(text: string, size: number): string[] {
    const pieces: string[] = []
    for (let at = 0; at < text.length; at += size) pieces.push(text.slice(at, at + size))
    return pieces
  }

  /**
   * A message as a stream of small deltas. Its calls follow one another, or are interleaved in small pieces.
   */
  function streamed(
    { reasoning, content, refusal, calls: made }: Message,
    size: number,
    interleaved: boolean,
  ): string {
    const pieces = made.map(([name, input], index) => [
      calls({ index, id: `id${index}`, type: 'function', function: { name, arguments: '' } }),
      ...cut(input, size).map((text) => calls({ index, function: { arguments: text } })),
    ])
    const rounds = Math.max(0, ...pieces.map(({ length }) => length))
    const turns = Array.from({ length: rounds }, (_, round) => pieces.flatMap((call) => call[round] ?? []))
    return [
      chunk({ role: 'assistant', content: '' }),
      ...cut(reasoning, size).map((text) => chunk({ reasoning_content: text })),
      ...cut(content, size).map((text) => chunk({ content: text })),
      ...cut(refusal ?? '', size).map((text) => chunk({ refusal: text })),
      ...(interleaved ? turns : pieces).flat(),
      finish('stop'),
      frame({ id: 'c1', choices: [], usage: USAGE }),
      DONE,
    ].join('')
  }

  interface Message {
    readonly reasoning: string
    readonly content: string
    readonly refusal: string | null
    readonly calls: readonly (readonly [string, string])[]
  }

  const body = ({ reasoning, content, refusal, calls: made }: Message): Buffer =>
    Buffer.from(
      JSON.stringify({
        id: 'c1',
        model: 'm',
        choices: [
          {
            index: 0,
            finish_reason: 'stop',
            message: {
              role: 'assistant',
              content,
              refusal,
              reasoning_content: reasoning,
              tool_calls: made.map(([name, input], index) => ({
                id: `id${index}`,
                type: 'function',
                function: { name, arguments: input },
              })),
            },
          },
        ],
        usage: USAGE,
      }),
    )

  test('a decoded chat stream has the content of the whole reply, with arguments byte for byte', () => {
    fc.assert(
      fc.property(message, fc.integer({ min: 1, max: 9 }), fc.boolean(), (said, size, interleaved) => {
        const reply = whole(streamed(said, size, interleaved))
        expect(reply).toEqual(decodeReply(body(said)))
        const inputs = reply?.parts.flatMap((part) => (part.kind === 'tool-call' ? part.input : []))
        expect(inputs).toEqual(said.calls.map(([, input]) => input))
      }),
    )
  })

  test('a chat stream is decoded to the same reply however the network divides its bytes', () => {
    fc.assert(
      fc.property(
        message,
        fc.integer({ min: 1, max: 9 }),
        fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1 }),
        (said, size, cuts) => {
          const text = streamed(said, size, true).replaceAll('c1', 'cé1')
          const bytes = Buffer.from(text)
          const decoder = new ChatStreamDecoder()
          const events: ReplyEvent[] = []
          for (let at = 0, i = 0; at < bytes.length; i++) {
            const step = cuts[i % cuts.length] as number
            events.push(...decoder.push(bytes.subarray(at, at + step)))
            at += step
          }
          events.push(...decoder.end())
          expect(events).toEqual(decode(text))
        },
      ),
    )
  })

  test('a chat stream that is cut off anywhere before its finish reason is decoded without an end', () => {
    const bytes = Buffer.from(
      streamed({ reasoning: 'hm', content: 'é', refusal: null, calls: [['f', '{}']] }, 1, false),
    )
    const reason = bytes.indexOf('"stop"')
    for (let at = 0; at < reason; at++) {
      const decoder = new ChatStreamDecoder()
      const events = [...decoder.push(bytes.subarray(0, at)), ...decoder.end()]
      expect(events.filter(({ kind }) => kind === 'end' || kind === 'failure')).toEqual([])
    }
  })
})
