import type { ResponseHeaders } from '@sluice/http1'
import { asRecord, parseRecord } from '@sluice/wire/json/record'
import { renderObject } from '@sluice/wire/json/json-edit'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import { FrameSplitter } from '@sluice/wire/sse/frame-splitter'
import { eventsWithin } from '../../call/answers/event-response.ts'
import { GatewayError } from '../../errors.ts'
import type { ResizableAllocation } from '../../limits/request-memory.ts'
import type { ConversationState } from './conversations.ts'
import { turnBody, type TurnFrame } from './turn-frame.ts'

const OPENING_BRACE = 0x7b

/** Statuses of a request that was only checked: who answers it. */
export const CHECKED = { prepareHere: 204, prepareThere: 202 } as const

/** Input of a request for which only state is prepared, and which may have none: it is checked with this in its place. */
const NO_INPUT = '"."'

/** Whether a request has no input at all, which only one may that generates nothing. */
export function needsPlaceholder(frame: TurnFrame, base: ConversationState | undefined): boolean {
  return !frame.generates && base === undefined && frame.items === ''
}

/** The body of a turn that goes on from a remembered answer, if `base` is one. */
export function bodyAfter(frame: TurnFrame, base: ConversationState | undefined): Buffer {
  const replaced = new Map<string, string>()
  if (base) {
    replaced.set('input', `[${joined(base.items.toString(), frame.items)}]`)
    if (base.after !== undefined) replaced.set('previous_response_id', JSON.stringify(base.after))
    if (base.instructions !== undefined && !frame.scan.has('instructions'))
      replaced.set('instructions', base.instructions)
  }
  if (needsPlaceholder(frame, base)) replaced.set('input', NO_INPUT)
  return turnBody(frame, replaced, base !== undefined && base.after === undefined)
}

/** The state after a turn whose answer has these items. */
export function stateOf(
  id: string,
  frame: TurnFrame,
  base: ConversationState | undefined,
  answer: readonly string[] = [],
): ConversationState {
  const instructions = frame.scan.span('instructions')
  return {
    id,
    items: Buffer.from(joined(base?.items.toString() ?? '', frame.items, ...answer)),
    after: base ? base.after : frame.previousId,
    instructions: instructions ? frame.scan.textOf(instructions.node) : base?.instructions,
  }
}

/** The same state with further items. */
export function withItems(state: ConversationState, added: readonly string[]): ConversationState {
  return { ...state, items: Buffer.from(joined(state.items.toString(), ...added)) }
}

/** Collects what a later turn needs of an answer, from the events of its stream. */
export class AnswerCollector {
  readonly #memory: Pick<ResizableAllocation, 'take' | 'give'>
  readonly #items: string[] = []
  /** Bytes of memory for the items. */
  #taken = 0
  /** Whether there was no memory for an item. Then only an answer that its provider has stored can be continued. */
  isLost = false
  /** Id of the answer, as the client knows it; undefined before its first event. */
  startedId: string | undefined
  /** Bytes of events since the last complete item. */
  unfinishedBytes = 0
  #id: string | undefined
  #isStored = false

  constructor(memory: Pick<ResizableAllocation, 'take' | 'give'>) {
    this.#memory = memory
  }

  /** Reads an event. */
  add(json: string): void {
    this.unfinishedBytes += json.length
    if (json.includes('"response.output_item.done"')) this.#addItem(json)
    else if (this.startedId === undefined && json.includes('"response.created"')) this.#start(json)
    else if (json.includes('"response.completed"') || json.includes('"response.incomplete"')) this.#end(json)
  }

  /** The state after the answer, to which items were added; undefined if it failed or is lost. */
  stateAfter(
    frame: TurnFrame,
    base: ConversationState | undefined,
    added: readonly string[],
  ): ConversationState | undefined {
    if (this.#id === undefined) return undefined
    const id = this.#id
    const items = Buffer.from(joined(...added))
    if (this.#isStored) return { id, items, after: id, instructions: undefined }
    if (this.isLost) return undefined
    const state = stateOf(id, frame, base, [...this.#items, ...added])
    return frame.generates ? { ...state, instructions: undefined } : state
  }

  /** The state if the answer ended now; its unfinished item is not part of it. */
  stateSoFar(frame: TurnFrame, base: ConversationState | undefined): ConversationState {
    return { ...stateOf('', frame, base, this.#items), instructions: base?.instructions }
  }

  /** Drops the items. */
  release(): void {
    this.#memory.give(this.#taken)
    this.#taken = 0
    this.#items.length = 0
  }

  #start(json: string): void {
    const id = asRecord(parseRecord(json)?.['response'])?.['id']
    if (typeof id === 'string') this.startedId = id
  }

  #addItem(json: string): void {
    this.unfinishedBytes = 0
    const scan = scanObject(Buffer.from(json), RESPONSE_LIMITS)
    const item = scan.span('item')
    if (scan.value('type') !== 'response.output_item.done' || !item) return
    const content = asRecord(scan.parse(item.node))
    // Providers refuse reasoning that they have not stored and cannot read.
    if (content?.['type'] === 'reasoning' && typeof content['encrypted_content'] !== 'string') return
    const text = scan.textOf(item.node)
    const bytes = Buffer.byteLength(text)
    this.isLost ||= !this.#memory.take(bytes)
    if (this.isLost) return this.release()
    this.#taken += bytes
    this.#items.push(text)
  }

  #end(json: string): void {
    const event = parseRecord(json)
    if (event?.['type'] !== 'response.completed' && event?.['type'] !== 'response.incomplete') return
    const response = asRecord(event['response'])
    const id = response?.['id']
    if (typeof id !== 'string') return
    this.#id = id
    this.#isStored = response?.['store'] === true
  }
}

/** Names of the headers that an error repeats: when to try again, and the limits of the key. */
const IN_ERRORS = /^(?:retry-after|x-should-retry|x-ratelimit-.*|x-request-id)$/

/** The event for a turn that was refused, from what POST would have answered. */
export function refusalEvent(status: number, headers: ResponseHeaders, body: Buffer, lane?: string): string {
  const given = asRecord(parseRecord(body.toString())?.['error'])
  const repeated = Object.fromEntries(Object.entries(headers).filter(([name]) => IN_ERRORS.test(name)))
  const code = given?.['code'] ?? null
  const error = {
    type: given?.['type'] ?? 'api_error',
    code,
    message: given?.['message'] ?? `the call failed with status ${status}`,
    param: code === 'previous_response_not_found' ? 'previous_response_id' : (given?.['param'] ?? null),
    headers: repeated,
  }
  const event = {
    type: 'error',
    status,
    error,
    headers: repeated,
    ...(lane !== undefined && { stream_id: lane }),
  }
  return JSON.stringify(event)
}

/** Codes of a key that is no longer valid. One that has used up its quota may get more. */
const KEY_ENDS = ['invalid_api_key', 'token_deleted', 'token_disabled', 'token_expired'] as const

/** The error for the other turns of a socket, if one was refused because the key is no longer valid. */
export function endOfKey(status: number, body: Buffer): GatewayError | undefined {
  if (status !== 401) return undefined
  const given = asRecord(parseRecord(body.toString())?.['error'])?.['code']
  const code = KEY_ENDS.find((known) => known === given)
  return code && new GatewayError(code, 'the API key of this socket is no longer valid')
}

/** Adds the name of its lane to an event. */
export function withLane(json: string, lane: string | undefined): string {
  if (lane === undefined) return json
  return `${json.trimEnd().slice(0, -1)},"stream_id":${JSON.stringify(lane)}}`
}

/** The events of a stream as the client gets them, one a line. An answer that is no stream stays as it is. */
export function eventLines(answer: Buffer, lane: string | undefined): Buffer {
  if (answer[0] === OPENING_BRACE) return answer
  const lines = [...eventsWithin(new FrameSplitter(), answer)].map((json) => `${withLane(json, lane)}\n`)
  return Buffer.from(lines.join(''))
}

/** The answer to a frame that generates nothing: the events of a response without output. */
export function preparedEvents(id: string, frame: TurnFrame, nowMs: number): string[] {
  const { scan } = frame
  const usage = {
    input_tokens: 0,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 0,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 0,
  }
  const response = (status: string, used: object | null): string =>
    renderObject([
      ['id', JSON.stringify(id)],
      ['object', '"response"'],
      ['created_at', String(Math.floor(nowMs / 1000))],
      ['status', JSON.stringify(status)],
      ['error', 'null'],
      ['incomplete_details', 'null'],
      ...(['instructions', 'model', 'metadata', 'tools', 'tool_choice'] as const).map((name) => {
        const member = scan.span(name)
        return [name, member && scan.textOf(member.node)] as const
      }),
      ['output', '[]'],
      ['parallel_tool_calls', scan.kind('parallel_tool_calls') === 'false' ? 'false' : 'true'],
      ['store', 'false'],
      ['usage', JSON.stringify(used)],
    ])
  const event = (name: string, sequence: number, content: string): string =>
    `{"type":"response.${name}","sequence_number":${sequence},"response":${content}}`
  return [
    event('created', 0, response('in_progress', null)),
    event('completed', 1, response('completed', usage)),
  ]
}

function joined(...texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join(',')
}
