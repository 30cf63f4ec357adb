import { applyEdits } from '@sluice/wire/json/json-edit'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import { asRecord, parseRecord } from '@sluice/wire/json/record'

/** How a turn goes on from the last answer on its provider's socket. */
export interface Continuation {
  /** The provider's id of that answer. */
  readonly after: string
  /** Number of items that the turn adds to it: the last ones of its input. */
  readonly items: number
}

/**
 * The message with which a turn is sent to a provider, from the body of the request as it would be sent by HTTP. With a
 * continuation, the items that the provider remembers are left out.
 */
export function createFrame(
  body: Buffer,
  { generates, isEmpty }: { readonly generates: boolean; readonly isEmpty: boolean },
  continued: Continuation | undefined,
): Buffer {
  const scan = scanObject(body, RESPONSE_LIMITS)
  const replace = new Map([['type', '"response.create"']])
  if (!generates) replace.set('generate', 'false')
  if (isEmpty) replace.set('input', '[]')
  const input = continued && scan.span('input')
  if (continued && input && scan.kindOf(input.node) === 'array') {
    const items = scan.elements(input.node)
    const added = items.slice(items.length - continued.items).map((item) => scan.textOf(item))
    replace.set('input', `[${added.join(',')}]`)
    replace.set('previous_response_id', JSON.stringify(continued.after))
  }
  return applyEdits(body, scan, { remove: ['stream', 'background'], replace })
}

/** The message that gives a response further input: the last items of the body of the request that follows from it. */
export function steerFrame(body: Buffer, items: number, runningId: string): Buffer {
  const scan = scanObject(body, RESPONSE_LIMITS)
  const input = scan.span('input')
  const all = input ? scan.elements(input.node) : []
  const added = all.slice(all.length - items).map((item) => scan.textOf(item))
  const id = JSON.stringify(runningId)
  return Buffer.from(`{"type":"response.steer","previous_response_id":${id},"input":[${added.join(',')}]}`)
}

/** A message of a provider. */
export interface ProviderEvent {
  readonly type: string
  readonly json: string
  /** Set for the first event of an answer: its id. */
  readonly startedId?: string
  /** The event as a frame of a stream of server-sent events. */
  readonly bytes: Buffer
  /** Set for the last event of an answer. */
  readonly end?: {
    /** Id of the answer; undefined if it cannot be continued. */
    readonly id: string | undefined
  }
  /** Set for an error with the status that an answer by HTTP would have. */
  readonly refusal?: ProviderRefusalEvent
}

/** An error instead of an answer. */
export interface ProviderRefusalEvent {
  readonly status: number
  readonly code: string
  readonly retryAfter: string | undefined
  /** The body that an answer by HTTP would have. */
  readonly body: Buffer
}

const STARTED = 'response.created'
const ENDS: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.failed'])
const LINE_END = /\r\n|\r|\n/g

/** Reads a message of a provider; undefined if it is no event. */
export function readProviderEvent(message: Buffer): ProviderEvent | undefined {
  const json = message.toString()
  const type = typeOf(message)
  if (type === undefined) return undefined
  const bytes = Buffer.from(`event: ${type}\ndata: ${json.replace(LINE_END, '\ndata: ')}\n\n`)
  const event = { type, json, bytes }
  if (type === 'error') return { ...event, end: { id: undefined }, ...refusalIn(json) }
  if (type !== STARTED && !ENDS.has(type)) return event
  const id = asRecord(parseRecord(json)?.['response'])?.['id']
  if (type === STARTED) return typeof id === 'string' ? { ...event, startedId: id } : event
  const isContinuable = type !== 'response.failed' && typeof id === 'string'
  return { ...event, end: { id: isContinuable ? id : undefined } }
}

function typeOf(message: Buffer): string | undefined {
  try {
    const type = scanObject(message, RESPONSE_LIMITS).value('type')
    return typeof type === 'string' && /^[\w.]{1,100}$/.test(type) ? type : undefined
  } catch {
    return undefined
  }
}

function refusalIn(json: string): { readonly refusal?: ProviderRefusalEvent } {
  const event = parseRecord(json)
  const status = event?.['status'] ?? event?.['status_code']
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 400 || status > 599) return {}
  const error = asRecord(event?.['error'])
  const headers = asRecord(event?.['headers'])
  const retryAfter = headers?.['retry-after']
  const code = error?.['code']
  return {
    refusal: {
      status,
      code: typeof code === 'string' ? code : '',
      retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined,
      body: Buffer.from(JSON.stringify({ error: error ?? null })),
    },
  }
}
