import { isReplyWith } from '../../answer-error.ts'
import { AnswerMetadata } from '../../answer-metadata.ts'
import { endReasonOf } from '../../end-reasons.ts'
import { executedCodeOutput } from '../../executed-code.ts'
import type { Usage } from '../../usage.ts'
import type { Fields } from '../../field.ts'
import { asRecord, parseRecord } from '../../json/record.ts'
import { isErrorObject, type ReplyFacts } from '../../reply-facts.ts'
import { isErrorEvent } from '../../sse/frame-splitter.ts'
import type { FrameAction } from '../../sse/frame-loop.ts'
import type { FrameText, FrameTemplate } from '../../sse/frame-template.ts'
import { StreamTap, type TapPushResult } from '../../sse/stream-tap.ts'
import type { ErrorContent } from '../../upstream-error.ts'
import {
  jsonTextsOfResponses,
  blockReason,
  errorOfAnswer,
  errorOfCandidate,
  recordReceivedMedia,
  partsOfCandidate,
  textOfPlainChunk,
  textsOfUnknownMembers,
} from '../answer.ts'
import { geminiErrorText, statusOfStreamError } from '../errors.ts'
import { KEEP_ALIVE_FRAME } from '../stream/encoder.ts'
import { finishReasonOf } from '../stop-reasons.ts'
import { StreamUsage } from '../usage.ts'
import { ReceivedMedia } from '../../received-media.ts'

/** Maximum number of candidates whose finish reason is watched; the protocol allows no more candidates. */
const MAX_CANDIDATES = 8

/**
 * Watches a stream that is forwarded without conversion. The protocol has no end marker, and usage may follow
 * the finish reason. Therefore everything from the chunk in which the last candidate finishes is held back
 * until the upstream has closed the connection and the call was charged.
 */
export class GeminiTap extends StreamTap {
  readonly #usage = new StreamUsage()
  override readonly tools = this.#usage.tools
  /** Whether each candidate has finished, by the candidate's index. */
  readonly #finished = new Map<number, boolean>()
  /** Chunks that are held back until the call is charged. */
  readonly #held: Buffer[] = []
  /**
   * Whether the beginning of the next frame was forwarded with an earlier chunk, so that the frame cannot be
   * held back any more.
   */
  #isForwarded = false

  get sawFinish(): boolean {
    return this.#finished.size > 0 && [...this.#finished.values()].every(Boolean)
  }

  override push(chunk: Buffer): TapPushResult {
    this.#isForwarded = this.isMidEvent
    return super.push(chunk)
  }

  override finalBytes(charged: Usage): Buffer {
    return Buffer.concat([...this.#held, super.finalBytes(charged)])
  }

  /** Takes the chunks that are held back, which contain the last texts, out of `finalBytes`. A stream that is cut has none. */
  takeLastTexts(isCut: boolean): Buffer {
    return Buffer.concat(isCut ? [] : this.#held.splice(0))
  }

  failureFrame(error: ErrorContent): Buffer {
    return Buffer.from(`data: ${geminiErrorText({ ...error, status: statusOfStreamError(error) })}\r\n\r\n`)
  }

  /** Returns a comment that keeps the connection alive; undefined in the middle of an event. */
  override keepAliveFrame(): Buffer | undefined {
    return this.isMidEvent ? undefined : Buffer.from(KEEP_ALIVE_FRAME)
  }

  protected read(data: string, frame: string): FrameAction {
    this.sentEvents++
    const wasForwarded = this.#isForwarded
    this.#isForwarded = false
    const chunk = parseRecord(data)
    if (isErrorEvent(frame) || (chunk && isErrorObject(chunk))) {
      if (chunk) this.#takeUsage(chunk)
      this.error = { data, afterContent: this.contentFrames > 0 }
      return 'end'
    }
    if (chunk) this.#take(chunk)
    if (!this.sawFinish || wasForwarded) return 'forward'
    this.resetTemplates()
    this.#held.push(Buffer.from(frame))
    return 'swallow'
  }

  protected override readTemplated(known: FrameTemplate, bytes: Buffer): boolean {
    const isRead = super.readTemplated(known, bytes)
    if (isRead) this.sentEvents++
    return isRead
  }

  /**
   * A chunk with nothing but text is not parsed again: its token counts need not be read, because a later
   * chunk, at the latest the last one, repeats them.
   */
  protected pieceOf(data: string): FrameText | undefined {
    const chunk = this.sawFinish ? undefined : parseRecord(data)
    const piece = chunk && textOfPlainChunk(chunk)
    return piece && { index: 0, text: piece.text }
  }

  /**
   * Whether the last frame is read although no blank line follows it. It is if its data is complete JSON,
   * because the protocol has no end marker.
   */
  protected isTerminator(data: string): boolean {
    return parseRecord(data) !== undefined
  }

  #take(chunk: Fields): void {
    this.#takeUsage(chunk)
    this.names.note(chunk['responseId'], chunk['modelVersion'])
    const candidates = Array.isArray(chunk['candidates']) ? (chunk['candidates'] as readonly unknown[]) : []
    for (const value of candidates) {
      const candidate = asRecord(value) ?? {}
      const number = indexOf(candidate)
      const hasReason = finishReasonOf(candidate['finishReason']) !== undefined
      if (hasReason) this.names.finish(number, candidate['finishReason'])
      const error = hasReason ? errorOfCandidate(candidate) : undefined
      if (error) this.failAtEnd(error)
      this.#finished.set(number, hasReason || this.#finished.get(number) === true)
      const parts = partsOfCandidate(candidate)
      recordReceivedMedia(parts, this.arrived, this.elidedBytes)
      for (const piece of parts.flatMap(generatedText)) this.emit(number, piece)
    }
    const blocked = candidates.length === 0 ? blockReason(chunk) : undefined
    if (blocked === undefined) return
    this.names.finish(0, blocked)
    this.#finished.set(0, true)
  }

  #takeUsage(chunk: Fields): void {
    this.#usage.read(chunk)
    this.usage = this.#usage.usage
    this.served = this.#usage.served
  }
}

function indexOf({ index }: Fields): number {
  return Number.isInteger(index) && (index as number) > 0 ? Math.min(index as number, MAX_CANDIDATES) : 0
}

/**
 * Reads validity, error and usage of a complete response; never throws. A response that says that the prompt
 * was refused is valid too.
 */
export function usageOfAnswer(bytes: Buffer): ReplyFacts {
  const answers = jsonTextsOfResponses(bytes.toString()).map((text) => parseRecord(text) ?? {})
  const error = answers.map(errorOfAnswer).find((found) => found)
  const candidates = answers.flatMap(({ candidates: all }) =>
    Array.isArray(all) ? (all as readonly unknown[]).map((one) => asRecord(one) ?? {}) : [],
  )
  const usage = new StreamUsage()
  for (const answer of answers) usage.read(answer)
  return {
    valid:
      isReplyWith(error) &&
      (candidates.length > 0 || answers.some((answer) => blockReason(answer) !== undefined)),
    usage: usage.usage,
    tools: usage.tools.uses,
    error,
    hasUnknownEnd: candidates.some(({ finishReason }) => {
      const reason = finishReasonOf(finishReason)
      return reason !== undefined && !endReasonOf(reason)
    }),
    names() {
      const names = new AnswerMetadata()
      for (const answer of answers) names.note(answer['responseId'], answer['modelVersion'])
      for (const candidate of candidates) names.finish(indexOf(candidate), candidate['finishReason'])
      if (candidates.length === 0) for (const answer of answers) names.finish(0, blockReason(answer))
      return names
    },
    text: () =>
      candidates.flatMap((candidate) => partsOfCandidate(candidate).flatMap(generatedText)).join('\n'),
    arrived() {
      const arrived = new ReceivedMedia()
      for (const candidate of candidates) recordReceivedMedia(partsOfCandidate(candidate), arrived)
      return arrived
    },
  }
}

/** Texts of a part: text, thoughts, calls, and code with what it printed. Empty texts are left out. */
function generatedText(part: unknown): string[] {
  const record = asRecord(part)
  if (!record) return []
  const call = asRecord(record['functionCall'])
  const args = call?.['args'] ?? call?.['partialArgs'] ?? asRecord(record['toolCall'])?.['args']
  return [
    record['text'],
    call?.['name'],
    args === undefined ? undefined : JSON.stringify(args),
    asRecord(record['executableCode'])?.['code'],
    ...textsOfUnknownMembers(record),
    ...executedCodeOutput(record),
  ].filter((piece): piece is string => typeof piece === 'string' && piece !== '')
}
