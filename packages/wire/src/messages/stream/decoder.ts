import { type AnswerError, errorOfEnd, failureEvent } from '../../answer-error.ts'
import { type CacheDiagnosis, messageDiagnosis } from '../../cache-diagnosis.ts'
import type { CopyablePart } from '../../frame-writer.ts'
import { parseExact } from '../../json/exact-json.ts'
import { scanObject } from '../../json/json-scan.ts'
import { asRecord, parseRecord } from '../../json/record.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import { isErrorObject } from '../../reply-facts.ts'
import type { ReplyPart, StartedPart, Stop } from '../../reply.ts'
import type { ReportedUsage } from '../../reported-usage.ts'
import { type EventMemory, isErrorEvent } from '../../sse/frame-splitter.ts'
import { FrameReader } from '../../sse/frame-reader.ts'
import type { FrameText } from '../../sse/frame-template.ts'
import { SharedTemplates } from '../../sse/shared-templates.ts'
import type { ToolUseCounter } from '../../tool-use.ts'
import { inputText } from '../decode/reply.ts'
import {
  blockIndex,
  type Event,
  eventType,
  isRepeatedMessageStart,
  textsOfUnknownMembers,
  usageInError,
} from '../event.ts'
import { recordBlockToolUse, readBlock, readCitation, ServerSearchReader } from '../blocks.ts'
import { grownBlock } from '../grown-block.ts'
import { readStop } from '../stop-reasons.ts'
import { StreamedUsage } from '../usage.ts'

type Fields = Readonly<Record<string, unknown>>

/** A block that has not ended yet. */
interface OpenBlock {
  readonly kind: ReplyPart['kind']
  /**
   * Index of the part in the reply. An opaque part, which only this protocol has, gets its index only when it
   * is complete.
   */
  readonly index: number
  /** Content received so far of a block that only this protocol has. */
  block: Fields
  /** Input that the start event of a tool call states. It is used if no deltas follow. */
  input: string
}

/**
 * Types of deltas that contain text, each with the member that has the text, and the kind of part to which it
 * belongs.
 */
const TEXTS = [
  { type: 'text_delta', key: 'text', kind: 'text' },
  { type: 'thinking_delta', key: 'thinking', kind: 'thinking' },
  { type: 'input_json_delta', key: 'partial_json', kind: 'tool-call' },
] as const

type TextKind = (typeof TEXTS)[number]['kind']

const SHARED = new SharedTemplates()

/**
 * Decodes a messages stream. If a block has no start event, it begins with its first text. Other gaps, such
 * as input of an unknown call or a second message, are errors. The stream is complete with `message_stop`, or
 * if the upstream closed the connection after a stop reason.
 */
export class MessagesStreamDecoder extends FrameReader {
  readonly #open = new Map<number, OpenBlock>()
  #parts = 0
  #started = false
  #id = ''
  diagnosis: CacheDiagnosis | undefined
  readonly #counts = new StreamedUsage()
  readonly #searches = new ServerSearchReader()
  #stop: Stop | undefined
  /** Set if the message ended for a reason that means a failure. */
  #error: AnswerError | undefined
  #isComplete = false

  /** `memory` records the size of incomplete events, which counts against the client's share of memory. */
  constructor(memory?: EventMemory) {
    super(memory, SHARED)
  }

  get tools(): ToolUseCounter {
    return this.#counts.tools
  }

  get usage(): ReportedUsage | undefined {
    return this.#isComplete ? this.#counts.final : this.#counts.partial
  }

  protected read(data: string, frame: string): void {
    const event = parseRecord(data)
    if (!event) {
      if (isErrorEvent(frame)) this.#report(data, undefined)
      return
    }
    const type = eventType(event, frame)
    if (!this.#started && type.startsWith('content_block'))
      return this.#fail('api_error', 'The upstream sent a part of a message that it did not begin.')
    switch (type) {
      case 'message_start':
        return this.#start(asRecord(event['message']) ?? {}, data)
      case 'content_block_start':
        this.resetTemplates()
        recordBlockToolUse(this.tools, blockIndex(event), event['content_block'])
        return this.#beginStated(blockIndex(event), asRecord(event['content_block']) ?? {}, data)
      case 'content_block_delta':
        for (const text of textsOfUnknownMembers(asRecord(event['delta']))) this.arrived.addUnknown(text)
        return this.#grow(blockIndex(event), asRecord(event['delta']) ?? {})
      case 'content_block_stop':
        return this.#end(blockIndex(event))
      case 'message_delta':
        this.#counts.add(event['usage'], true)
        this.#stop = readStop(event['delta']) ?? this.#stop
        this.#error ??= errorOfEnd(asRecord(event['delta'])?.['stop_reason'])
        return
      case 'message_stop':
        return this.#finish()
      case 'ping':
        return this.emit({ kind: 'ping' })
      case 'error':
        return this.#report(data, event)
      default:
        // A proxy between gateway and provider may report errors in a different format.
        if (isErrorObject(event)) this.#report(data, event)
    }
  }

  /**
   * Returns the text with an index made of part and kind of text, so that the frame template of one kind of
   * text is never used for another.
   */
  protected pieceOf(data: string): FrameText | undefined {
    const event = parseRecord(data)
    if (event?.['type'] !== 'content_block_delta') return undefined
    const delta = asRecord(event['delta'])
    const kind = TEXTS.findIndex(({ type }) => type === delta?.['type'])
    const text = delta?.[TEXTS[kind]?.key ?? '']
    if (typeof text !== 'string' || text === '') return undefined
    return { index: blockIndex(event) * TEXTS.length + kind, text }
  }

  protected readPiece(index: number, text: string): void {
    const { kind } = TEXTS[index % TEXTS.length] as (typeof TEXTS)[number]
    this.#add(Math.floor(index / TEXTS.length), kind, text)
  }

  protected override copyPiece(index: number): CopyablePart | undefined {
    const { kind } = TEXTS[index % TEXTS.length] as (typeof TEXTS)[number]
    const open = this.#open.get(Math.floor(index / TEXTS.length))
    if (open?.kind !== kind || open.input !== '') return undefined
    return { kind: kind === 'tool-call' ? 'tool-input' : kind, index: open.index }
  }

  protected isTerminator(data: string): boolean {
    return parseRecord(data)?.['type'] === 'message_stop'
  }

  protected handleClose(): void {
    if (this.#stop !== undefined) this.#finish()
  }

  /**
   * Reads `message_start`, which may contain a complete message. If it repeats the first one, only its usage
   * is read.
   */
  #start(message: Fields, data: string): void {
    if (isRepeatedMessageStart(this.#id, message['id']))
      return this.#counts.addRepeatedStart(message['usage'])
    if (this.#started)
      return this.#fail('api_error', 'The upstream began a second message within its response.')
    this.#started = true
    this.#id = textOf(message['id'])
    this.diagnosis = messageDiagnosis(message)
    this.#stop = readStop(message)
    this.#error = errorOfEnd(message['stop_reason'])
    this.#counts.add(message['usage'], this.#stop !== undefined)
    this.emit({
      kind: 'start',
      id: this.#id,
      model: textOf(message['model']),
      usage: this.#counts.partial,
    })
    const content = message['content']
    if (!Array.isArray(content)) return
    const inputOf = inputFinder(data, contentBlocks)
    for (const [index, block] of content.entries()) {
      const fields = asRecord(block) ?? {}
      this.#begin(index, fields, inputOf(fields, index))
      this.#end(index)
    }
  }

  /** Begins the block of a start event. `data` is the JSON text of the event. */
  #beginStated(index: number, block: Fields, data: string): void {
    this.#begin(index, block, inputFinder(data, startedBlock)(block, 0))
  }

  /** Begins a block. `input` is that of a tool call as it was written. */
  #begin(index: number, block: Fields, input = ''): void {
    this.#end(index)
    const part = readBlock(block, input)
    const open: OpenBlock = { kind: part.kind, index: this.#parts, block, input: '' }
    this.#open.set(index, open)
    if (part.kind === 'opaque') return
    this.emit({ kind: 'part-start', index: this.#parts++, part: startedOf(part) })
    if (part.kind === 'tool-call') open.input = part.input
    else {
      if (part.text !== '') this.emit({ kind: part.kind, index: open.index, text: part.text })
      if (part.kind === 'text')
        for (const citation of part.citations ?? [])
          this.emit({ kind: 'citation', index: open.index, citation })
      else if (part.proof) this.emit({ kind: 'proof', index: open.index, proof: part.proof })
    }
  }

  #grow(index: number, delta: Fields): void {
    const found = TEXTS.find(({ type }) => type === delta['type'])
    const open = this.#open.get(index)
    if (found) {
      const text = delta[found.key]
      if (typeof text === 'string' && text !== '') this.#add(index, found.kind, text)
    } else if (delta['type'] === 'signature_delta' && open?.kind === 'thinking') {
      const proof = { protocol: 'messages', value: textOf(delta['signature']) } as const
      if (proof.value !== '') this.emit({ kind: 'proof', index: open.index, proof })
    } else if (delta['type'] === 'citations_delta' && open?.kind === 'text') {
      const citation = readCitation(asRecord(delta['citation']))
      if (citation) this.emit({ kind: 'citation', index: open.index, citation })
    } else if (open?.kind === 'opaque') {
      open.block = grownBlock(open.block, delta)
    }
  }

  #add(index: number, kind: TextKind, text: string): void {
    let open = this.#open.get(index)
    if (open?.kind === 'opaque') {
      if (kind === 'tool-call') open.input += text
      else open.block = grownBlock(open.block, { type: `${kind}_delta`, [kind]: text })
      return
    }
    if (open?.kind !== kind) {
      if (kind === 'tool-call')
        return this.#fail('api_error', 'The upstream sent the input of a tool call that it did not begin.')
      this.#begin(index, { type: kind })
      open = this.#open.get(index) as OpenBlock
    }
    if (kind === 'tool-call') {
      open.input = ''
      this.emit({ kind: 'tool-input', index: open.index, text })
    } else {
      this.emit({ kind, index: open.index, text })
    }
  }

  #end(index: number): void {
    const open = this.#open.get(index)
    if (!open) return
    this.#open.delete(index)
    if (open.kind === 'opaque') {
      const value = withInput(open.block, open.input)
      this.emit({
        kind: 'part-start',
        index: this.#parts,
        part: { kind: 'opaque', protocol: 'messages', value },
      })
      this.emit({ kind: 'part-end', index: this.#parts++ })
      const search = this.#searches.note(value)
      if (!search) return
      this.emit({ kind: 'part-start', index: this.#parts, part: search })
      this.emit({ kind: 'part-end', index: this.#parts++ })
      return
    }
    if (open.input !== '') this.emit({ kind: 'tool-input', index: open.index, text: open.input })
    this.emit({ kind: 'part-end', index: open.index })
  }

  #finish(): void {
    if (!this.#started) return this.#fail('api_error', 'The upstream ended a message that it did not begin.')
    this.isOver = true
    this.#isComplete = true
    if (this.#error) return this.emit(failureEvent(this.#error))
    for (const index of this.#open.keys()) this.#end(index)
    this.emit({ kind: 'end', stop: this.#stop ?? { reason: 'end' }, usage: this.usage })
  }

  /** Reports an error of the upstream. */
  #report(data: string, event: Event | undefined): void {
    this.#counts.add(usageInError(event), false)
    this.isOver = true
    const failure = failureEvent({ data })
    const { type = 'error' } = failure
    this.emit({ ...failure, type: type === 'error' ? 'api_error' : type })
  }

  #fail(type: string, message: string): void {
    this.isOver = true
    this.emit({ kind: 'failure', type, message })
  }
}

function startedOf(part: Exclude<ReplyPart, { kind: 'opaque' | 'search' }>): StartedPart {
  return part.kind === 'tool-call' ? { kind: 'tool-call', id: part.id, name: part.name } : { kind: part.kind }
}

/** Finds the JSON of the blocks in the data of an event. */
type Finder = (scan: ScannedObject) => readonly Node[]

const startedBlock: Finder = (scan) => {
  const block = scan.span('content_block')
  return block ? [block.node] : []
}

const contentBlocks: Finder = (scan) => {
  const message = scan.span('message')
  const content = message && scan.memberOf(message.node, 'content')
  return content === undefined ? [] : scan.elements(content)
}

/**
 * Returns a function that returns the input of a tool call that the start event states, as it was written; usually it
 * is empty. The event is scanned only for the first input.
 */
function inputFinder(data: string, find: Finder): (block: Fields, at: number) => string {
  let scan: ScannedObject | undefined | null
  let nodes: readonly Node[] = []
  return (block, at) => {
    const input = asRecord(block['input'])
    if (!input || Object.keys(input).length === 0) return ''
    if (scan === undefined) {
      scan = scanned(data) ?? null
      if (scan) nodes = find(scan)
    }
    // If the scanner's limits are exceeded, the value is serialized again, and integers above 2^53 lose digits.
    if (!scan) return JSON.stringify(input)
    const node = nodes[at]
    return node === undefined ? '' : inputText(scan, node)
  }
}

function scanned(data: string): ScannedObject | undefined {
  try {
    return scanObject(Buffer.from(data))
  } catch {
    return undefined
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

type Block = Readonly<Record<string, unknown>>

/**
 * Returns a block with its input parsed from the text of its deltas. The block stays unchanged if the text is
 * not JSON.
 */
function withInput(block: Block, input: string): Block {
  if (input === '') return block
  try {
    return { ...block, input: parseExact(input) }
  } catch {
    return block
  }
}
