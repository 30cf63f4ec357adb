import {
  type AnswerError,
  culpritOfChoices,
  errorOfChoice,
  failureEvent,
  WITHOUT_ANSWER,
} from '../../answer-error.ts'
import type { CopyablePart } from '../../frame-writer.ts'
import type { FrameText, FrameTextMatch } from '../../sse/frame-template.ts'
import { withUniquePartIndex, type Stop } from '../../reply.ts'
import { type EventMemory, isErrorEvent } from '../../sse/frame-splitter.ts'
import { FrameReader } from '../../sse/frame-reader.ts'
import { asRecord, parseRecord, stringOrEmpty } from '../../json/record.ts'
import { isErrorObject } from '../../reply-facts.ts'
import { laterStatedService, type StatedService, statedTier } from '../../service-tier.ts'
import { preferLaterUsage, type ReportedUsage } from '../../reported-usage.ts'
import {
  addedTo,
  SEARCH_INFERRED_FROM_CITATION,
  citesWebPage,
  generatedText,
  recordReceivedMedia,
  textsOfUnknownMembers,
} from '../answer.ts'
import { choiceAt, finishReasonOf, firstChoice, logprobsOf, ReplyPartsDecoder } from '../decode/reply.ts'
import type { Fields } from '../../field.ts'
import { parseChatReply } from '../decode/tool-call-decoder.ts'
import { matchedStopOf, readChatStop } from '../stop-reasons.ts'
import { ToolUseCounter } from '../../tool-use.ts'
import { usageInChatReply, type UsageOfChoices } from '../usage.ts'

/**
 * Says which text a chunk contains: the content, the thinking, or (from `FIRST_CALL` on) the arguments of a
 * tool call.
 */
const TEXT = 0
const THINKING = 1
const FIRST_CALL = 2

/** A choice of the reply, of which more chunks may arrive. */
interface OpenChoice {
  readonly parts: ReplyPartsDecoder
  finishReason: string | undefined
  /** The stop sequence that ended the choice, if the upstream states one. */
  sequence?: string | undefined
  /** Set if the choice ended for a reason that means a failure. */
  error?: AnswerError | undefined
}

/**
 * Decodes a chat stream with at most the requested number of choices. The stream is complete with [DONE], or
 * if the upstream closed the connection after a finish reason for each choice that began. Usage may follow
 * the finish reason, so the `end` event comes last.
 */
export class ChatStreamDecoder extends FrameReader {
  /** The choices by index. Each choice after the first is added with its first chunk. */
  readonly #choices: OpenChoice[] = [
    { parts: new ReplyPartsDecoder((event) => this.emit(event)), finishReason: undefined },
  ]
  readonly #requestedChoices: number
  readonly #ofChoices: UsageOfChoices = new Map()
  #id = ''
  #model = ''
  #isStarted = false
  #usage: ReportedUsage | undefined
  served: StatedService | undefined

  readonly tools = new ToolUseCounter()

  constructor(memory?: EventMemory, choices = 1) {
    super(memory)
    this.#requestedChoices = choices
  }

  get usage(): ReportedUsage | undefined {
    return this.#usage
  }

  protected read(data: string, frame: string): void {
    if (this.isTerminator(data)) return this.#finish()
    const chunk = parseChatReply(data)
    if ((chunk && isErrorObject(chunk)) || isErrorEvent(frame)) return this.#fail(data, chunk)
    if (chunk) this.#take(chunk)
    return undefined
  }

  protected readPiece(index: number, text: string): void {
    if (index === TEXT) this.#first.grow('text', text)
    else if (index === THINKING) this.#first.grow('thinking', text)
    else this.#first.growCall(index - FIRST_CALL, text)
  }

  protected override copyPiece(
    index: number,
    bytes: Buffer,
    match: FrameTextMatch,
  ): CopyablePart | undefined {
    if (index === TEXT) return this.#first.copy('text', match)
    if (index === THINKING) return this.#first.copy('thinking', match)
    return this.#first.copyArguments(index - FIRST_CALL, bytes, match)
  }

  protected pieceOf(data: string): FrameText | undefined {
    const chunk = parseRecord(data)
    const choices = chunk?.['choices']
    if (!chunk || !Array.isArray(choices) || choices.length !== 1) return undefined
    const choice = firstChoice(choices)
    if (!choice || finishReasonOf(choice) || usageInChatReply(chunk) || isErrorObject(chunk)) return undefined
    if (logprobsOf(choice)) return undefined
    return pieceOfDelta(asRecord(choice['delta']))
  }

  protected isTerminator(data: string): boolean {
    return data.trim() === '[DONE]'
  }

  protected handleClose(): void {
    if (this.#choices.every(({ finishReason, error }) => finishReason !== undefined || error)) this.#finish()
  }

  #take(chunk: Fields): void {
    this.#id ||= stringOrEmpty(chunk['id'])
    this.#model ||= stringOrEmpty(chunk['model'])
    this.#usage = preferLaterUsage(this.#usage, usageInChatReply(chunk, this.#ofChoices))
    this.served = laterStatedService(this.served, statedTier(chunk['service_tier']))
    const choices = chunk['choices']
    if (!Array.isArray(choices) || choices.length === 0) return
    this.#start()
    for (let number = 0; number < this.#requestedChoices; number++) {
      const choice = choiceAt(choices, number)
      if (choice) this.#takeChoice(choice, this.#choice(number), chunk)
    }
  }

  #takeChoice(choice: Fields, open: OpenChoice, chunk: Fields): void {
    const delta = addedTo(choice, open.parts.isEmpty)
    recordReceivedMedia(delta, this.arrived)
    for (const text of textsOfUnknownMembers(delta)) this.arrived.addUnknown(text)
    if (citesWebPage(delta)) this.tools.note('cited', SEARCH_INFERRED_FROM_CITATION)
    open.parts.noteSources(chunk)
    if (delta) open.parts.read(delta, logprobsOf(choice))
    open.finishReason = finishReasonOf(choice) ?? open.finishReason
    open.sequence ??= matchedStopOf(choice)
    open.error ??= errorOfChoice(choice)
  }

  /** Returns the choice with this index; creates it, and those before it, if they do not exist. */
  #choice(number: number): OpenChoice {
    for (let next = this.#choices.length; next <= number; next++) {
      const parts = new ReplyPartsDecoder((event) => this.emit(withUniquePartIndex(next, event)))
      parts.setReplyId(`${this.#id}_${next}`)
      this.#choices.push({ parts, finishReason: undefined })
    }
    return this.#choices[number] as OpenChoice
  }

  get #first(): ReplyPartsDecoder {
    return (this.#choices[0] as OpenChoice).parts
  }

  #start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#first.setReplyId(this.#id)
    this.emit({ kind: 'start', id: this.#id, model: this.#model, usage: this.#usage })
  }

  #finish(): void {
    this.isOver = true
    if (!this.#isStarted) return this.emit(failureEvent(WITHOUT_ANSWER))
    const failed = this.#choices.find(({ error }) => error)
    if (failed?.error) return this.emit(failureEvent(failed.error))
    for (const { parts } of this.#choices) parts.end()
    const [stop = { reason: 'end' }, ...others] = this.#choices.map(
      ({ parts, finishReason, sequence }): Stop => readChatStop(finishReason, parts, sequence),
    )
    const { served } = this
    this.emit({ kind: 'end', stop, usage: this.#usage, served, ...(others.length > 0 && { others }) })
  }

  #fail(data: string, chunk: Fields | undefined): void {
    this.isOver = true
    this.#usage = preferLaterUsage(this.#usage, chunk && usageInChatReply(chunk, this.#ofChoices))
    this.emit(failureEvent({ data, culprit: culpritOfChoices(chunk?.['choices']) }))
  }
}

/** Returns the text of a delta; undefined if the delta contains anything else. */
function pieceOfDelta(delta: Fields | undefined): FrameText | undefined {
  const [text, ...others] = generatedText(delta)
  if (!delta || text === undefined || others.length > 0 || hasMore(delta)) return undefined
  if (delta['content'] === text) return { index: TEXT, text }
  if (delta['reasoning_content'] === text || delta['reasoning'] === text) return { index: THINKING, text }
  const calls = delta['tool_calls']
  const call = Array.isArray(calls) && calls.length === 1 ? asRecord(calls[0]) : undefined
  const index = call?.['index']
  const isPlain = call && !call['id'] && asRecord(call['function'])?.['arguments'] === text
  if (!isPlain || !Number.isSafeInteger(index) || (index as number) < 0) return undefined
  return { index: FIRST_CALL + (index as number), text }
}

function hasMore({ annotations, images, reasoning_details }: Fields): boolean {
  return [annotations, images, reasoning_details].some((list) => Array.isArray(list) && list.length > 0)
}
