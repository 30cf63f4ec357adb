import { errorInAnswer, errorOfEnd, isReplyWith } from '../../answer-error.ts'
import { AnswerMetadata } from '../../answer-metadata.ts'
import { endReasonOf } from '../../end-reasons.ts'
import { executedCodeOutput } from '../../executed-code.ts'
import type { FrameAction } from '../../sse/frame-loop.ts'
import type { FrameText } from '../../sse/frame-template.ts'
import { asRecord, parseRecord } from '../../json/record.ts'
import { messageDiagnosis } from '../../cache-diagnosis.ts'
import { isErrorObject, type ReplyFacts } from '../../reply-facts.ts'
import { isErrorEvent } from '../../sse/frame-splitter.ts'
import { SharedTemplates } from '../../sse/shared-templates.ts'
import { StreamTap } from '../../sse/stream-tap.ts'
import type { ErrorContent } from '../../upstream-error.ts'
import { messagesErrorFrame } from '../errors.ts'
import {
  blockIndex,
  type Event,
  eventType,
  isRepeatedMessageStart,
  textsOfUnknownMembers,
  usageInError,
} from '../event.ts'
import { recordBlockToolUse, toolUsesIn } from '../blocks.ts'
import { readMessagesUsage, StreamedUsage } from '../usage.ts'

/**
 * Maximum number of blocks of one reply that are counted separately; all further blocks are counted as one.
 */
const MAX_BLOCKS = 1024
const SHARED = new SharedTemplates()

/**
 * Watches a messages stream that is forwarded without conversion. The stream ends with `message_stop`. Its
 * usage is in `message_start`, and complete in `message_delta`. A stream is also complete if the upstream
 * closed the connection after a stop reason.
 */
export class MessagesTap extends StreamTap {
  #hasBegun = false
  #sawFinish = false
  #id: unknown
  readonly #counts = new StreamedUsage()

  override readonly tools = this.#counts.tools

  constructor() {
    super(undefined, SHARED)
  }

  get sawFinish(): boolean {
    return this.#sawFinish
  }

  failureFrame(error: ErrorContent): Buffer {
    return messagesErrorFrame(error)
  }

  protected read(data: string, frame: string): FrameAction {
    const event = parseRecord(data)
    if (!event) return isErrorEvent(frame) ? this.#fail(data, undefined) : 'forward'
    switch (eventType(event, frame)) {
      case 'message_start':
        this.#start(asRecord(event['message']))
        return 'forward'
      case 'content_block_start':
        this.resetTemplates()
        this.#noteHidden(event, asRecord(event['content_block'])?.['data'])
        recordBlockToolUse(this.tools, blockIndex(event), event['content_block'])
        for (const piece of generatedText(asRecord(event['content_block']))) this.emit(indexOf(event), piece)
        return 'forward'
      case 'content_block_delta': {
        const delta = asRecord(event['delta'])
        const text = deltaText(delta)
        if (text !== undefined) this.emit(indexOf(event), text)
        else this.#noteHidden(event, delta?.['signature'])
        for (const other of textsOfUnknownMembers(delta)) this.emit(indexOf(event), other)
        return 'forward'
      }
      case 'message_delta':
        this.#finish(asRecord(event['delta']))
        this.#count(event['usage'], true)
        return 'forward'
      case 'message_stop':
        this.usage = this.#counts.final
        return this.endAtMarker(this.#hasBegun || this.#sawFinish)
      case 'error':
        return this.#fail(data, event)
      default:
        // A proxy between gateway and provider may report errors in a different format.
        return isErrorObject(event) ? this.#fail(data, event) : 'forward'
    }
  }

  protected pieceOf(data: string): FrameText | undefined {
    const event = parseRecord(data)
    const delta = event?.['type'] === 'content_block_delta' ? asRecord(event['delta']) : undefined
    const text = textsOfUnknownMembers(delta).length === 0 ? deltaText(delta) : undefined
    return event && text !== undefined ? { index: indexOf(event), text } : undefined
  }

  protected isTerminator(data: string): boolean {
    return parseRecord(data)?.['type'] === 'message_stop'
  }

  /**
   * Reads `message_start`, which may contain a complete message. If it repeats the first one, only its usage
   * is read.
   */
  #start(message: Event | undefined): void {
    this.#hasBegun = true
    if (isRepeatedMessageStart(this.#id, message?.['id'])) {
      this.#counts.addRepeatedStart(message?.['usage'])
      return this.#update()
    }
    this.#id = message?.['id']
    this.names.note(message?.['id'], message?.['model'])
    if (message) this.diagnosis = messageDiagnosis(message)
    this.#finish(message)
    this.#count(message?.['usage'], this.#sawFinish)
    const content = message?.['content']
    if (!Array.isArray(content)) return
    for (const [index, block] of content.entries()) {
      recordBlockToolUse(this.tools, index, block)
      for (const piece of generatedText(asRecord(block))) this.emit(Math.min(index, MAX_BLOCKS), piece)
    }
  }

  #count(usage: unknown, isLast: boolean): void {
    this.#counts.add(usage, isLast)
    this.#update()
  }

  #update(): void {
    this.usage = this.#sawFinish ? this.#counts.final : (this.#counts.partial ?? this.usage)
  }

  /** Counts the tokens of thoughts that are encrypted, or that the stream shows only as a shorter summary. */
  #noteHidden(event: Event, encrypted: unknown): void {
    if (typeof encrypted === 'string')
      this.arrived.addHidden(encrypted.length, this.textBytes(indexOf(event)))
  }

  #finish(holder: Event | undefined): void {
    const reason = holder?.['stop_reason']
    if (typeof reason !== 'string' || reason === '') return
    this.#sawFinish = true
    this.names.finish(0, reason)
    const error = errorOfEnd(reason)
    if (error) this.failAtEnd(error)
  }

  #fail(data: string, event: Event | undefined): FrameAction {
    this.error = { data, afterContent: this.contentFrames > 0 }
    this.#counts.add(usageInError(event), false)
    this.usage = this.#counts.partial ?? this.usage
    return 'end'
  }
}

function indexOf(event: Event): number {
  return Math.min(blockIndex(event), MAX_BLOCKS)
}

/** Reads validity, error and usage of a complete reply; never throws. */
export function usageOfMessage(bytes: Buffer): ReplyFacts {
  const reply = parseRecord(bytes.toString()) ?? {}
  const content = reply['content']
  const tools = toolUsesIn(content)
  const reason = reply['stop_reason']
  const error = errorInAnswer(reply, Array.isArray(content)) ?? errorOfEnd(reason)
  return {
    hasUnknownEnd: typeof reason === 'string' && reason !== '' && !endReasonOf(reason),
    valid: Array.isArray(content) && isReplyWith(error),
    usage: readMessagesUsage(reply['usage'], tools),
    diagnosis: messageDiagnosis(reply),
    tools,
    error,
    names() {
      const names = new AnswerMetadata()
      names.note(reply['id'], reply['model'])
      names.finish(0, reply['stop_reason'])
      return names
    },
    text: () =>
      Array.isArray(content) ? content.flatMap((block) => generatedText(asRecord(block))).join('\n') : '',
  }
}

/**
 * Texts of a block, which may be complete or just beginning: text, thinking, name and input of a tool call,
 * and what code printed that the provider ran. Empty texts are left out. Results of the provider's other tools
 * are not generated text.
 */
function generatedText(block: Readonly<Record<string, unknown>> | undefined): string[] {
  if (!block) return []
  const type = String(block['type'])
  const pieces = [block['text'], block['thinking'], ...executedCodeOutput(block)]
  if (type === 'compaction') pieces.push(block['content'])
  if (type.endsWith('tool_use')) pieces.push(block['name'], inputText(block['input']))
  return pieces.filter((piece): piece is string => typeof piece === 'string' && piece !== '')
}

/**
 * Returns the text that a delta adds; undefined if it adds no text, for example a signature or a citation.
 */
function deltaText(delta: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const key = DELTAS.get(String(delta?.['type']))
  const text = key === undefined ? undefined : delta?.[key]
  return typeof text === 'string' && text !== '' ? text : undefined
}

/** Name of the member that contains the text, by type of delta. */
const DELTAS: ReadonlyMap<string, string> = new Map([
  ['text_delta', 'text'],
  ['thinking_delta', 'thinking'],
  ['input_json_delta', 'partial_json'],
  ['compaction_delta', 'content'],
])

/** Returns the input of a tool call as text; undefined for the `{}` at the start of a streamed call. */
function inputText(input: unknown): string | undefined {
  return typeof input === 'object' && input !== null && Object.keys(input).length > 0
    ? JSON.stringify(input)
    : undefined
}
