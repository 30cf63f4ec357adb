import { MessageStream } from '@anthropic-ai/sdk/lib/MessageStream'
import fc from 'fast-check'
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream'
import { describe, expect, test } from 'vitest'
import { lawRuns } from '../../../test/runner/tier.ts'
import { type AnswerForms, parseEvents, type Json } from './answer-forms.ts'
import { chatAnswerForms } from './chat/index.ts'
import { geminiAnswerForms } from './gemini/index.ts'
import { messagesAnswerForms } from './messages/index.ts'
import { responsesAnswerForms } from './responses/index.ts'

// The law: for every answer, whole or streamed in any way that its provider may choose, both forms say the same. What a
// stream says is told by the official clients, and by what the provider would have sent as a whole.

const RUNS = { numRuns: lawRuns(300) }
const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 })
const count = fc.integer({ min: 0, max: 9_000 })
const input = fc.dictionary(
  fc.string({ maxLength: 5 }),
  fc.oneof(text, count, fc.boolean(), fc.constant(null)),
  {
    maxKeys: 3,
    noNullPrototype: true,
  },
)
/** Chooses sizes of pieces. */
const cuts = fc.infiniteStream(fc.integer({ min: 1, max: 7 }))
type Cuts = Iterator<number>

/** Pieces of a text, of at most 7 characters each. */
function pieces(whole: string, sizes: Cuts): string[] {
  const characters = Array.from(whole)
  const all: string[] = []
  for (let at = 0; at < characters.length; ) {
    const end = at + Number(sizes.next().value)
    all.push(characters.slice(at, end).join(''))
    at = end
  }
  return all
}

const written = (events: readonly object[]): string =>
  events
    .map(
      (data) => ('type' in data ? `event: ${String(data.type)}\n` : '') + `data: ${JSON.stringify(data)}\n\n`,
    )
    .join('')

/** The events of a stream, as the official clients take them from elsewhere. */
function readable(stream: string): ReadableStream {
  const lines = parseEvents(stream).map(({ data }) => `${JSON.stringify(data)}\n`)
  return new Blob(lines).stream()
}

/** Both forms, from a provider's stream and from its whole answer. */
function expectBothForms(form: AnswerForms, whole: Json, stream: string): void {
  expect(form.whole(parseEvents(stream))).toEqual(whole)
  expect(form.whole(parseEvents(form.frames(whole, { includeUsage: true })))).toEqual(whole)
}

describe('chat', () => {
  const call = fc.record({
    id: text,
    type: fc.constant('function'),
    function: fc.record({ name: text, arguments: input.map((one) => JSON.stringify(one)) }),
  })
  const message = fc.record(
    {
      role: fc.constant('assistant'),
      content: fc.option(text),
      reasoning_content: text,
      tool_calls: fc.array(call, { minLength: 1, maxLength: 3 }),
    },
    { requiredKeys: ['role', 'content'] },
  )
  const usage = fc.record({ prompt_tokens: count, completion_tokens: count, total_tokens: count })
  const answer = fc.record({
    messages: fc.array(message, { minLength: 1, maxLength: 3 }),
    usage,
    id: text,
  })

  function forms(
    { messages, usage, id }: typeof answer extends fc.Arbitrary<infer One> ? One : never,
    sizes: Cuts,
  ) {
    const head = { id, created: 7, model: 'm' }
    const reasons = messages.map(({ tool_calls }) => (tool_calls ? 'tool_calls' : 'stop'))
    const whole = {
      ...head,
      object: 'chat.completion',
      choices: messages.map((message, index) => ({ index, message, finish_reason: reasons[index] })),
      usage,
    }
    const queues = messages.map(({ content, reasoning_content = '', tool_calls = [] }, index) =>
      [
        { role: 'assistant', content: null },
        ...pieces(reasoning_content, sizes).map((piece) => ({ reasoning_content: piece })),
        ...pieces(content ?? '', sizes).map((piece) => ({ content: piece })),
        ...tool_calls.flatMap(({ function: { name, arguments: given }, ...one }, at) => [
          { tool_calls: [{ index: at, ...one, function: { name, arguments: '' } }] },
          ...pieces(given, sizes).map((piece) => ({
            tool_calls: [{ index: at, function: { arguments: piece } }],
          })),
        ]),
        {},
      ].map((delta, at, { length }) => ({
        index,
        delta,
        finish_reason: at === length - 1 ? reasons[index] : null,
      })),
    )
    const choices: object[] = []
    // The choices take turns.
    while (queues.some(({ length }) => length > 0))
      for (const queue of queues) choices.push(...queue.splice(0, Number(sizes.next().value)))
    const chunk = { ...head, object: 'chat.completion.chunk' }
    const chunks = choices.map((choice) => ({ ...chunk, choices: [choice] }))
    return { whole, stream: `${written([...chunks, { ...chunk, choices: [], usage }])}data: [DONE]\n\n` }
  }

  test('a chat answer has the same content whole and as a stream', () =>
    fc.assert(
      fc.property(answer, cuts, (one, sizes) => {
        const { whole, stream } = forms(one, sizes)
        expectBothForms(chatAnswerForms, whole, stream)
      }),
      RUNS,
    ))

  test("OpenAI's client reads the same from a whole answer and from its stream", () =>
    fc.assert(
      fc.asyncProperty(answer, cuts, async (one, sizes) => {
        // It puts no texts together that it does not know.
        const known = one.messages.map(({ reasoning_content: _reasoning, ...message }) => message)
        const { whole, stream } = forms({ ...one, messages: known }, sizes)
        const read = async (from: string): Promise<unknown> => {
          const { choices, ...rest } = await ChatCompletionStream.fromReadableStream(
            readable(from),
          ).finalChatCompletion()
          return { ...rest, choices }
        }
        const made = chatAnswerForms.frames(whole, { includeUsage: true })
        expect(await read(made)).toEqual(await read(stream))
      }),
      { numRuns: lawRuns(100) },
    ))
})

describe('messages', () => {
  const block = fc.oneof(
    fc.record({ type: fc.constant('text' as const), text }),
    fc.record({ type: fc.constant('thinking' as const), thinking: text, signature: text }),
    fc.record({ type: fc.constant('redacted_thinking' as const), data: text }),
    fc.record({ type: fc.constant('tool_use' as const), id: text, name: text, input }),
  )
  const answer = fc.record({
    id: text,
    content: fc.array(block, { maxLength: 5 }),
    stop_reason: fc.constantFrom('end_turn', 'tool_use'),
    tokens: count,
    pings: fc.boolean(),
  })
  type Block = typeof block extends fc.Arbitrary<infer One> ? One : never

  function deltas(block: Block, sizes: Cuts): object[] {
    switch (block.type) {
      case 'text':
        return pieces(block.text, sizes).map((piece) => ({ type: 'text_delta', text: piece }))
      case 'thinking':
        return [
          ...pieces(block.thinking, sizes).map((piece) => ({ type: 'thinking_delta', thinking: piece })),
          { type: 'signature_delta', signature: block.signature },
        ]
      case 'redacted_thinking':
        return []
      case 'tool_use':
        return ['', ...pieces(JSON.stringify(block.input), sizes)].map((piece) => ({
          type: 'input_json_delta',
          partial_json: piece,
        }))
    }
  }

  function begun(block: Block): object {
    if (block.type === 'text') return { ...block, text: '' }
    if (block.type === 'thinking') return { ...block, thinking: '', signature: '' }
    return block.type === 'tool_use' ? { ...block, input: {} } : block
  }

  function forms(
    { id, content, stop_reason, tokens, pings }: typeof answer extends fc.Arbitrary<infer One> ? One : never,
    sizes: Cuts,
  ) {
    const head = { id, type: 'message', role: 'assistant', model: 'm' }
    const usage = { input_tokens: 7, cache_read_input_tokens: 3, output_tokens: tokens }
    const whole = { ...head, content, stop_reason, stop_sequence: null, usage }
    const started = { ...head, content: [], stop_reason: null, stop_sequence: null }
    const events = [
      { type: 'message_start', message: { ...started, usage: { ...usage, output_tokens: 1 } } },
      ...content.flatMap((block, index) => [
        { type: 'content_block_start', index, content_block: begun(block) },
        ...(pings ? [{ type: 'ping' }] : []),
        ...deltas(block, sizes).map((delta) => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      ]),
      {
        type: 'message_delta',
        delta: { stop_reason, stop_sequence: null },
        usage: { output_tokens: tokens },
      },
      { type: 'message_stop' },
    ]
    return { whole, stream: written(events) }
  }

  test('a messages answer has the same content whole and as a stream', () =>
    fc.assert(
      fc.property(answer, cuts, (one, sizes) => {
        const { whole, stream } = forms(one, sizes)
        expectBothForms(messagesAnswerForms, whole, stream)
      }),
      RUNS,
    ))

  test("Anthropic's client reads the same content from an original stream as from a stream made of the whole answer", () =>
    fc.assert(
      fc.asyncProperty(answer, cuts, async (one, sizes) => {
        const { whole, stream } = forms(one, sizes)
        const read = async (from: string): Promise<object> => {
          const said = await MessageStream.fromReadableStream(readable(from)).finalMessage()
          return JSON.parse(JSON.stringify(said)) as object
        }
        const made = messagesAnswerForms.frames(whole, { includeUsage: true })
        expect(await read(made)).toMatchObject(whole)
        expect(await read(made)).toEqual(await read(stream))
      }),
      { numRuns: lawRuns(100) },
    ))
})

describe('gemini', () => {
  const part = fc.oneof(
    fc.record({ text }),
    fc.record({ text, thought: fc.constant(true) }),
    fc.record({ text, thoughtSignature: text }),
    fc.record({ functionCall: fc.record({ name: text, args: input }) }),
  )
  type Part = typeof part extends fc.Arbitrary<infer One> ? One : never
  const kindOf = (one: Part | undefined): string =>
    one === undefined ? 'none' : 'functionCall' in one ? 'call' : 'thought' in one ? 'thought' : 'text'
  const answer = fc.record({
    // Texts of one kind beside each other are one text.
    parts: fc
      .array(part, { minLength: 1, maxLength: 6 })
      .map((all) => all.filter((one, at) => kindOf(one) === 'call' || kindOf(one) !== kindOf(all[at - 1])))
      .filter((all) => all.length > 0),
    tokens: count,
  })

  test('a Gemini answer has the same content whole and as a stream', () =>
    fc.assert(
      fc.property(answer, cuts, ({ parts, tokens }, sizes) => {
        const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: tokens }
        const head = { modelVersion: 'g', responseId: 'r' }
        const whole = {
          ...head,
          candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP' }],
          usageMetadata,
        }
        const said = parts.flatMap((one): object[] => {
          if (!('text' in one)) return [one]
          const { text: all, ...more } = one
          const split = pieces(all, sizes)
          // The signature comes with the last piece.
          return split.map((piece, at) => ({
            text: piece,
            ...('thoughtSignature' in more && at < split.length - 1 ? {} : more),
          }))
        })
        const chunks = said.map((one, at) => ({
          ...head,
          candidates: [
            {
              index: 0,
              content: { role: 'model', parts: [one] },
              ...(at === said.length - 1 && { finishReason: 'STOP' }),
            },
          ],
          usageMetadata: at === said.length - 1 ? usageMetadata : { promptTokenCount: 3 },
        }))
        expectBothForms(geminiAnswerForms, whole, written(chunks))
      }),
      RUNS,
    ))
})

describe('responses', () => {
  const item = fc.oneof(
    fc.record({
      id: text,
      type: fc.constant('message'),
      role: fc.constant('assistant'),
      status: fc.constant('completed'),
      content: fc.array(fc.record({ type: fc.constant('output_text'), text, annotations: fc.constant([]) }), {
        minLength: 1,
        maxLength: 3,
      }),
    }),
    fc.record({
      id: text,
      type: fc.constant('function_call'),
      status: fc.constant('completed'),
      call_id: text,
      name: text,
      arguments: input.map((one) => JSON.stringify(one)),
    }),
    fc.record({
      id: text,
      type: fc.constant('reasoning'),
      summary: fc.array(fc.record({ type: fc.constant('summary_text'), text }), { maxLength: 2 }),
    }),
  )

  test('a responses answer has the same content whole and as a stream, and its deltas add up to its texts', () =>
    fc.assert(
      fc.property(fc.array(item, { maxLength: 5 }), count, (output, tokens) => {
        const whole = {
          id: 'resp_1',
          object: 'response',
          status: 'completed',
          output,
          usage: { input_tokens: 3, output_tokens: tokens },
        }
        const events = parseEvents(responsesAnswerForms.frames(whole, { includeUsage: true }))
        expect(responsesAnswerForms.whole(events)).toEqual(whole)
        const ofType = (type: string): Json[] =>
          events.filter(({ data }) => data['type'] === type).map(({ data }) => data)
        expect(ofType('response.output_item.done').map(({ item }) => item)).toEqual(output)
        const deltas = ['output_text', 'reasoning_summary_text', 'function_call_arguments'].map((name) =>
          ofType(`response.${name}.delta`)
            .map(({ delta }) => delta)
            .join(''),
        )
        const texts = (type: string): string =>
          output
            .flatMap((one): { type: string; text: string }[] =>
              'content' in one ? one.content : 'summary' in one ? one.summary : [],
            )
            .filter((part) => part.type === type)
            .map((part) => part.text)
            .join('')
        expect(deltas).toEqual([
          texts('output_text'),
          texts('summary_text'),
          output.map((one) => ('arguments' in one ? one.arguments : '')).join(''),
        ])
      }),
      RUNS,
    ))
})
