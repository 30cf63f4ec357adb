import { type AnswerError, errorOfEnd, failureEvent } from '../../answer-error.ts'
import type { Fields } from '../../field.ts'
import { asRecord, parseRecord } from '../../json/record.ts'
import type { Stop } from '../../reply.ts'
import { isErrorObject } from '../../reply-facts.ts'
import type { ReportedUsage } from '../../reported-usage.ts'
import { FrameReader } from '../../sse/frame-reader.ts'
import { eventNameOfFrame, isErrorEvent } from '../../sse/frame-splitter.ts'
import type { FrameText } from '../../sse/frame-template.ts'
import { isServerCall, readConverseUsage, readStop } from '../decode/reply.ts'

/** A block that has not ended yet. */
interface OpenBlock {
  readonly kind: 'text' | 'thinking' | 'tool-call' | 'opaque'
  /** Index of the part in the reply. An opaque part gets its index only when it is complete. */
  readonly index: number
  /** Contents of an opaque block received so far. */
  block: Fields
}

/**
 * Kinds of text in the deltas of a stream. Together with the index of a block, the kind identifies a text
 * that continues.
 */
const KINDS = ['text', 'thinking', 'tool-call'] as const
type TextKind = (typeof KINDS)[number]

/**
 * Decodes a stream whose binary messages were already converted to server-sent events. Only tool calls have a
 * start event; other blocks begin with their first text. Usage follows the stop reason. The stream is
 * complete if the connection closes after the stop reason, even without usage.
 */
export class ConverseStreamDecoder extends FrameReader {
  readonly #open = new Map<number, OpenBlock>()
  #parts = 0
  #isStarted = false
  #stop: Stop | undefined
  /** Set if the reply ended for a reason that means a failure. */
  #error: AnswerError | undefined
  #usage: ReportedUsage | undefined

  get usage(): ReportedUsage | undefined {
    return this.#usage
  }

  protected read(data: string, frame: string): void {
    const event = parseRecord(data)
    if (isErrorEvent(frame) || (event && isErrorObject(event))) return this.#report(data)
    if (!event) return
    const type = eventNameOfFrame(frame) ?? ''
    switch (type) {
      case 'messageStart':
        return this.#start()
      case 'contentBlockStart':
        this.resetTemplates()
        return this.#begin(blockIndex(event), asRecord(event['start']) ?? {})
      case 'contentBlockDelta':
        return this.#grow(blockIndex(event), asRecord(event['delta']) ?? {})
      case 'contentBlockStop':
        return this.#end(blockIndex(event))
      case 'messageStop':
        this.#stop = readStop(event['stopReason']) ?? { reason: 'end' }
        this.#error = errorOfEnd(event['stopReason'])
        break
      case 'metadata':
        this.#usage = readConverseUsage(event['usage'], event['serviceTier']) ?? this.#usage
        break
      default:
        return
    }
    if (this.#stop && (type === 'metadata' || this.#usage)) this.#finish(this.#stop)
  }

  /**
   * The returned index combines the block with the kind of text, so that a frame is never read with the
   * template of frames with another kind of text.
   */
  protected pieceOf(data: string): FrameText | undefined {
    const event = parseRecord(data)
    const piece = pieceIn(asRecord(event?.['delta']) ?? {})
    if (!event || !piece || piece.text === '') return undefined
    return { index: blockIndex(event) * KINDS.length + KINDS.indexOf(piece.kind), text: piece.text }
  }

  protected readPiece(index: number, text: string): void {
    this.#add(Math.floor(index / KINDS.length), KINDS[index % KINDS.length] as TextKind, text)
  }

  protected isTerminator(data: string): boolean {
    return asRecord(parseRecord(data)?.['usage']) !== undefined
  }

  protected handleClose(): void {
    if (this.#stop) this.#finish(this.#stop)
  }

  #start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.emit({ kind: 'start', id: '', model: '', usage: undefined })
  }

  /** Begins a call, or a block that only this protocol has. */
  #begin(index: number, start: Fields): void {
    this.#start()
    this.#end(index)
    const call = asRecord(start['toolUse'])
    if (call && !isServerCall(call)) {
      const part = { kind: 'tool-call', id: textOf(call['toolUseId']), name: textOf(call['name']) } as const
      this.emit({ kind: 'part-start', index: this.#parts, part })
      this.#open.set(index, { kind: 'tool-call', index: this.#parts++, block: {} })
    } else if (Object.keys(start).length > 0)
      this.#open.set(index, { kind: 'opaque', index: 0, block: start })
  }

  #grow(index: number, delta: Fields): void {
    const piece = pieceIn(delta)
    if (piece) {
      if (piece.text !== '') this.#add(index, piece.kind, piece.text)
      return
    }
    const { signature, redactedContent } = asRecord(delta['reasoningContent']) ?? {}
    const open = this.#open.get(index)
    if (typeof signature === 'string' && signature !== '') {
      const signed = open?.kind === 'thinking' ? open : this.#beginText(index, 'thinking')
      this.emit({ kind: 'proof', index: signed.index, proof: { protocol: 'converse', value: signature } })
    } else if (typeof redactedContent === 'string') {
      const before = open?.kind === 'opaque' ? asRecord(open.block['reasoningContent']) : undefined
      const redacted = textOf(before?.['redactedContent']) + redactedContent
      const block = { reasoningContent: { redactedContent: redacted } }
      if (open?.kind === 'opaque') open.block = block
      else this.#begin(index, block)
    } else if (open?.kind === 'opaque' && Array.isArray(delta['toolResult'])) {
      const result = asRecord(open.block['toolResult']) ?? {}
      const before = Array.isArray(result['content']) ? (result['content'] as readonly unknown[]) : []
      const content = [...before, ...(delta['toolResult'] as readonly unknown[])]
      open.block = { ...open.block, toolResult: { ...result, content } }
    }
  }

  #add(index: number, kind: TextKind, text: string): void {
    let open = this.#open.get(index)
    if (open?.kind === 'opaque' && kind === 'tool-call') {
      const call = asRecord(open.block['toolUse']) ?? {}
      open.block = { ...open.block, toolUse: { ...call, input: textOf(call['input']) + text } }
      return
    }
    if (open?.kind !== kind) {
      if (kind === 'tool-call')
        return this.#fail('api_error', 'The upstream sent the input of a tool call that it did not begin.')
      open = this.#beginText(index, kind)
    }
    this.emit({ kind: kind === 'tool-call' ? 'tool-input' : kind, index: open.index, text })
  }

  #beginText(index: number, kind: 'text' | 'thinking'): OpenBlock {
    this.#start()
    this.#end(index)
    const open = { kind, index: this.#parts++, block: {} }
    this.#open.set(index, open)
    this.emit({ kind: 'part-start', index: open.index, part: { kind } })
    return open
  }

  #end(index: number): void {
    const open = this.#open.get(index)
    if (!open) return
    this.#open.delete(index)
    if (open.kind !== 'opaque') return this.emit({ kind: 'part-end', index: open.index })
    const value = withInput(open.block)
    this.emit({
      kind: 'part-start',
      index: this.#parts,
      part: { kind: 'opaque', protocol: 'converse', value },
    })
    this.emit({ kind: 'part-end', index: this.#parts++ })
  }

  #finish(stop: Stop): void {
    if (!this.#isStarted)
      return this.#fail('api_error', 'The upstream ended a message that it did not begin.')
    this.isOver = true
    if (this.#error) return this.emit(failureEvent(this.#error))
    for (const index of this.#open.keys()) this.#end(index)
    this.emit({ kind: 'end', stop, usage: this.#usage })
  }

  #report(data: string): void {
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

/** Returns the text of a delta and its kind; undefined if the delta contains no text. */
function pieceIn(delta: Fields): { readonly kind: TextKind; readonly text: string } | undefined {
  if (typeof delta['text'] === 'string') return { kind: 'text', text: delta['text'] }
  const thought = asRecord(delta['reasoningContent'])?.['text']
  if (typeof thought === 'string') return { kind: 'thinking', text: thought }
  const input = asRecord(delta['toolUse'])?.['input']
  return typeof input === 'string' ? { kind: 'tool-call', text: input } : undefined
}

/** Returns the block with the input of its call as a parsed value, which arrived as text. */
function withInput(block: Fields): Fields {
  const call = asRecord(block['toolUse'])
  return call ? { ...block, toolUse: { ...call, input: parseRecord(textOf(call['input'])) ?? {} } } : block
}

function blockIndex({ contentBlockIndex }: Fields): number {
  return Number.isSafeInteger(contentBlockIndex) ? (contentBlockIndex as number) : 0
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
