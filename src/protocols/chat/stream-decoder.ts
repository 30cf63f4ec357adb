import type { CopiedPart } from '../copied-text.ts'
import type { FramePiece, TextMatch } from '../sse/frame-template.ts'
import { FrameReader } from '../sse/frame-reader.ts'
import { asRecord, parseRecord, textOr } from '../json/record.ts'
import { isError } from '../reply-facts.ts'
import { laterUsage, type ReportedUsage } from '../reported-usage.ts'
import { isErrorEvent } from '../sse/frame-splitter.ts'
import { readUpstreamError } from '../upstream-error.ts'
import { noteArrived } from './arrived.ts'
import { finishReasonOf, firstChoice, logprobsOf } from './decode-reply.ts'
import type { Fields } from '../field.ts'
import { generatedText } from './generated-text.ts'
import { parseAnswer } from './object-arguments.ts'
import { ReplyParts } from './reply-parts.ts'
import { stopOf } from './stop-reasons.ts'
import { ToolTally } from '../tool-tally.ts'
import { CITED_SEARCH, citesPage } from './cited-pages.ts'
import { usageOf } from './usage.ts'

/** Index of a frame's text: content, thinking, or, from `FIRST_CALL` on, the call under an index. */
const TEXT = 0
const THINKING = 1
const FIRST_CALL = 2

/**
 * Decodes a chat stream, the first of several choices. It is complete with [DONE], or if the upstream closed
 * after a finish reason. Usage may follow the reason, so the end is emitted last.
 */
export class ChatStreamDecoder extends FrameReader {
  readonly #parts = new ReplyParts((event) => this.emit(event))
  #id = ''
  #model = ''
  #isStarted = false
  #finishReason: string | undefined
  #usage: ReportedUsage | undefined

  readonly tools = new ToolTally()

  get usage(): ReportedUsage | undefined {
    return this.#usage
  }

  protected read(data: string, frame: string): void {
    if (this.isTerminator(data)) return this.#finish()
    const chunk = parseAnswer(data)
    const isFailure = chunk && (isError(chunk['error']) || chunk['object'] === 'error')
    if (isFailure || isErrorEvent(frame)) return this.#fail(data, chunk)
    if (chunk) this.#take(chunk)
    return undefined
  }

  protected readPiece(index: number, text: string): void {
    if (index === TEXT) this.#parts.grow('text', text)
    else if (index === THINKING) this.#parts.grow('thinking', text)
    else this.#parts.growCall(index - FIRST_CALL, text)
  }

  protected override copyPiece(index: number, bytes: Buffer, match: TextMatch): CopiedPart | undefined {
    if (index === TEXT) return this.#parts.copy('text', match)
    if (index === THINKING) return this.#parts.copy('thinking', match)
    return this.#parts.copyArguments(index - FIRST_CALL, bytes, match)
  }

  protected pieceOf(data: string): FramePiece | undefined {
    const chunk = parseRecord(data)
    const choices = chunk?.['choices']
    if (!chunk || !Array.isArray(choices) || choices.length !== 1) return undefined
    const choice = firstChoice(choices)
    if (!choice || finishReasonOf(choice) || usageOf(chunk) || isError(chunk['error'])) return undefined
    if (logprobsOf(choice)) return undefined
    return pieceOfDelta(asRecord(choice['delta']))
  }

  protected isTerminator(data: string): boolean {
    return data.trim() === '[DONE]'
  }

  protected handleClose(): void {
    if (this.#finishReason !== undefined) this.#finish()
  }

  #take(chunk: Fields): void {
    this.#id ||= textOr(chunk['id'])
    this.#model ||= textOr(chunk['model'])
    this.#usage = laterUsage(this.#usage, usageOf(chunk))
    const choices = chunk['choices']
    if (!Array.isArray(choices) || choices.length === 0) return
    this.#start()
    const choice = firstChoice(choices)
    if (!choice) return
    // A server that cannot stream sends its whole reply in one frame.
    const delta = asRecord(choice['delta']) ?? asRecord(choice['message'])
    noteArrived(delta, this.arrived)
    if (citesPage(delta)) this.tools.note('cited', CITED_SEARCH)
    if (delta) this.#parts.read(delta, logprobsOf(choice))
    this.#finishReason = finishReasonOf(choice) ?? this.#finishReason
  }

  #start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#parts.setReplyId(this.#id)
    this.emit({ kind: 'start', id: this.#id, model: this.#model, usage: this.#usage })
  }

  #finish(): void {
    this.isOver = true
    if (!this.#isStarted) {
      this.emit({
        kind: 'failure',
        type: 'api_error',
        message: 'The upstream ended its stream without a response.',
      })
      return
    }
    this.#parts.end()
    this.emit({ kind: 'end', stop: stopOf(this.#finishReason, this.#parts), usage: this.#usage })
  }

  #fail(data: string, chunk: Fields | undefined): void {
    this.isOver = true
    this.#usage = laterUsage(this.#usage, chunk && usageOf(chunk))
    const { type, message } = readUpstreamError(Buffer.from(data))
    this.emit({
      kind: 'failure',
      type,
      message: message ?? 'The upstream reported an error in the middle of its response.',
      code: asRecord(chunk?.['error'])?.['code'] ?? chunk?.['code'],
    })
  }
}

/** Returns the text of a delta that has nothing else. */
function pieceOfDelta(delta: Fields | undefined): FramePiece | undefined {
  const [text, ...others] = generatedText(delta)
  if (!delta || text === undefined || others.length > 0 || hasAnnotations(delta)) return undefined
  if (delta['content'] === text) return { index: TEXT, text }
  if (delta['reasoning_content'] === text || delta['reasoning'] === text) return { index: THINKING, text }
  const calls = delta['tool_calls']
  const call = Array.isArray(calls) && calls.length === 1 ? asRecord(calls[0]) : undefined
  const index = call?.['index']
  const isPlain = call && !call['id'] && asRecord(call['function'])?.['arguments'] === text
  if (!isPlain || !Number.isSafeInteger(index) || (index as number) < 0) return undefined
  return { index: FIRST_CALL + (index as number), text }
}

function hasAnnotations(delta: Fields): boolean {
  const annotations = delta['annotations']
  return Array.isArray(annotations) && annotations.length > 0
}
