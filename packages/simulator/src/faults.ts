import { directiveMembers } from './directive.ts'
import { type Fields, asFields, asList, asString } from './fields.ts'
import type { Frame, Reply } from './upstream.ts'

/** Protocols in which faults are played. */
export type FaultyProtocol = keyof typeof ERRORS

/**
 * Replies with the faults that a `simulate(…)` directive in the request names; see the README. `reply` makes the
 * sound reply to a request.
 */
export function replyWithFaults(
  protocol: FaultyProtocol,
  body: Fields,
  reply: (body: Fields) => Reply,
): Reply {
  const members = directiveMembers(body)
  const form = FORMS_OF_WORDS[members.get('words') ?? ''] ?? ERRORS[protocol]
  const status = Number(members.get('status') ?? 0)
  if (status >= 400 && status < 600)
    return { kind: 'whole', body: form(status), tokens: 0, status, ...headersOf(protocol, status) }
  const asked = members.has('other_form') ? { ...body, stream: body.stream !== true } : body
  const faults = FAULTS.filter(({ name }) => members.has(name))
  const made = reply(asked)
  const faulty = faults.reduce((last, { name, play }) => play(last, protocol, members.get(name) ?? ''), made)
  const error = Number(members.get('error') ?? 0)
  if (error < 400 || error >= 600) return faulty
  return withError(faulty, protocol, { status: error, data: form(error), isLate: members.has('late') })
}

interface Fault {
  /** The member of the directive. */
  readonly name: string
  readonly play: (reply: Reply, protocol: FaultyProtocol, value: string) => Reply
}

const FAULTS: readonly Fault[] = [
  { name: 'end', play: withEnd },
  { name: 'broken_arguments', play: withBrokenArguments },
  { name: 'content_list', play: (reply, protocol) => edited(reply, (data) => withList(data, protocol)) },
  { name: 'one_index', play: (reply) => edited(reply, withOneIndex) },
  { name: 'unnamed_events', play: (reply) => frames(reply, (text) => text.replace(/^event: .*\n/, '')) },
]

/** The words of an error in the forms that providers use. */
const FORMS_OF_WORDS: Readonly<Record<string, (status: number) => Fields>> = {
  message: () => ({ message: WORDS }),
  error: () => ({ error: WORDS }),
  detail: () => ({ detail: WORDS }),
  detail_list: () => ({ detail: [{ loc: ['body', 'model'], msg: WORDS, type: 'value_error' }] }),
  message_detail: () => ({ message: { detail: WORDS } }),
  errors: () => ({ errors: [{ message: WORDS }] }),
  error_msg: (status) => ({ error_code: status, error_msg: WORDS }),
  msg: (status) => ({ code: status, msg: WORDS }),
}
const WORDS = 'The simulated provider fails as requested.'

/** An error in the form of each protocol. */
const ERRORS = {
  chat: (status: number): Fields => ({
    error: { message: WORDS, type: 'server_error', param: null, code: status },
  }),
  messages: (status: number): Fields => ({
    type: 'error',
    error: { type: MESSAGES_TYPES.get(status) ?? 'api_error', message: WORDS },
  }),
  responses: (status: number): Fields => ({
    error: { message: WORDS, type: 'server_error', param: null, code: String(status) },
  }),
  gemini: (status: number): Fields => ({
    error: { code: status, message: WORDS, status: GOOGLE_STATUS.get(status) ?? 'INTERNAL' },
  }),
  // The name of the exception is not in the body.
  converse: (): Fields => ({ message: WORDS }),
} satisfies Record<string, (status: number) => Fields>
/** The body of an error with this status, as the provider of the protocol writes it. */
export function errorBody(protocol: FaultyProtocol, status: number): Fields {
  return ERRORS[protocol](status)
}

const MESSAGES_TYPES: ReadonlyMap<number, string> = new Map([
  [400, 'invalid_request_error'],
  [429, 'rate_limit_error'],
  [529, 'overloaded_error'],
])
const GOOGLE_STATUS: ReadonlyMap<number, string> = new Map([
  [400, 'INVALID_ARGUMENT'],
  [429, 'RESOURCE_EXHAUSTED'],
  [503, 'UNAVAILABLE'],
])

/**
 * Bedrock's exceptions by status; the first letter is a capital in the header of a response
 * (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStreamOutput.html).
 */
const EXCEPTIONS: ReadonlyMap<number, string> = new Map([
  [400, 'validationException'],
  [424, 'modelStreamErrorException'],
  [429, 'throttlingException'],
  [503, 'serviceUnavailableException'],
])

function exceptionOf(status: number): string {
  return EXCEPTIONS.get(status) ?? 'internalServerException'
}

/** The name of an event with an error in a stream; undefined if events have no names. */
function eventName(protocol: FaultyProtocol, status: number): string | undefined {
  if (protocol === 'converse') return exceptionOf(status)
  return protocol === 'messages' || protocol === 'responses' ? 'error' : undefined
}

function headersOf(protocol: FaultyProtocol, status: number): Pick<Reply, 'headers'> {
  if (protocol !== 'converse') return {}
  const name = exceptionOf(status)
  return { headers: { 'x-amzn-errortype': name.charAt(0).toUpperCase() + name.slice(1) } }
}

interface PlayedError {
  readonly status: number
  readonly data: Fields
  /** Whether it comes after the content of a stream. */
  readonly isLate: boolean
}

/** An error in place of the answer, with status 200. */
function withError(reply: Reply, protocol: FaultyProtocol, { status, data, isLate }: PlayedError): Reply {
  if (reply.kind !== 'stream') return { kind: 'whole', body: data, tokens: 0 }
  const name = eventName(protocol, status)
  const event = protocol === 'responses' ? { type: 'error', ...asFields(data.error), ...data } : data
  const line = name === undefined ? '' : `event: ${name}\n`
  const frame: Frame = { text: `${line}data: ${JSON.stringify(event)}\n\n`, tokens: 0 }
  return { ...reply, frames: isLate ? [...withoutEnd(reply.frames), frame] : [frame] }
}

/** The words of each protocol for a reason; others are spelled as they are given. */
const REASONS: Readonly<Record<FaultyProtocol, Readonly<Record<string, string>>>> = {
  chat: { filtered: 'content_filter', refused: 'content_filter', malformed_call: 'malformed_function_call' },
  messages: {
    length: 'max_tokens',
    filtered: 'sensitive',
    refused: 'refusal',
    malformed_call: 'malformed_tool_use',
  },
  responses: { length: 'max_output_tokens', filtered: 'content_filter', refused: 'content_filter' },
  gemini: {
    length: 'MAX_TOKENS',
    filtered: 'SAFETY',
    refused: 'PROHIBITED_CONTENT',
    malformed_call: 'MALFORMED_FUNCTION_CALL',
    unexpected_call: 'UNEXPECTED_TOOL_CALL',
  },
  converse: {
    length: 'max_tokens',
    filtered: 'guardrail_intervened',
    refused: 'content_filtered',
    malformed_call: 'malformed_tool_use',
  },
}

function withEnd(reply: Reply, protocol: FaultyProtocol, value: string): Reply {
  if (value === 'none')
    return reply.kind === 'stream'
      ? { ...reply, frames: withoutEnd(reply.frames) }
      : edited(reply, withoutReason)
  const reason = REASONS[protocol][value] ?? value
  const changed = edited(reply, (data) => withReason(data, protocol, reason))
  return protocol === 'responses' ? frames(changed, nameByType) : changed
}

/** Members that state why an answer ended. */
const REASON_MEMBERS = ['finish_reason', 'stop_reason', 'finishReason', 'stopReason'] as const

/** Changes the members of an object and of the objects in it that state why the answer ended. */
function mapReasons(value: unknown, change: (name: string, reason: string) => unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => mapReasons(one, change))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      REASON_MEMBERS.some((one) => one === name) && typeof member === 'string'
        ? change(name, member)
        : mapReasons(member, change),
    ]),
  )
}

function withReason(data: Fields, protocol: FaultyProtocol, reason: string): Fields {
  if (protocol !== 'responses') return asFields(mapReasons(data, () => reason))
  const response = asFields(data.response ?? data)
  if (response.status !== 'completed' || response.object !== 'response') return data
  const isFailed = reason === 'failed' || reason === 'error' || reason === 'malformed_call'
  const ended = {
    ...response,
    status: isFailed ? 'failed' : 'incomplete',
    completed_at: null,
    ...(isFailed ? { error: { code: 'server_error', message: WORDS } } : { incomplete_details: { reason } }),
  }
  return data.response === undefined ? ended : { ...data, type: `response.${ended.status}`, response: ended }
}

function withoutReason(data: Fields): Fields {
  return asFields(mapReasons(data, () => null))
}

/** The frames of a stream up to the first one that says that it ends. */
function withoutEnd(all: readonly Frame[]): Frame[] {
  const end = all.findIndex(({ text }) =>
    /"(?:finish_reason|stop_reason|finishReason|stopReason)":"|"type":"response\.(?:completed|incomplete)"|\[DONE\]/.test(
      text,
    ),
  )
  return all.slice(0, end < 0 ? all.length : end)
}

/** Puts a character before the arguments of calls, so that they are not JSON. */
function withBrokenArguments(reply: Reply): Reply {
  const begun = new Set<unknown>()
  const first = (key: unknown): string => {
    const isFirst = !begun.has(key)
    begun.add(key)
    return isFirst ? '<' : ''
  }
  return edited(reply, (data) => {
    const { type, delta, index, item_id: item, contentBlockIndex: block } = data
    const { partial_json: piece, toolUse } = asFields(delta)
    const { input } = asFields(toolUse)
    if (typeof piece === 'string')
      return { ...data, delta: { ...asFields(delta), partial_json: first(index) + piece } }
    if (typeof input === 'string') return { ...data, delta: { toolUse: { input: first(block) + input } } }
    if (type === 'response.function_call_arguments.delta')
      return { ...data, delta: first(item) + String(delta) }
    return asFields(brokenArguments(data))
  })
}

function brokenArguments(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(brokenArguments)
  if (typeof value !== 'object' || value === null) return value
  const fields = value as Fields
  // The first piece of a chat call has a name. An item has its arguments as a whole, empty ones in its first event.
  const { name, arguments: text, type, input, args } = fields
  if (
    typeof text === 'string' &&
    (name !== undefined ? type !== 'function_call' || text !== '' : type !== undefined)
  )
    return { ...fields, arguments: `<${text}` }
  if ((type === 'tool_use' || fields.toolUseId !== undefined) && Object.keys(asFields(input)).length > 0)
    return { ...fields, input: `<${JSON.stringify(input)}` }
  if (args !== undefined) return { ...fields, args: `<${JSON.stringify(args)}` }
  return Object.fromEntries(Object.entries(fields).map(([key, member]) => [key, brokenArguments(member)]))
}

/** Writes the content of a chat answer as a list of parts. */
function withList(data: Fields, protocol: FaultyProtocol): Fields {
  if (protocol !== 'chat') return data
  const choices = asList(data.choices).map((one) => {
    const choice = asFields(one)
    const name = choice.delta === undefined ? 'message' : 'delta'
    const said = asFields(choice[name])
    const text = asString(said.content)
    return text === '' ? choice : { ...choice, [name]: { ...said, content: [{ type: 'text', text }] } }
  })
  return { ...data, choices }
}

/** Gives all calls of a chat stream the index 0. */
function withOneIndex(data: Fields): Fields {
  const choices = asList(data.choices).map((one) => {
    const choice = asFields(one)
    const delta = asFields(choice.delta)
    if (!Array.isArray(delta.tool_calls)) return choice
    return {
      ...choice,
      delta: { ...delta, tool_calls: delta.tool_calls.map((call) => ({ ...asFields(call), index: 0 })) },
    }
  })
  return choices.length === 0 ? data : { ...data, choices }
}

/** Changes the JSON of a reply: its body, or the data of each event. */
function edited(reply: Reply, change: (data: Fields) => Fields): Reply {
  if (reply.kind === 'whole') return { ...reply, body: change(asFields(reply.body)) }
  return frames(reply, (text) =>
    text.replace(/^data: (\{.*\})/m, (_, data: string) => {
      return `data: ${JSON.stringify(change(asFields(JSON.parse(data))))}`
    }),
  )
}

function frames(reply: Reply, change: (text: string) => string): Reply {
  if (reply.kind !== 'stream') return reply
  return { ...reply, frames: reply.frames.map(({ text, tokens }) => ({ text: change(text), tokens })) }
}

/** Names an event by the type in its data. */
function nameByType(text: string): string {
  const type = /^data: \{"type":"([^"]*)"/m.exec(text)?.[1]
  return type === undefined ? text : text.replace(/^event: .*\n/, `event: ${type}\n`)
}
