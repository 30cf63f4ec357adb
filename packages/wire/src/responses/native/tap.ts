import { isReplyWith } from '../../answer-error.ts'
import { AnswerMetadata } from '../../answer-metadata.ts'
import { asRecord, parseRecord } from '../../json/record.ts'
import { endReasonOf } from '../../end-reasons.ts'
import { executedCodeOutput } from '../../executed-code.ts'
import { isErrorObject, type ReplyFacts } from '../../reply-facts.ts'
import { type FrameAction, isLeadingEvent } from '../../sse/frame-loop.ts'
import type { FrameText, FrameTemplate } from '../../sse/frame-template.ts'
import { type EventMemory, FrameSplitter, isErrorEvent, MAX_EVENT_BYTES } from '../../sse/frame-splitter.ts'
import { responseDiagnosis } from '../../cache-diagnosis.ts'
import { laterStatedService, statedTier } from '../../service-tier.ts'
import { StreamTap } from '../../sse/stream-tap.ts'
import { ToolUseCounter } from '../../tool-use.ts'
import type { ErrorContent } from '../../upstream-error.ts'
import { errorOfResponse, responseError } from '../errors.ts'
import { ItemPlaces } from '../item-places.ts'
import { type Event, eventType, responseInEvent, TERMINAL_EVENTS, textsOfDelta } from '../event.ts'
import { stringOrEmpty } from '../decode/reply.ts'
import { writeWithDefaults } from '../response-object.ts'
import { recordItemToolUse, toolUsesInResponse, usageInResponse } from '../usage.ts'
import type { ScannedObject } from '../../json/scanned-object.ts'
import { isSignatureEnvelope } from '../../signature-envelope.ts'

/** Matches the types of events that add generated text. Other events repeat the text. */
const DELTA = /\.delta$/
/** Type of the event that contains a piece of audio. */
const SOUND = 'response.audio.delta'

/** Finds the response's id if it is the first member of the response. */
const EARLY_ID = /"response"\s*:\s*\{\s*"id"\s*:\s*"([^"\\]{1,256})"/

/**
 * Watches the stream of a response that is forwarded without conversion. The final event contains the whole
 * usage. A failed response or an error also ends the stream; later bytes from the upstream are ignored.
 */
export class ResponsesTap extends StreamTap {
  /** The upstream's id of the response; '' until it is known. */
  responseId = ''
  /** The upstream's id of the previous response, which this response continues; '' if there is none. */
  previousId = ''
  /** The final status of the response; undefined until it has ended. */
  status: string | undefined
  /** Encrypted contents of the finished items, which only the account that created them can read. */
  readonly encrypted: string[] = []
  /** Ids of the finished items. */
  readonly itemIds: string[] = []
  #model = ''
  #created = 0
  /** Sequence number of the first event that has one; 0 until such an event arrives. */
  firstSequence = 0
  /** Sequence number of the next event. */
  #sequence = 0
  #isNumbered = false
  readonly #places = new ItemPlaces()
  /** Indexes of the items whose text arrived in deltas. */
  readonly #growing = new Set<number>()
  /**
   * Uses of the provider's tools in the items so far. They are counted while the stream arrives, because its
   * last event may leave items out.
   */
  override readonly tools = new ToolUseCounter()

  /**
   * `memory` records the size of the first event of the response, which is held back until the id is known.
   */
  constructor(memory?: EventMemory) {
    super(new FrameSplitter(MAX_EVENT_BYTES, memory))
  }

  get sawFinish(): boolean {
    return this.done
  }

  /** Sequence number of the last event so far. */
  get lastSequence(): number {
    return Math.max(this.firstSequence, this.#sequence - 1)
  }

  /**
   * Returns `response.failed` for a broken stream, with the number after the last forwarded event. Clients of
   * this protocol recognize no other end.
   */
  failureFrame(error: ErrorContent): Buffer {
    return this.#frame('failed', this.#sequence, responseError(error))
  }

  /**
   * Repeats `response.in_progress` with the number of the previous event, so that the upstream's own numbers
   * stay valid. Returns undefined before the response has begun, and in the middle of an event.
   */
  override keepAliveFrame(isNumbered = true): Buffer | undefined {
    if (this.responseId === '' || this.isMidEvent) return undefined
    const number = isNumbered ? Math.max(0, this.#sequence - 1) : undefined
    return this.#frame('in_progress', number, null)
  }

  /** Whether the stream has had a final event. Clients wait for one even after an `error` event. */
  override get endsWithError(): boolean {
    return this.status !== undefined
  }

  /**
   * Whether the event must be held back until it is complete: because its first bytes do not contain the
   * response's id, which most servers write first, or because the event after it may be an error.
   */
  protected override needsWholeEvent(head: string): boolean {
    this.responseId ||= EARLY_ID.exec(head)?.[1] ?? ''
    return this.responseId === '' || (!this.sawEvent && isLeadingEvent(head, head))
  }

  protected read(data: string, frame: string): FrameAction {
    const event = parseRecord(data)
    this.sentEvents++
    if (!event) {
      if (isErrorEvent(frame)) return this.#fail(data, undefined)
      // Some servers end a stream with `[DONE]`. If it were forwarded, a client would not read what the
      // gateway appends to a stream that was cut off.
      return data === '[DONE]' ? 'swallow' : 'forward'
    }
    this.#count(event)
    const type = eventType(event, frame)
    if (TERMINAL_EVENTS.has(type)) return this.#end(type, event)
    if (type === 'error') return this.#fail(data, event)
    if (type === SOUND) {
      this.arrived.addSound(stringOrEmpty(event['delta']).length + this.elidedBytes)
      return 'forward'
    }
    if (DELTA.test(type)) {
      for (const text of textsOfDelta(event)) {
        const index = this.#places.of(event)
        this.#growing.add(index)
        this.emit(index, text)
      }
      return 'forward'
    }
    const response = responseInEvent(event)
    if (response) this.#begin(response)
    else if (type === 'response.output_item.added') {
      this.resetTemplates()
      recordItemToolUse(this.tools, this.#places.begin(event), event['item'])
    } else if (type === 'response.output_item.done')
      this.#readDone(this.#places.of(event), asRecord(event['item']))
    return isErrorObject(event) ? this.#fail(data, event) : 'forward'
  }

  protected pieceOf(data: string): FrameText | undefined {
    const event = parseRecord(data)
    const text = event?.['delta']
    const type = stringOrEmpty(event?.['type'])
    if (!event || typeof text !== 'string' || text === '' || type === SOUND || !DELTA.test(type))
      return undefined
    return textsOfDelta(event).length === 1 ? { index: this.#places.of(event), text } : undefined
  }

  /** Counts the event in a frame that matches a template, so that event numbers stay right. */
  protected override readTemplated(known: FrameTemplate, bytes: Buffer): boolean {
    const isRead = super.readTemplated(known, bytes)
    if (isRead) {
      this.#sequence++
      this.sentEvents++
    }
    return isRead
  }

  protected isTerminator(data: string): boolean {
    return TERMINAL_EVENTS.has(stringOrEmpty(parseRecord(data)?.['type']))
  }

  #frame(status: 'failed' | 'in_progress', number: number | undefined, error: object | null): Buffer {
    const response = {
      id: this.responseId,
      object: 'response',
      created_at: this.#created,
      status,
      completed_at: null,
      error,
      incomplete_details: null,
      model: this.#model,
      output: [],
    }
    const type = `response.${status}`
    const place = number === undefined ? '' : `"sequence_number":${number},`
    const data = `{"type":"${type}",${place}"response":${writeWithDefaults(response, null)}}`
    return Buffer.from(`event: ${type}\ndata: ${data}\n\n`)
  }

  #count(event: Event): void {
    const number = event['sequence_number']
    if (typeof number !== 'number' || !Number.isSafeInteger(number)) return
    if (!this.#isNumbered) this.firstSequence = number
    this.#isNumbered = true
    this.#sequence = number + 1
  }

  #begin(response: Event): void {
    this.responseId ||= stringOrEmpty(response['id'])
    this.previousId ||= stringOrEmpty(response['previous_response_id'])
    this.#model ||= stringOrEmpty(response['model'])
    this.names.note(response['id'], response['model'])
    this.served = laterStatedService(this.served, statedTier(response['service_tier']))
    this.diagnosis = responseDiagnosis(response)
    const created = response['created_at']
    if (this.#created === 0 && typeof created === 'number') this.#created = Math.floor(created)
  }

  /**
   * Counts the text of a finished item if none arrived in deltas. The name of a tool call is always counted,
   * because no delta contains it.
   */
  #readDone(index: number, item: Event | undefined): void {
    if (!item) return
    this.encrypted.push(...encryptedIn(item))
    this.itemIds.push(...itemIdIn(item))
    const hidden = item['type'] === 'reasoning' ? stringOrEmpty(item['encrypted_content']) : ''
    if (hidden !== '') this.arrived.addHidden(hidden.length, this.textBytes(index))
    recordItemToolUse(this.tools, index, item)
    if (!this.#growing.has(index)) for (const piece of generatedText(item)) this.emit(index, piece)
    else if (typeof item['name'] === 'string') this.emit(index, item['name'])
    for (const piece of executedCodeOutput(item)) this.emit(index, piece)
  }

  #end(type: string, event: Event): FrameAction {
    const response = responseInEvent(event) ?? {}
    this.#begin(response)
    this.status = type.slice('response.'.length)
    this.names.finish(0, endOf(response) ?? this.status)
    const { output } = response
    if (this.encrypted.length === 0) this.encrypted.push(...inItems(output, encryptedIn))
    if (this.itemIds.length === 0) this.itemIds.push(...inItems(output, itemIdIn))
    this.usage = usageInResponse(response, this.tools) ?? this.usage
    const failed = type === 'response.failed' ? { ...response, status: 'failed' } : response
    const error = errorOfResponse(failed)
    if (error) {
      this.error ??= { ...error, afterContent: this.contentFrames > 0 }
      // Clients would take the event for the end of an answer that may be used.
      if (error.isOfEnd) {
        this.errorFrame = Buffer.alloc(0)
        this.status = undefined
      }
      return 'end'
    }
    this.done = true
    return 'end'
  }

  #fail(data: string, event: Event | undefined): FrameAction {
    const usage = event && usageInResponse(event)
    if (usage) this.usage = usage
    this.error = { data, afterContent: this.contentFrames > 0 }
    return 'end'
  }
}

/** What a complete response states about itself. */
export interface ResponseFacts extends ReplyFacts {
  /** The upstream's id of the response; '' if it has none. */
  readonly id: string
  /** The upstream's id of the previous response, which this response continues; '' if there is none. */
  readonly previousId: string
  /** Status such as `completed` or `queued`; undefined if it is missing. */
  readonly status: string | undefined
  /** Encrypted contents of the response's items; only the account that created them can read them. */
  readonly encrypted: readonly string[]
  /** Ids of the response's items. */
  readonly itemIds: readonly string[]
}

/**
 * Reads validity, error, usage and ids of a compaction response. Its text is not counted: it repeats messages
 * of the request, and the rest is encrypted.
 */
export function usageOfCompaction(bytes: Buffer): ResponseFacts {
  return { ...usageOfResponse(bytes), text: () => '' }
}

/**
 * Reads validity, error, usage and ids of a complete response; never throws. A response with the status
 * `failed` is an error, whatever its HTTP status.
 */
export function usageOfResponse(bytes: Buffer): ResponseFacts {
  const response = parseRecord(bytes.toString()) ?? {}
  const { id, previous_response_id: previousId, status, output } = response
  const error = errorOfResponse(response)
  const end = endOf(response)
  return {
    hasUnknownEnd: typeof end === 'string' && !endReasonOf(end),
    id: typeof id === 'string' ? id : '',
    previousId: typeof previousId === 'string' ? previousId : '',
    status: typeof status === 'string' ? status : undefined,
    encrypted: inItems(output, encryptedIn),
    itemIds: inItems(output, itemIdIn),
    valid: Array.isArray(output) && isReplyWith(error),
    usage: usageInResponse(response),
    served: statedTier(response['service_tier']),
    diagnosis: responseDiagnosis(response),
    tools: toolUsesInResponse(response),
    error,
    names() {
      const names = new AnswerMetadata()
      names.note(id, response['model'])
      names.finish(0, endOf(response))
      return names
    },
    text: () =>
      Array.isArray(output) ? output.flatMap((item) => textsOfItem(asRecord(item))).join('\n') : '',
  }
}

type Item = Readonly<Record<string, unknown>>

/** Why a response ended: the reason why it is incomplete, otherwise its status. */
function endOf(response: Event): unknown {
  return asRecord(response['incomplete_details'])?.['reason'] ?? response['status']
}

/** Maximum length of an item's id in characters; longer ids are not kept. */
const MAX_ID_LENGTH = 256

const NONE: readonly string[] = []

/** The id of an item as a list; an empty list if the item has no id or a too long one. */
function itemIdIn(item: Item | undefined): readonly string[] {
  const id = item?.['id']
  return typeof id === 'string' && id !== '' && id.length <= MAX_ID_LENGTH ? [id] : NONE
}

/** Collects texts from the items of an output, in order; an empty list if the output is not a list. */
function inItems(output: unknown, textsIn: (item: Item | undefined) => readonly string[]): readonly string[] {
  if (!Array.isArray(output)) return NONE
  const found: string[] = []
  for (const item of output) for (const text of textsIn(asRecord(item))) found.push(text)
  return found
}

/** Members of an item, and of objects in the item, whose text the model wrote. */
const TEXTS = [
  'name',
  'arguments',
  'input',
  'code',
  'text',
  'refusal',
  'transcript',
  'query',
  'diff',
] as const
const LISTS = ['summary', 'content'] as const
const OBJECTS = ['action', 'operation'] as const

/** Texts of an output item: what the model wrote, and what code printed that the provider ran. */
function textsOfItem(item: unknown): string[] {
  return [...generatedText(item), ...executedCodeOutput(item)]
}

/** Texts that the model wrote in an output item, without empty ones. */
function generatedText(item: unknown): string[] {
  const record = asRecord(item)
  if (!record) return []
  const pieces = TEXTS.map((key) => record[key])
  const lists = LISTS.flatMap((key) => (Array.isArray(record[key]) ? (record[key] as unknown[]) : []))
  const objects = OBJECTS.map((key) => record[key])
  const action = asRecord(record['action'])
  for (const key of ['command', 'commands'] as const) {
    const words = action?.[key]
    // A call cannot have as many arguments as an event may have words.
    if (Array.isArray(words)) for (const word of words as unknown[]) pieces.push(word)
  }
  return [
    ...pieces.filter((piece): piece is string => typeof piece === 'string' && piece !== ''),
    ...[...lists, ...objects].flatMap(generatedText),
  ]
}

/**
 * Maximum number of encrypted contents of a request that are compared with those of earlier responses,
 * counted from its end.
 */
const MAX_COMPARED = 16

/**
 * The encrypted content of an item as a list, if it comes from a provider of this protocol; otherwise an
 * empty list.
 */
function encryptedIn(item: Readonly<Record<string, unknown>> | undefined): readonly string[] {
  const content = item?.['encrypted_content']
  return typeof content === 'string' && content !== '' && !isSignatureEnvelope(content) ? [content] : NONE
}

/**
 * Encrypted contents in the input of a request that come from providers of this protocol, the latest first.
 */
export function encryptedInput(scan: ScannedObject): string[] {
  const input = scan.span('input')
  if (!input || scan.kindOf(input.node) !== 'array') return []
  const found: string[] = []
  for (const item of scan.elements(input.node).toReversed()) {
    if (scan.kindOf(item) !== 'object') continue
    const node = scan.memberOf(item, 'encrypted_content')
    if (node === undefined || scan.kindOf(node) !== 'string') continue
    found.push(...encryptedIn({ encrypted_content: scan.parse(node) }))
    if (found.length >= MAX_COMPARED) break
  }
  return found
}
