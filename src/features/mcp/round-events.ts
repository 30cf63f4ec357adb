import type { EarlyHead, ResponseHeaders } from '@sluice/http1'
import { applyEdits } from '@sluice/wire/json/json-edit'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { stringOrEmpty } from '@sluice/wire/json/record'
import { ItemPlaces } from '@sluice/wire/responses'
import { type EventOutput, EventResponse } from '../../call/answers/event-response.ts'
import type { RunningCall } from '../../call/running-call.ts'
import type { AttemptTarget } from '../../call/request-stages.ts'
import type { RenderedRefusal } from '../../call/incoming-call.ts'
import { GatewayError } from '../../errors.ts'
import type { ComposedResponse } from './composed-response.ts'
import type { OfferedFunction, OfferedTools } from './gateway-tools.ts'
import { asFields, type Fields } from './protocol.ts'

/** An item of a round's answer. */
export interface RoundItem {
  /** The item as the round had it, as JSON text. */
  readonly text: string
  readonly item: Fields
  /** The tool that it calls; undefined if it calls none of the gateway. */
  readonly called: OfferedFunction | undefined
}

/** How a round was answered. */
export type RoundAnswer =
  | { readonly kind: 'answer'; readonly status: string; readonly items: readonly RoundItem[] }
  /** `refused`: the answer that was written in place of a response. */
  | { readonly kind: 'refusal'; readonly error: unknown; readonly refused?: RenderedRefusal }
  | { readonly kind: 'left' }

/** The response that the relay writes for a round. The feature notes in it which call that was. */
export class RoundResponse extends EventResponse {
  call: RunningCall | undefined
  target: AttemptTarget | undefined
}

/** Where an item of a round stands in the whole response. */
interface Place {
  readonly index: number
  /** The new id of the item; undefined if it keeps its own. */
  readonly id: string | undefined
}

/** Passes the events of a round on to the client, except calls of the gateway's tools. */
export class RoundEvents implements EventOutput {
  readonly #composed: ComposedResponse
  readonly #offered: OfferedTools
  readonly #sendLists: () => void
  readonly #items: RoundItem[] = []
  /** Finds the position in the round. */
  readonly #positions = new ItemPlaces()
  /** By the position in the round; undefined for calls of the gateway's tools. */
  readonly #places = new Map<number, Place | undefined>()
  #headers: ResponseHeaders = {}
  #status = ''
  #refused: RenderedRefusal | undefined

  /** `sendLists` is called once, when the whole response has begun. */
  constructor(composed: ComposedResponse, offered: OfferedTools, sendLists: () => void) {
    this.#composed = composed
    this.#offered = offered
    this.#sendLists = sendLists
  }

  /** How the round was answered, after its call. */
  answer(): RoundAnswer {
    if (this.#status !== '') return { kind: 'answer', status: this.#status, items: this.#items }
    const error = new GatewayError('upstream_error', 'the answer broke off')
    return { kind: 'refusal', error, ...(this.#refused && { refused: this.#refused }) }
  }

  begun(headers: ResponseHeaders): void {
    this.#headers = headers
  }

  event(json: string): boolean {
    const bytes = Buffer.from(json)
    const scan = scanObject(bytes, RESPONSE_LIMITS)
    const type = stringOrEmpty(scan.value('type'))
    const object = scan.span('response')
    const isEnd = ENDS.has(type)
    if (object && (isEnd || BEGINNINGS.has(type))) {
      const text = scan.textOf(object.node)
      this.#begin(text)
      if (isEnd) this.#endWith(type.slice('response.'.length), text)
      return true
    }
    return this.#pass(type, bytes, scan)
  }

  waits(keepAlive: Buffer, head: EarlyHead): boolean {
    return this.#composed.wait(keepAlive, head)
  }

  whole(status: number, headers: ResponseHeaders, body: Buffer): void {
    if (status !== 200) {
      this.#refused = { status, headers, body }
      return
    }
    this.#headers = headers
    const text = body.toString()
    const scan = scanObject(body, RESPONSE_LIMITS)
    this.#begin(text)
    const output = scan.span('output')
    const items = output && scan.kindOf(output.node) === 'array' ? scan.elements(output.node) : []
    for (const [at, node] of items.entries()) {
      const item = scan.textOf(node)
      for (const name of ['added', 'done'])
        this.event(`{"type":"response.output_item.${name}","output_index":${at},"item":${item}}`)
    }
    this.#endWith(stringOrEmpty(scan.value('status')) || 'completed', text)
  }

  ended(sent: () => void): void {
    sent()
  }

  broke(): void {
    this.#status = ''
  }

  #begin(object: string): void {
    if (this.#composed.hasBegun) return
    this.#composed.begin(this.#headers, object)
    this.#sendLists()
  }

  #endWith(status: string, object: string): void {
    this.#status = status
    this.#composed.endRound(object)
  }

  #pass(type: string, bytes: Buffer, scan: ScannedObject): boolean {
    const changes = new Map<string, string>()
    if (!scan.has('output_index') && !OF_ITEM.test(type))
      return this.#composed.pass(type, bytes, scan, changes)
    const node = scan.span('item')?.node
    const text = node === undefined ? '' : scan.textOf(node)
    const item = node === undefined ? {} : asFields(scan.parse(node))
    const isFunction = item['type'] === 'function_call' && typeof item['namespace'] !== 'string'
    const called = isFunction ? this.#offered.functions.get(String(item['name'])) : undefined
    const event = { output_index: scan.value('output_index'), item_id: scan.value('item_id'), item }
    const isAdded = type === 'response.output_item.added'
    const at = isAdded ? this.#positions.begin(event) : this.#positions.of(event)
    if (!this.#places.has(at)) this.#places.set(at, called ? undefined : this.#placeOf(item))
    const place = this.#places.get(at)
    const isDone = type === 'response.output_item.done'
    if (isDone) this.#items.push({ text, item, called: place ? undefined : called })
    if (!place) return true
    const { index, id } = place
    changes.set('output_index', String(index))
    if (id !== undefined && scan.has('item_id')) changes.set('item_id', JSON.stringify(id))
    const shown = id === undefined || text === '' ? text : withId(text, id)
    if (shown !== '') changes.set('item', shown)
    if (isDone) this.#composed.setItem(index, shown)
    return this.#composed.pass(type, bytes, scan, changes)
  }

  #placeOf({ id, type, encrypted_content: encrypted }: Fields): Place {
    const index = this.#composed.newIndex()
    // Providers refuse encrypted thoughts with another id.
    const keepsId = typeof id !== 'string' || (type === 'reasoning' && typeof encrypted === 'string')
    return { index, id: keepsId ? undefined : this.#composed.idAt(index, id) }
  }
}

/** Matches types of events that belong to an item. */
const OF_ITEM = /^response\.\w+\.\w/
const BEGINNINGS: ReadonlySet<string> = new Set([
  'response.created',
  'response.queued',
  'response.in_progress',
])
const ENDS: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.failed'])

function withId(item: string, id: string): string {
  const bytes = Buffer.from(item)
  const replace = new Map([['id', JSON.stringify(id)]])
  return applyEdits(bytes, scanObject(bytes, RESPONSE_LIMITS), { remove: [], replace }).toString()
}
