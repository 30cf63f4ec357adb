import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour, Streamed } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import {
  answerOf,
  eventsOf,
  type Form,
  FORMS,
  type Loose,
  type Protocol,
  PROTOCOLS,
  REFUSED,
  requestOf,
} from '../fixtures/guarded-dialects.ts'

/** What the guards of this file look for, as a text, in pieces, and as a number. */
const CODE = 'code-4711-x'
/** The tools of a server, which a response lists. */
const LISTED = { id: 'i', type: 'mcp_list_tools', tools: [{ name: 'f', input_schema: { default: CODE } }] }
const PIECES = ['It is co', 'de-47', '11-x, yes']
const NUMBER = 47_110_815
const match = { regex: ['code-[0-9]+-x', '47110815'] }
const KEYS = ['redact', 'block', 'watch'] as const

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced([...PROTOCOLS]),
    channels: PROTOCOLS.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
    guards: KEYS.map((name) => ({
      name,
      ...(name === 'watch' ? { do: 'block', mode: 'monitor' } : { do: name }),
      match,
      where: ['output', 'tool_arguments'],
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
})
afterAll(() => fixture?.close())

async function ask(dialect: Protocol, form: Form, key: (typeof KEYS)[number], behaviour: Behaviour) {
  fixture.upstream.script(dialect, behaviour)
  const [path, body] = requestOf(dialect, dialect, form)
  const answer = await call(fixture.gateway.url, JSON.stringify(body), {
    path,
    key,
    headers: { 'x-goog-api-key': `sk-${key}` },
  })
  expect(answer.status, answer.text).toBe(200)
  return answer.text
}

/** All texts of an answer, one after the other, so that pieces are joined. */
function said(text: string, form: Form): string {
  const strings = (value: unknown): string[] =>
    typeof value === 'string'
      ? [value]
      : typeof value === 'object' && value !== null
        ? Object.entries(value).flatMap(([name, one]) => [name, ...strings(one)])
        : [String(value)]
  // Names stand between the pieces of two events.
  const within = (form === 'whole' ? [JSON.parse(text) as Loose] : eventsOf(text)).map(strings)
  const pieces = within.map((one) => one.at(-1) ?? '')
  return [...within.flat(), ...pieces].join('')
}

const data = (event: unknown): string => `data: ${JSON.stringify(event)}\n\n`
const event = (type: string, members: object): string => `event: ${type}\n${data({ type, ...members })}`
const chunk = (choice: object, more: object = {}): string =>
  data({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [choice], ...more })
const delta = (members: object): string => chunk({ index: 0, delta: members, finish_reason: null })
const part = (members: object): string =>
  data({ candidates: [{ content: { parts: [members], role: 'model' }, index: 0 }] })
const block = (index: number, members: object): string =>
  event('content_block_start', { index, content_block: members }) +
  event('content_block_delta', { index, delta: { type: 'text_delta', text: '' } }) +
  event('content_block_stop', { index })

/** Events that are put among those of a plain answer. */
const STREAMED: readonly [what: string, dialect: Protocol, events: readonly string[]][] = [
  [
    'arguments that are an object',
    'chat',
    [
      delta({
        tool_calls: [
          { index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: { to: CODE } } },
        ],
      }),
    ],
  ],
  [
    'a name in arguments that are an object',
    'chat',
    [delta({ tool_calls: [{ index: 0, id: 'c1', function: { name: 'f', arguments: { [CODE]: 1 } } }] })],
  ],
  [
    'a number in arguments that are an object',
    'chat',
    [delta({ tool_calls: [{ index: 0, id: 'c1', function: { name: 'f', arguments: { n: NUMBER } } }] })],
  ],
  [
    'an unknown member beside the choices',
    'chat',
    [chunk({ index: 0, delta: {} }, { x_note: { y: [CODE] } })],
  ],
  ['an unknown member of a choice', 'chat', [chunk({ index: 0, delta: {}, x_note: { y: CODE } })]],
  ['an unknown member of a delta', 'chat', [delta({ x_note: CODE })]],
  [
    'pieces of an unknown member of a choice',
    'chat',
    PIECES.map((text) => chunk({ index: 0, delta: {}, x_note: text })),
  ],
  ['pieces of an unknown member of a delta', 'chat', PIECES.map((text) => delta({ x_note: text }))],
  [
    'pieces within an unknown member of a delta',
    'chat',
    PIECES.map((text) => delta({ x: { y: [{ index: 3, z: text }] } })),
  ],
  ['a result of a tool that states so by its role', 'chat', [delta({ role: 'tool', x_note: CODE })]],
  [
    'citations of a text that begins',
    'messages',
    [block(1, { type: 'text', text: '', citations: [{ type: 'char_location', cited_text: CODE }] })],
  ],
  [
    'the content of the first event',
    'messages',
    [
      event('message_start', {
        message: { id: 'm', role: 'assistant', content: [{ type: 'text', text: CODE }] },
      }),
    ],
  ],
  ['an event of an unknown type', 'messages', [event('x_event', { note: CODE })]],
  ['an unknown member of an event', 'messages', [event('ping', { x_note: { y: CODE } })]],
  [
    'pieces of a delta of an unknown type',
    'messages',
    PIECES.map((text) =>
      event('content_block_delta', { index: 7, delta: { type: 'x_delta', x_note: text } }),
    ),
  ],
  [
    'what the result of a tool of the provider says',
    'messages',
    [block(1, { type: 'x_tool_result', tool_use_id: 't', content: [{ type: 'text', text: CODE }] })],
  ],
  [
    'a number in the input of a tool',
    'messages',
    [block(1, { type: 'tool_use', id: 't', name: 'f', input: { n: NUMBER } })],
  ],
  ['an event of an unknown type', 'responses', [event('response.x_event', { note: { y: CODE } })]],
  ['the schema of a listed tool', 'responses', [event('response.output_item.done', { item: LISTED })]],
  [
    'pieces of an event of an unknown type',
    'responses',
    PIECES.map((text) => event('response.x_note.delta', { output_index: 0, item_id: 'i', delta: text })),
  ],
  [
    'pieces within an event of an unknown type',
    'responses',
    PIECES.map((text) => event('x_note.delta', { output_index: 0, delta: { y: text } })),
  ],
  [
    'the end of an event of an unknown type',
    'responses',
    [event('response.x_note.done', { output_index: 0, x_text: CODE })],
  ],
  [
    'pieces of the input of an unknown call',
    'responses',
    PIECES.map((text) =>
      event('response.x_call_input.delta', { output_index: 4, item_id: 'i', delta: text }),
    ),
  ],
  [
    'an unknown item',
    'responses',
    [event('response.output_item.done', { output_index: 5, item: { id: 'i', type: 'x', note: CODE } })],
  ],
  ['a call beside a text', 'gemini', [part({ text: 'x', functionCall: { name: 'f', args: { to: CODE } } })]],
  ['a number in a call', 'gemini', [part({ functionCall: { name: 'f', args: { n: NUMBER } } })]],
  [
    'arguments in pieces',
    'gemini',
    PIECES.map((stringValue, at) =>
      part({
        functionCall: {
          ...(at === 0 && { name: 'f' }),
          partialArgs: [{ jsonPath: '$.to', willContinue: at < 2, stringValue }],
          willContinue: at < 2,
        },
      }),
    ),
  ],
  [
    'finishMessage',
    'gemini',
    [data({ candidates: [{ content: { parts: [] }, index: 0, finishMessage: CODE }] })],
  ],
  ['an unknown member of a part', 'gemini', [part({ text: 'x', x_note: { y: CODE } })]],
  ['an unknown member beside the candidates', 'gemini', [data({ candidates: [], x_note: CODE })]],
]

/** A plain stream with further events before its text. */
function withEvents(dialect: Protocol, events: readonly string[]): Streamed {
  const { frames = [], ...rest } = answerOf(dialect, 'streamed', { text: 'plain' }) as Streamed
  const begin = dialect === 'gemini' ? 0 : 1
  return { ...rest, frames: [...frames.slice(0, begin), ...events, ...frames.slice(begin)] }
}

/** A text without the ids that the gateway makes for each call, and with line ends of one kind. */
const unnamed = (text: string): string => text.replaceAll(/resp_\w+/g, 'resp').replaceAll('\r\n', '\n')

describe.each(STREAMED)('in a stream, %s (%s)', (_what, dialect, events) => {
  test("a match in a stream's fields that no API describes is redacted, wherever the stream is cut", async () => {
    const text = await ask(dialect, 'streamed', 'redact', withEvents(dialect, events))
    expect(text).toContain('[REDACTED]')
    expect(said(text, 'streamed')).not.toMatch(/code-4711-x|47110815/)
    const cut = { ...withEvents(dialect, events), drip: true }
    expect(unnamed(await ask(dialect, 'streamed', 'redact', cut))).toBe(unnamed(text))
  })

  test("a match in a stream's fields that no API describes ends the stream like a refusal where a guard blocks", async () => {
    const text = await ask(dialect, 'streamed', 'block', withEvents(dialect, events))
    expect(said(text, 'streamed')).not.toMatch(/code-4711-x|47110815|, yes/)
    expect(text).toContain(`"${REFUSED[dialect]}"`)
    expect(text).not.toContain('pla')
  })

  test("a match in a stream's fields that no API describes stays unchanged with a guard in monitor mode", async () => {
    const text = await ask(dialect, 'streamed', 'watch', withEvents(dialect, events))
    for (const one of events) expect(text).toContain(one)
  })
})

test('a messages stream that a guard blocks in its message_start still has a beginning and an end, without content', async () => {
  const content = [{ type: 'text', text: CODE }]
  const start = event('message_start', {
    message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content, usage: { input_tokens: 1 } },
  })
  const answer = { kind: 'stream', frames: [start], ending: 'stall' } as const
  const events = eventsOf(await ask('messages', 'streamed', 'block', answer))
  expect(events.map(({ type }) => type as string)).toEqual(['message_start', 'message_delta', 'message_stop'])
  expect(events[0]?.['message']).toMatchObject({ id: 'm', role: 'assistant', content: [] })
})

/** Whole answers. */
const choice = { index: 0, message: { role: 'assistant', content: 'plain' }, finish_reason: 'stop' }
const completion = (members: object): object => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [choice],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  ...members,
})
const message = (content: object, members: object = {}): object => ({
  id: 'm',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'plain' }, content],
  stop_reason: 'end_turn',
  usage: { input_tokens: 1, output_tokens: 1 },
  ...members,
})
const response = (item: object, members: object = {}): object => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'm',
  output: [item],
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  ...members,
})
const answer = (candidate: object, members: object = {}): object => ({
  candidates: [
    { index: 0, content: { role: 'model', parts: [{ text: 'plain' }] }, finishReason: 'STOP', ...candidate },
  ],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  ...members,
})
const calling = (args: unknown): object => ({
  message: {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: args } }],
  },
})

const WHOLE: readonly [what: string, dialect: Protocol, body: object][] = [
  ['an unknown member', 'chat', completion({ x_note: { y: [CODE] } })],
  ['an unknown member of a choice', 'chat', completion({ choices: [{ ...choice, x_note: CODE }] })],
  [
    'an unknown member of a message',
    'chat',
    completion({ choices: [{ ...choice, message: { ...choice.message, x_note: { y: CODE } } }] }),
  ],
  [
    'arguments that are an object',
    'chat',
    completion({ choices: [{ ...choice, ...calling({ to: CODE }) }] }),
  ],
  ['a number in arguments', 'chat', completion({ choices: [{ ...choice, ...calling(`{"n":${NUMBER}}`) }] })],
  [
    'a number in arguments that are an object',
    'chat',
    completion({ choices: [{ ...choice, ...calling({ n: NUMBER }) }] }),
  ],
  [
    'each of several choices',
    'chat',
    completion({
      choices: [0, 1, 2].map((index) => ({
        ...choice,
        index,
        message: { role: 'assistant', content: `${index} ${CODE}` },
      })),
    }),
  ],
  [
    'the result of a tool that states so by its role',
    'chat',
    completion({ choices: [{ ...choice, message: { role: 'tool', content: CODE } }] }),
  ],
  ['an unknown member', 'messages', message({ type: 'text', text: 'x' }, { x_note: CODE })],
  ['an unknown block', 'messages', message({ type: 'x', note: { y: CODE } })],
  [
    'citations',
    'messages',
    message({ type: 'text', text: 'x', citations: [{ type: 'char_location', cited_text: CODE }] }),
  ],
  [
    'a number in the input of a tool',
    'messages',
    message({ type: 'tool_use', id: 't', name: 'f', input: { n: [NUMBER] } }),
  ],
  [
    'what the result of a tool of the provider says',
    'messages',
    message({ type: 'x_tool_result', tool_use_id: 't', content: [{ type: 'text', text: CODE }] }),
  ],
  ['an unknown member', 'responses', response({ id: 'i', type: 'x' }, { x_note: CODE })],
  ['an unknown item', 'responses', response({ id: 'i', type: 'x', note: { y: CODE } })],
  ['the schema of a listed tool', 'responses', response(LISTED)],
  [
    'what a tool of the provider has answered',
    'responses',
    response({ id: 'i', type: 'code_interpreter_call', code: '1', outputs: [{ type: 'logs', logs: CODE }] }),
  ],
  [
    'a number in the arguments of a call',
    'responses',
    response({ id: 'i', type: 'function_call', call_id: 'c', name: 'f', arguments: `{"n":${NUMBER}}` }),
  ],
  ['finishMessage', 'gemini', answer({ finishMessage: CODE })],
  ['an unknown member', 'gemini', answer({}, { x_note: CODE })],
  [
    'a call beside a text',
    'gemini',
    answer({ content: { parts: [{ text: 'x', functionCall: { name: 'f', args: { to: CODE } } }] } }),
  ],
  [
    'a number in a call',
    'gemini',
    answer({ content: { parts: [{ functionCall: { name: 'f', args: { n: NUMBER } } }] } }),
  ],
]

describe.each(WHOLE)('in a whole answer, %s (%s)', (_what, dialect, body) => {
  const whole = { kind: 'whole', body: JSON.stringify(body) } as const

  test("a match in a whole answer's fields that no API describes is redacted, and no other byte changes", async () => {
    const text = await ask(dialect, 'whole', 'redact', whole)
    expect(said(text, 'whole')).toContain('[REDACTED]')
    expect(said(text, 'whole')).not.toMatch(/code-4711-x|47110815/)
    expect(unnamed(text)).toBe(
      unnamed(
        whole.body
          .replaceAll(CODE, '[REDACTED]')
          .replaceAll(`\\"n\\":${NUMBER}`, '\\"n\\":\\"[REDACTED]\\"')
          .replaceAll(String(NUMBER), '"[REDACTED]"'),
      ),
    )
  })

  test("a match in a whole answer's fields that no API describes makes the answer a refusal where a guard blocks", async () => {
    const text = await ask(dialect, 'whole', 'block', whole)
    expect(said(text, 'whole')).toContain(REFUSED[dialect])
    for (const part of ['"content":"plain"', '"text":"plain"', '"text":"x"']) expect(text).not.toContain(part)
    expect(JSON.stringify(Object.values(JSON.parse(text) as Loose)[0])).not.toMatch(/code-4711-x|47110815/)
  })

  test("a match in a whole answer's fields that no API describes stays unchanged with a guard in monitor mode", async () => {
    expect(unnamed(await ask(dialect, 'whole', 'watch', whole))).toBe(unnamed(whole.body))
  })
})

/** What a stream has besides events. */
const STRAY = [
  ['a comment', `: ${CODE}\n\n`],
  ['another field', `id: ${CODE}\nx: ${CODE}\n\n`],
  ['a text', `data: It is ${CODE}\n\n`],
  ['a list', `data: ["${CODE}"]\n\n`],
  ['an object that has a member twice', `data: {"x":1,"x":"${CODE}"}\n\n`],
] as const

describe.each(PROTOCOLS.flatMap((dialect) => STRAY.map(([what, text]) => [what, dialect, text] as const)))(
  'in a stream, %s that is no event (%s)',
  (_what, dialect, stray) => {
    test('content of a stream that is not a valid event is left out where a guard may change the answer', async () => {
      const plain = await ask(dialect, 'streamed', 'redact', withEvents(dialect, []))
      const text = await ask(dialect, 'streamed', 'redact', withEvents(dialect, [stray]))
      expect(unnamed(text)).toBe(unnamed(plain))
    })

    test('content of a stream that is not a valid event is sent with a guard in monitor mode', async () => {
      expect(await ask(dialect, 'streamed', 'watch', withEvents(dialect, [stray]))).toContain(stray)
    })
  },
)

test.each(PROTOCOLS)(
  'an event of a guarded %s stream reaches the client with its name and data alone, without ids and comments',
  async (dialect) => {
    const { frames = [], ...rest } = answerOf(dialect, 'streamed', { text: 'plain' }) as Streamed
    const marked = frames.map((frame) => `: ${CODE}\nid: ${CODE}\n${frame}`)
    const plain = await ask(dialect, 'streamed', 'redact', withEvents(dialect, []))
    const text = await ask(dialect, 'streamed', 'redact', { ...rest, frames: marked })
    expect(unnamed(text)).toBe(unnamed(plain))
  },
)

test.each(PROTOCOLS)(
  'a whole %s answer that a guard cannot check, because a JSON member is repeated, is refused',
  async (dialect) => {
    const { body = '' } = answerOf(dialect, 'whole', { text: `It is ${CODE}` }) as { body?: string }
    const twice = body.trimEnd().replace(/\}$/, ',"x":1,"x":2}')
    const whole = { kind: 'whole', body: twice } as const
    const text = await ask(dialect, 'whole', 'redact', whole)
    expect(text).toContain(REFUSED[dialect])
    expect(text).not.toContain(CODE)
    expect(unnamed(await ask(dialect, 'whole', 'watch', whole))).toBe(unnamed(twice))
  },
)

/** Lists that spell a text token by token. */
const TOKENS = ['code-', '4711-', 'x'].map((token) => ({ token, logprob: -1, top_logprobs: [] }))
const LISTS: readonly [what: string, dialect: Protocol, form: Form, behaviour: Behaviour][] = FORMS.flatMap(
  (form): [string, Protocol, Form, Behaviour][] => {
    const sent = (dialect: Protocol, body: object, events: readonly string[]): Behaviour =>
      form === 'whole' ? { kind: 'whole', body: JSON.stringify(body) } : withEvents(dialect, events)
    const chat = (logprobs: unknown): Behaviour =>
      sent('chat', completion({ choices: [{ ...choice, logprobs }] }), [
        chunk({ index: 0, delta: { content: '' }, logprobs }),
      ])
    const text = { type: 'output_text', text: 'plain', annotations: [], logprobs: TOKENS }
    const item = { id: 'i', type: 'message', role: 'assistant', content: [text] }
    return [
      ['logprobs', 'chat', form, chat({ content: TOKENS })],
      ['logprobs that are a list', 'chat', form, chat(TOKENS)],
      [
        'logprobs of a text',
        'responses',
        form,
        sent('responses', response(item), [
          event('response.output_text.delta', { output_index: 9, item_id: 'i', delta: '', logprobs: TOKENS }),
          event('response.output_text.done', { output_index: 9, item_id: 'i', text: '', logprobs: TOKENS }),
          event('response.output_item.done', { output_index: 9, item }),
        ]),
      ],
      [
        'logprobsResult',
        'gemini',
        form,
        sent('gemini', answer({ logprobsResult: { chosenCandidates: TOKENS } }), [
          data({
            candidates: [{ index: 0, content: { parts: [] }, logprobsResult: { chosenCandidates: TOKENS } }],
          }),
        ]),
      ],
    ]
  },
)

test.each(LISTS)(
  'the log probabilities in %s of a %s answer (%s) are left out where a guard may change the answer',
  async (_what, dialect, form, behaviour) => {
    const text = await ask(dialect, form, 'redact', behaviour)
    expect(text).not.toMatch(/code-|4711/)
    expect(await ask(dialect, form, 'watch', behaviour)).toContain('"4711-"')
  },
)
