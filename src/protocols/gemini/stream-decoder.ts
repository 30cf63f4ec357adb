import { asRecord, parseRecord } from '../json/record.ts'
import type { Fields } from '../field.ts'
import { isError } from '../reply-facts.ts'
import type { CopiedPart } from '../copied-text.ts'
import type { ReportedUsage } from '../reported-usage.ts'
import { isErrorEvent } from '../sse/frame-splitter.ts'
import type { FramePiece, TextMatch } from '../sse/frame-template.ts'
import { FrameReader } from '../sse/frame-reader.ts'
import { argumentsIn, blockReason, firstCandidate, identityOf, partsOf, plainText } from './answer.ts'
import { noteArrived } from './arrived.ts'
import { readGeminiError } from './errors.ts'
import { citationsIn } from './grounding.ts'
import { ReplyParts } from './reply-parts.ts'
import { finishReasonOf, stopOf } from './stop-reasons.ts'
import type { SeenTools } from '../tool-tally.ts'
import { StreamUsage } from './usage.ts'

/** Index of a frame's text. */
const TEXT = 0
const THINKING = 1

/**
 * Decodes a stream, the first of several candidates. The wire has no terminator: parts and usage may follow
 * the finish reason, so the end is emitted when the upstream closes. A stream without a reason is truncated.
 */
export class GeminiStreamDecoder extends FrameReader {
  readonly #parts = new ReplyParts((event) => this.emit(event))
  readonly #usage = new StreamUsage()
  #isStarted = false
  #finishReason: string | undefined

  get tools(): SeenTools {
    return this.#usage.tools
  }

  get usage(): ReportedUsage | undefined {
    return this.#usage.usage
  }

  protected read(data: string, frame: string): void {
    const chunk = parseRecord(data)
    if (isErrorEvent(frame) || (chunk && isError(chunk['error']))) return this.#fail(data, chunk)
    if (chunk) this.#take(chunk, data)
    return undefined
  }

  /** The counts in such a chunk are not read: a later chunk, if only the last one, states them again. */
  protected pieceOf(data: string): FramePiece | undefined {
    const chunk = parseRecord(data)
    const piece = chunk && plainText(chunk)
    return piece && { index: piece.isThought ? THINKING : TEXT, text: piece.text }
  }

  protected readPiece(index: number, text: string): void {
    this.#parts.grow(index === THINKING ? 'thinking' : 'text', text)
  }

  protected override copyPiece(index: number, bytes: Buffer, match: TextMatch): CopiedPart | undefined {
    return this.#parts.copy(index === THINKING ? 'thinking' : 'text', bytes, match)
  }

  /** Any last frame that is whole counts, since none of them is a terminator. */
  protected isTerminator(data: string): boolean {
    return parseRecord(data) !== undefined
  }

  protected handleClose(): void {
    if (this.#finishReason === undefined) return
    this.#parts.end()
    this.emit({ kind: 'end', stop: stopOf(this.#finishReason, this.#parts), usage: this.usage })
  }

  #take(chunk: Fields, data: string): void {
    this.#usage.read(chunk)
    this.#start(chunk)
    const first = firstCandidate(chunk)
    if (first) {
      const parts = partsOf(first.candidate)
      noteArrived(parts, this.arrived)
      this.#parts.read(parts, argumentsIn(data, first.at, parts), citationsIn(first.candidate))
      this.#finishReason = finishReasonOf(first.candidate['finishReason']) ?? this.#finishReason
    } else if (blockReason(chunk) !== undefined) this.#finishReason ??= 'SAFETY'
  }

  #start(chunk: Fields): void {
    if (this.#isStarted) return
    this.#isStarted = true
    const identity = identityOf(chunk)
    this.#parts.setAnswerId(identity.id)
    this.emit({ kind: 'start', ...identity, usage: this.usage })
  }

  #fail(data: string, chunk: Fields | undefined): void {
    this.isOver = true
    if (chunk) this.#usage.read(chunk)
    const { type, message, code, status } = readGeminiError(Buffer.from(data))
    this.emit({
      kind: 'failure',
      type,
      message: message ?? 'The upstream reported an error in the middle of its answer.',
      code: code ?? asRecord(chunk?.['error'])?.['code'],
      status,
    })
  }
}
