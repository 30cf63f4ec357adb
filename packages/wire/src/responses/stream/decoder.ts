import { asRecord, parseRecord } from '../../json/record.ts'
import { isError } from '../../reply-facts.ts'
import type { ReportedUsage } from '../../reported-usage.ts'
import { FrameReader } from '../../sse/frame-reader.ts'
import type { CopiedPart } from '../../copied-text.ts'
import type { FramePiece, TextMatch } from '../../sse/frame-template.ts'
import { isErrorEvent } from '../../sse/frame-splitter.ts'
import { readUpstreamError } from '../../upstream-error.ts'
import { elementsOf, itemTexts } from '../decode/reply.ts'
import {
  DELTAS,
  type Event,
  eventType,
  MAX_ITEMS,
  outputIndex,
  responseIn,
  TERMINAL,
  textIndex,
} from '../event.ts'
import { ItemParts } from '../item-parts.ts'
import { readAnnotation, readLogprobs, textOr } from '../read-item.ts'
import { stopOf } from '../stop-reasons.ts'
import { noteItem } from '../tool-items.ts'
import { ToolTally } from '../../tool-tally.ts'
import { usageOf } from '../usage.ts'

const KINDS: ReadonlyMap<string, (typeof DELTAS)[number]['kind']> = new Map(
  DELTAS.map(({ type, kind }) => [type, kind]),
)
/** Maximum number of texts that are tracked in one item. */
const MAX_TEXTS = 1_024

/**
 * Decodes a stream of a response. Text that was not in a delta is taken from its finished item, or from the
 * finished response. The response is complete only with its final event.
 */
export class ResponsesStreamDecoder extends FrameReader {
  readonly #items = new ItemParts((event) => this.emit(event))
  #isStarted = false
  #usage: ReportedUsage | undefined
  /** Uses of tools by the items so far; the last event may leave items out. */
  readonly tools = new ToolTally()

  get usage(): ReportedUsage | undefined {
    return this.#usage
  }

  protected read(data: string, frame: string): void {
    const event = parseRecord(data)
    if (!event) {
      if (isErrorEvent(frame)) this.#fail(data, undefined)
      return
    }
    const type = eventType(event, frame)
    const kind = KINDS.get(type)
    if (kind) {
      const delta = event['delta']
      if (typeof delta !== 'string') return
      const logprobs = readLogprobs(event['logprobs'])
      return this.#items.grow(outputIndex(event), textIndex(event), kind, delta, logprobs)
    }
    if (TERMINAL.has(type)) return this.#finish(type, event, data)
    switch (type) {
      case 'response.created':
      case 'response.queued':
      case 'response.in_progress':
        return this.#start(responseIn(event) ?? {})
      case 'response.output_item.added':
        this.resetTemplates()
        noteItem(this.tools, outputIndex(event), event['item'])
        return this.#items.begin(outputIndex(event), asRecord(event['item']) ?? {})
      case 'response.output_item.done': {
        const item = asRecord(event['item']) ?? {}
        noteItem(this.tools, outputIndex(event), item)
        return this.#items.finish(
          outputIndex(event),
          item,
          itemTexts(data, (scan) => [scan.span('item')?.node].filter((node) => node !== undefined))(item, 0),
        )
      }
      case 'response.reasoning_summary_part.added':
        return this.#items.beginSummary(outputIndex(event), textIndex(event))
      case 'response.output_text.annotation.added': {
        const citation = readAnnotation(asRecord(event['annotation']))
        return citation && this.#items.cite(outputIndex(event), textIndex(event), citation)
      }
      case 'error':
        return this.#fail(data, event)
      default:
        if (isError(event['error'])) this.#fail(data, event)
    }
  }

  /** The index includes the part, so that frames of different texts never match the same template. */
  protected pieceOf(data: string): FramePiece | undefined {
    const event = parseRecord(data)
    const kind = DELTAS.findIndex(({ type }) => type === event?.['type'])
    const text = event?.['delta']
    if (!event || kind < 0 || typeof text !== 'string' || text === '') return undefined
    if (readLogprobs(event['logprobs'])) return undefined
    const place = outputIndex(event) * MAX_TEXTS + Math.min(textIndex(event), MAX_TEXTS - 1)
    return { index: place * DELTAS.length + kind, text }
  }

  protected readPiece(index: number, text: string): void {
    const { kind } = DELTAS[index % DELTAS.length] as (typeof DELTAS)[number]
    const place = Math.floor(index / DELTAS.length)
    this.#items.grow(Math.floor(place / MAX_TEXTS), place % MAX_TEXTS, kind, text)
  }

  protected override copyPiece(index: number, bytes: Buffer, match: TextMatch): CopiedPart | undefined {
    const { kind } = DELTAS[index % DELTAS.length] as (typeof DELTAS)[number]
    const place = Math.floor(index / DELTAS.length)
    const item = { index: Math.floor(place / MAX_TEXTS), textIndex: place % MAX_TEXTS }
    return kind === 'custom' || kind === 'refusal' ? undefined : this.#items.copy(item, kind, bytes, match)
  }

  protected isTerminator(data: string): boolean {
    return TERMINAL.has(textOr(parseRecord(data)?.['type']))
  }

  /** Emits nothing, because a stream without its final event is truncated. */
  protected handleClose(): void {}

  #start(response: Event): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.emit({
      kind: 'start',
      id: textOr(response['id']),
      model: textOr(response['model']),
      usage: usageOf(response),
    })
  }

  #finish(type: string, event: Event, data: string): void {
    const response = responseIn(event) ?? {}
    this.#usage = usageOf(response, this.tools) ?? this.#usage
    if (type === 'response.failed' || type === 'response.cancelled') return this.#fail(data, event)
    this.#start(response)
    const output = response['output']
    const textsIn = itemTexts(data, (scan) => {
      const holder = scan.span('response')
      return elementsOf(scan, holder && scan.memberOf(holder.node, 'output'))
    })
    for (const [index, value] of (Array.isArray(output) ? output.slice(0, MAX_ITEMS) : []).entries()) {
      const item = asRecord(value) ?? {}
      this.#items.finish(index, item, textsIn(item, index))
    }
    this.#items.endAll()
    this.isOver = true
    const status = type.slice('response.'.length)
    this.emit({ kind: 'end', stop: stopOf({ status, ...response }, this.#items), usage: this.#usage })
  }

  /** The error is in the event, next to its type, or in the failed response. */
  #fail(data: string, event: Event | undefined): void {
    this.isOver = true
    const response = event && responseIn(event)
    const failure = asRecord(response?.['error'])
    const { type, message, code } = readUpstreamError(
      Buffer.from(failure ? JSON.stringify({ error: failure }) : data),
    )
    this.emit({
      kind: 'failure',
      type: type === 'error' ? undefined : type,
      message: message ?? 'The upstream reported an error in the middle of its response.',
      ...(code !== undefined && { code }),
    })
  }
}
