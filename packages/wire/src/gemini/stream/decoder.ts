import { type AnswerError, failureEvent } from '../../answer-error.ts'
import { asRecord, parseRecord } from '../../json/record.ts'
import type { Fields } from '../../field.ts'
import { isErrorObject } from '../../reply-facts.ts'
import type { CopyablePart } from '../../frame-writer.ts'
import type { StatedService } from '../../service-tier.ts'
import type { ReportedUsage } from '../../reported-usage.ts'
import { type EventMemory, isErrorEvent } from '../../sse/frame-splitter.ts'
import type { FrameText, FrameTextMatch } from '../../sse/frame-template.ts'
import { withUniquePartIndex, type Stop } from '../../reply.ts'
import { FrameReader } from '../../sse/frame-reader.ts'
import {
  argumentsTextFinder,
  blockReason,
  candidateAt,
  endWords,
  errorOfCandidate,
  idAndModelOf,
  recordReceivedMedia,
  partsOfCandidate,
  textOfPlainChunk,
  textsOfUnknownMembers,
} from '../answer.ts'
import { readGeminiError } from '../errors.ts'
import { citationFinderOf } from '../grounding.ts'
import { logprobsOf } from '../logprobs.ts'
import { ReplyPartsDecoder } from '../decode/reply.ts'
import { finishReasonOf, readGeminiStop } from '../stop-reasons.ts'
import type { ReportedToolUses } from '../../tool-use.ts'
import { StreamUsage } from '../usage.ts'

/**
 * Says whether the text in a chunk is content or a thought. Chunks with the same kind of text have the same
 * format.
 */
const TEXT = 0
const THINKING = 1

/** A candidate of the response, of which more chunks may arrive. */
interface OpenChoice {
  readonly parts: ReplyPartsDecoder
  finishReason: string | undefined
  /** The provider's words about its end; empty if there are none. */
  words: string
  /** Set if the candidate ended for a reason that means a failure. */
  error?: AnswerError | undefined
}

/**
 * Decodes a stream with as many candidates as were requested. The protocol has no end marker: parts and usage
 * may follow the finish reason, so the `end` event is emitted when the upstream closes the connection. The
 * stream is truncated if a candidate has begun but has no finish reason.
 */
export class GeminiStreamDecoder extends FrameReader {
  /** The candidates by index. Each candidate after the first is added with its first chunk. */
  readonly #choices: OpenChoice[] = [
    { parts: new ReplyPartsDecoder((event) => this.emit(event)), finishReason: undefined, words: '' },
  ]
  readonly #requestedChoices: number
  readonly #usage = new StreamUsage()
  #isStarted = false
  #id = ''

  constructor(memory?: EventMemory, choices = 1) {
    super(memory)
    this.#requestedChoices = choices
  }

  get tools(): ReportedToolUses {
    return this.#usage.tools
  }

  get usage(): ReportedUsage | undefined {
    return this.#usage.usage
  }

  get served(): StatedService | undefined {
    return this.#usage.served
  }

  protected read(data: string, frame: string): void {
    const chunk = parseRecord(data)
    if (isErrorEvent(frame) || (chunk && isErrorObject(chunk))) return this.#fail(data, chunk)
    if (chunk) this.#take(chunk, data)
    return undefined
  }

  /**
   * A chunk with nothing but text is not parsed again: its token counts need not be read, because a later
   * chunk, at the latest the last one, repeats them.
   */
  protected pieceOf(data: string): FrameText | undefined {
    const chunk = parseRecord(data)
    const piece = chunk && textOfPlainChunk(chunk)
    return piece && { index: piece.isThought ? THINKING : TEXT, text: piece.text }
  }

  protected readPiece(index: number, text: string): void {
    this.#choice(0).parts.grow(index === THINKING ? 'thinking' : 'text', text)
  }

  protected override copyPiece(
    index: number,
    bytes: Buffer,
    match: FrameTextMatch,
  ): CopyablePart | undefined {
    return this.#choice(0).parts.copy(index === THINKING ? 'thinking' : 'text', bytes, match)
  }

  /**
   * Whether the last frame is read although no blank line follows it. It is if its data is complete JSON,
   * because the protocol has no end marker.
   */
  protected isTerminator(data: string): boolean {
    return parseRecord(data) !== undefined
  }

  protected handleClose(): void {
    const stops = this.#choices.flatMap(({ parts: { calledTools }, finishReason, words }): Stop[] =>
      finishReason === undefined ? [] : [readGeminiStop(finishReason, { calledTools, words })],
    )
    const [stop, ...others] = stops
    if (!stop || stops.length < this.#choices.length) return
    const failed = this.#choices.find(({ error }) => error)
    if (failed?.error) return this.emit(failureEvent(failed.error))
    for (const { parts } of this.#choices) parts.end()
    this.emit({ kind: 'end', stop, usage: this.usage, ...(others.length > 0 && { others }) })
  }

  #take(chunk: Fields, data: string): void {
    this.#usage.read(chunk)
    this.#start(chunk)
    for (let number = 0; number < this.#requestedChoices; number++) {
      const found = candidateAt(chunk, number)
      if (!found) continue
      const { candidate, at } = found
      const open = this.#choice(number)
      const parts = partsOfCandidate(candidate)
      recordReceivedMedia(parts, this.arrived)
      for (const part of parts)
        for (const text of textsOfUnknownMembers(asRecord(part) ?? {})) this.arrived.addUnknown(text)
      open.parts.read(
        parts,
        argumentsTextFinder(data, at, parts),
        citationFinderOf(candidate),
        logprobsOf(candidate),
      )
      open.finishReason = finishReasonOf(candidate['finishReason']) ?? open.finishReason
      open.words = endWords(chunk, candidate) || open.words
      open.error ??= errorOfCandidate(candidate)
    }
    if (blockReason(chunk) === undefined || candidateAt(chunk, 0)) return
    const blocked = this.#choice(0)
    blocked.finishReason ??= 'SAFETY'
    blocked.words ||= endWords(chunk)
  }

  /** Returns the candidate with this index. Missing candidates before it are created too. */
  #choice(number: number): OpenChoice {
    for (let next = this.#choices.length; next <= number; next++) {
      const parts = new ReplyPartsDecoder((event) => this.emit(withUniquePartIndex(next, event)))
      parts.setAnswerId(`${this.#id}_${next}`)
      this.#choices.push({ parts, finishReason: undefined, words: '' })
    }
    return this.#choices[number] as OpenChoice
  }

  #start(chunk: Fields): void {
    if (this.#isStarted) return
    this.#isStarted = true
    const identity = idAndModelOf(chunk)
    this.#id = identity.id
    this.#choice(0).parts.setAnswerId(identity.id)
    this.emit({ kind: 'start', ...identity, usage: this.usage })
  }

  #fail(data: string, chunk: Fields | undefined): void {
    this.isOver = true
    if (chunk) this.#usage.read(chunk)
    const { type, code } = readGeminiError(Buffer.from(data))
    this.emit({ ...failureEvent({ data }), type, ...(code !== undefined && { code }) })
  }
}
