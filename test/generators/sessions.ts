import type { ClientProtocol } from '@sluice/wire/protocols'
import fc from 'fast-check'

/**
 * One round of a conversation: the user speaks, perhaps again before an answer came, the model calls tools several
 * times, and answers.
 */
interface Round {
  readonly note: string | undefined
  readonly said: string
  readonly picture: boolean
  readonly again: string | undefined
  readonly steps: readonly {
    readonly thought: string | undefined
    readonly said: string | undefined
    readonly results: readonly string[]
  }[]
  readonly answer: string
}

/** Conversation of an agent, as rounds. */
export interface Session {
  readonly system: string
  readonly rounds: readonly Round[]
}

/** Texts that are never blank; some contain characters that JSON escapes. */
const text = fc
  .tuple(fc.constantFrom('read', 'write "x"', 'line\nbreak', 'é]}', 'tab\t'), fc.nat(999))
  .map(([word, number]) => `${word} ${number}`)
const optional = fc.option(text, { nil: undefined })

/** Conversations with tools, pictures, thinking, parallel calls, and system messages between the rounds. */
export const sessions: fc.Arbitrary<Session> = fc.record({
  system: text,
  rounds: fc.array(
    fc.record({
      note: optional,
      said: text,
      picture: fc.boolean(),
      again: optional,
      steps: fc.array(
        fc.record({
          thought: optional,
          said: optional,
          results: fc.array(text, { minLength: 1, maxLength: 3 }),
        }),
        { maxLength: 3 },
      ),
      answer: text,
    }),
    { minLength: 1, maxLength: 3 },
  ),
})

/** Which parts of a request have cache marks. */
export interface MarkPlan {
  readonly tools: boolean
  readonly system: boolean
  /** Elements of the history: positions, from its end if `fromEnd`. */
  readonly elements: readonly number[]
  readonly fromEnd: boolean
  readonly ttl: '5m' | '1h' | undefined
  /** Whether a client of chat marks with `prompt_cache_breakpoint`. */
  readonly isBreakpoint: boolean
}

/** Marks that are elsewhere in each request of a session, as agents move them to the latest message. */
export const movingMarks: fc.Arbitrary<readonly MarkPlan[]> = fc.array(
  fc.record({
    tools: fc.boolean(),
    system: fc.boolean(),
    elements: fc.uniqueArray(fc.nat(6), { maxLength: 3 }),
    fromEnd: fc.boolean(),
    ttl: fc.constantFrom('5m', '1h', undefined),
    isBreakpoint: fc.boolean(),
  }),
  { minLength: 1, maxLength: 8 },
)

/** Marks that stay where they are. */
export const stayingMarks: fc.Arbitrary<MarkPlan> = fc.record({
  tools: fc.boolean(),
  system: fc.boolean(),
  elements: fc.uniqueArray(fc.nat(4), { minLength: 1, maxLength: 2 }),
  fromEnd: fc.constant(false),
  ttl: fc.constant(undefined),
  // A later breakpoint would give the tools a longer lifetime.
  isBreakpoint: fc.constant(false),
})

type Items = readonly object[]

/** A dialect's form of the elements of a history. */
interface Writer {
  readonly note: ((said: string) => object) | undefined
  user(said: string, hasPicture: boolean): object
  /** A step of the model; `id` names its calls. */
  step(thought: string | undefined, said: string | undefined, calls: readonly string[]): Items
  results(results: readonly (readonly [id: string, text: string])[]): Items
  answer(said: string): object
  request(system: string, history: Items): object
}

const PNG = 'iVBORw0KGgoAAAANSUhEUg=='
const SCHEMA = { type: 'object', properties: { path: { type: 'string' } } }
const input = (id: string): object => ({ path: id })

const WRITERS: Readonly<Record<ClientProtocol, Writer>> = {
  chat: {
    note: (content) => ({ role: 'system', content }),
    user: (said, hasPicture) => ({
      role: 'user',
      content: hasPicture
        ? [
            { type: 'text', text: said },
            { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
          ]
        : said,
    }),
    step: (thought, said, calls) => [
      {
        role: 'assistant',
        content: said ?? null,
        ...(thought !== undefined && { reasoning_content: thought }),
        tool_calls: calls.map((id) => ({
          id,
          type: 'function',
          function: { name: 'read', arguments: JSON.stringify(input(id)) },
        })),
      },
    ],
    results: (results) => results.map(([id, content]) => ({ role: 'tool', tool_call_id: id, content })),
    answer: (content) => ({ role: 'assistant', content }),
    request: (system, messages) => ({
      model: 'm',
      messages: [{ role: 'system', content: system }, ...messages],
      tools: [{ type: 'function', function: { name: 'read', parameters: SCHEMA } }],
    }),
  },
  messages: {
    note: (content) => ({ role: 'system', content }),
    user: (said, hasPicture) => ({
      role: 'user',
      content: [
        { type: 'text', text: said },
        ...(hasPicture
          ? [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }]
          : []),
      ],
    }),
    step: (thought, said, calls) => [
      {
        role: 'assistant',
        content: [
          ...(thought === undefined ? [] : [{ type: 'thinking', thinking: thought, signature: 'c2ln' }]),
          ...(said === undefined ? [] : [{ type: 'text', text: said }]),
          ...calls.map((id) => ({ type: 'tool_use', id, name: 'read', input: input(id) })),
        ],
      },
    ],
    results: (results) => [
      {
        role: 'user',
        content: results.map(([id, content]) => ({ type: 'tool_result', tool_use_id: id, content })),
      },
    ],
    answer: (said) => ({ role: 'assistant', content: [{ type: 'text', text: said }] }),
    request: (system, messages) => ({
      model: 'm',
      max_tokens: 100,
      system: [{ type: 'text', text: system }],
      messages,
      tools: [{ name: 'read', input_schema: SCHEMA }],
    }),
  },
  responses: {
    note: (content) => ({ type: 'message', role: 'developer', content }),
    user: (said, hasPicture) => ({
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_text', text: said },
        ...(hasPicture ? [{ type: 'input_image', image_url: `data:image/png;base64,${PNG}` }] : []),
      ],
    }),
    step: (thought, said, calls) => [
      ...(thought === undefined
        ? []
        : [{ type: 'reasoning', summary: [{ type: 'summary_text', text: thought }] }]),
      ...(said === undefined
        ? []
        : [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: said }] }]),
      ...calls.map((id) => ({
        type: 'function_call',
        call_id: id,
        name: 'read',
        arguments: JSON.stringify(input(id)),
      })),
    ],
    results: (results) =>
      results.map(([id, output]) => ({ type: 'function_call_output', call_id: id, output })),
    answer: (said) => ({
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text: said }],
    }),
    request: (instructions, history) => ({
      model: 'm',
      instructions,
      input: history,
      tools: [{ type: 'function', name: 'read', parameters: SCHEMA, strict: false }],
    }),
  },
  gemini: {
    note: undefined,
    user: (said, hasPicture) => ({
      role: 'user',
      parts: [{ text: said }, ...(hasPicture ? [{ inlineData: { mimeType: 'image/png', data: PNG } }] : [])],
    }),
    step: (thought, said, calls) => [
      {
        role: 'model',
        parts: [
          ...(thought === undefined ? [] : [{ text: thought, thought: true }]),
          ...(said === undefined ? [] : [{ text: said }]),
          ...calls.map((id) => ({
            functionCall: { id, name: 'read', args: input(id) },
            thoughtSignature: 'c2ln',
          })),
        ],
      },
    ],
    results: (results) => [
      {
        role: 'user',
        parts: results.map(([id, output]) => ({
          functionResponse: { id, name: 'read', response: { output } },
        })),
      },
    ],
    answer: (said) => ({ role: 'model', parts: [{ text: said }] }),
    request: (system, contents) => ({
      systemInstruction: { parts: [{ text: system }] },
      contents,
      tools: [{ functionDeclarations: [{ name: 'read', parametersJsonSchema: SCHEMA }] }],
    }),
  },
}

type Fields = Readonly<Record<string, unknown>>

const markOf = ({ ttl, isBreakpoint }: MarkPlan, protocol: ClientProtocol): object =>
  protocol === 'responses' || (protocol === 'chat' && isBreakpoint)
    ? { prompt_cache_breakpoint: { mode: 'explicit' } }
    : { cache_control: { type: 'ephemeral', ...(ttl && { ttl }) } }

/** The last part of a content with a mark; a text becomes a list, as in clients. Undefined if there is nothing to mark. */
function markedContent(content: unknown, type: string, mark: object): Items | undefined {
  if (typeof content === 'string') return [{ type, text: content, ...mark }]
  if (!Array.isArray(content)) return undefined
  return [...(content.slice(0, -1) as Items), { ...(content.at(-1) as object), ...mark }]
}

function markedElement(element: Fields, mark: object, protocol: ClientProtocol): Fields {
  if (protocol === 'responses' && element['role'] === 'assistant') return element
  const name = 'output' in element ? 'output' : 'content'
  const content = markedContent(element[name], protocol === 'responses' ? 'input_text' : 'text', mark)
  return content ? { ...element, [name]: content } : element
}

/** Writes the marks of a plan into a request. Responses have no place for marks on instructions and tools. */
function withMarks(request: Fields, plan: MarkPlan, protocol: ClientProtocol): object {
  const mark = markOf(plan, protocol)
  const name = protocol === 'responses' ? 'input' : 'messages'
  const history = request[name] as readonly Fields[]
  // The system prompt of chat is the first message.
  const first = protocol === 'chat' ? 1 : 0
  const places = plan.elements.map((place) => (plan.fromEnd ? history.length - 1 - place : first + place))
  const isMarked = (index: number): boolean =>
    index < first ? plan.system : places.some((place) => place === index)
  const marked = history.map((element, index) =>
    isMarked(index) ? markedElement(element, mark, protocol) : element,
  )
  const tools = request['tools'] as readonly object[]
  return {
    ...request,
    [name]: marked,
    ...(plan.tools &&
      protocol !== 'responses' && {
        tools: tools.map((tool) => ({ ...tool, cache_control: { type: 'ephemeral' } })),
      }),
    ...(plan.system && protocol === 'messages' && { system: markedContent(request['system'], 'text', mark) }),
  }
}

/**
 * The requests of a session, as a client of the dialect sends them one after the other. The plans of their marks are
 * used in turn.
 */
export function requestsOf(
  protocol: ClientProtocol,
  { system, rounds }: Session,
  plans: readonly MarkPlan[] = [],
): string[] {
  const writer = WRITERS[protocol]
  const history: object[] = []
  const requests: string[] = []
  const send = (): void => {
    const request = writer.request(system, history)
    const plan = plans[requests.length % plans.length]
    requests.push(JSON.stringify(plan ? withMarks(request as Fields, plan, protocol) : request))
  }
  for (const [round, { note, said, picture, again, steps, answer }] of rounds.entries()) {
    if (note !== undefined && writer.note && round > 0) history.push(writer.note(note))
    history.push(writer.user(said, picture))
    send()
    if (again !== undefined) {
      history.push(writer.user(again, false))
      send()
    }
    for (const [number, step] of steps.entries()) {
      const ids = step.results.map((_, index) => `call_${round}_${number}_${index}`)
      history.push(...writer.step(step.thought, step.said, ids))
      history.push(...writer.results(ids.map((id, index) => [id, step.results[index]!] as const)))
      send()
    }
    history.push(writer.answer(answer))
  }
  return requests
}
