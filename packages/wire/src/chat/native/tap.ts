import {
  type AnswerError,
  culpritOfChoices,
  errorInAnswer,
  errorOfChoice,
  isReplyWith,
} from '../../answer-error.ts'
import { AnswerMetadata } from '../../answer-metadata.ts'
import type { Usage } from '../../usage.ts'
import { endReasonOf } from '../../end-reasons.ts'
import { applyEdits } from '../../json/json-edit.ts'
import type { Fields } from '../../field.ts'
import { RESPONSE_LIMITS, scanObject } from '../../json/json-scan.ts'
import { asRecord, parseRecord } from '../../json/record.ts'
import { isErrorObject, type ReplyFacts } from '../../reply-facts.ts'
import { preferLaterUsage, type ReportedUsage } from '../../reported-usage.ts'
import type { FrameAction } from '../../sse/frame-loop.ts'
import { isErrorEvent } from '../../sse/frame-splitter.ts'
import type { FrameText } from '../../sse/frame-template.ts'
import { laterStatedService, statedTier } from '../../service-tier.ts'
import { StreamTap } from '../../sse/stream-tap.ts'
import { ToolUseCounter } from '../../tool-use.ts'
import type { ErrorContent } from '../../upstream-error.ts'
import {
  addedTo,
  SEARCH_INFERRED_FROM_CITATION,
  citesWebPage,
  generatedText,
  indexOfChoice,
  recordReceivedMedia,
  completionAsMessage,
} from '../answer.ts'
import { chatErrorFrame } from '../errors.ts'
import { writeUsageCounts, usageInChatReply, type UsageOfChoices } from '../usage.ts'
import { ReceivedMedia } from '../../received-media.ts'

/** Options for forwarding a chat stream. */
export interface TapOptions {
  /**
   * Whether only the gateway requested usage, so that the chunk with usage is not forwarded, or without the
   * usage if it states something else.
   */
  readonly swallowUsage: boolean
  /**
   * Whether the client requested usage. If the upstream does not send it, a chunk with the charged usage is
   * added.
   */
  readonly addUsage?: boolean
  /** Whether the request only fills the prompt cache, so that its answer may have no choice. */
  readonly fillsCache?: boolean
}

/**
 * Watches a chat stream that is forwarded without conversion. It ends with [DONE].
 */
export class ChatTap extends StreamTap {
  readonly #swallowUsage: boolean
  readonly #fillsCache: boolean
  override readonly tools = new ToolUseCounter()
  /** Whether the client requested usage and has not received it yet. */
  #lacksUsage: boolean
  /** The fields that all chunks of the stream have in common. */
  #common:
    | { readonly id: unknown; readonly object: unknown; readonly created: unknown; readonly model: unknown }
    | undefined
  /** Members that chunks have beside those of every stream, if the chunk with usage is not forwarded. */
  readonly #stated = new Map<string, unknown>()
  /** Whether each choice has finished, by its index. */
  readonly #finished = new Map<number, boolean>()
  readonly #ofChoices: UsageOfChoices = new Map()

  constructor(options: TapOptions) {
    super()
    this.#swallowUsage = options.swallowUsage
    this.#fillsCache = options.fillsCache === true
    this.#lacksUsage = options.addUsage === true
  }

  /** Whether every choice that has begun has a finish reason. */
  get sawFinish(): boolean {
    return this.#finished.size > 0 && [...this.#finished.values()].every(Boolean)
  }

  override finalBytes(charged: Usage): Buffer {
    const ending = super.finalBytes(charged)
    if (!this.#lacksUsage) return ending
    const { id, object = 'chat.completion.chunk', created, model } = this.#common ?? {}
    const chunk = { id, object, created, model, choices: [], usage: writeUsageCounts(charged) }
    return Buffer.concat([Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`), ending])
  }

  failureFrame(error: ErrorContent): Buffer {
    return chatErrorFrame(error)
  }

  protected read(data: string, frame: string): FrameAction {
    if (this.isTerminator(data)) return this.endAtMarker(this.#finished.size > 0 || this.#fillsCache)
    const facts = this.#readChunk(data)
    if (facts?.isError || isErrorEvent(frame)) {
      const culprit = culpritOfChoices(facts?.chunk['choices'])
      this.error = { data, culprit, afterContent: this.contentFrames > 0 }
      // An error frame is forwarded, so its usage and other facts are read like those of any frame.
      if (facts) this.#take(facts)
      return 'end'
    }
    if (!facts) return 'forward'
    const action = this.#take(facts)
    if (this.#swallowUsage && this.#statesMore(facts.chunk) && action === 'swallow')
      this.replacement = withoutUsage(data)
    return action
  }

  protected pieceOf(data: string): FrameText | undefined {
    const facts = this.#readChunk(data)
    const choice = facts?.choices[0]
    const text = choice?.pieces[0]
    if (!facts || !choice || text === undefined || facts.choices.length > 1 || choice.pieces.length > 1)
      return undefined
    return facts.usage || facts.isError ? undefined : { index: choice.index, text }
  }

  protected isTerminator(data: string): boolean {
    return data.trim() === '[DONE]'
  }

  #readChunk(data: string): ChunkFacts | undefined {
    return readChunk(data, (index) => this.textBytes(index) === 0, this.#ofChoices)
  }

  #take(facts: ChunkFacts): FrameAction {
    this.usage = preferLaterUsage(this.usage, facts.usage)
    this.served = laterStatedService(this.served, statedTier(facts.chunk['service_tier']))
    this.names.note(facts.chunk['id'], facts.chunk['model'])
    if (this.#lacksUsage) this.#remember(facts)
    if (facts.isUsageChunk && this.#swallowUsage) return 'swallow'
    for (const { index, added, pieces, finished, reason, cites, error } of facts.choices) {
      recordReceivedMedia(added, this.arrived, this.elidedBytes)
      if (error) this.failAtEnd(error)
      if (cites) this.tools.note('cited', SEARCH_INFERRED_FROM_CITATION)
      this.#finished.set(index, finished || this.#finished.get(index) === true)
      if (finished) this.names.finish(index, reason)
      for (const piece of pieces) this.emit(index, piece)
    }
    return 'forward'
  }

  /** Notes the members of a chunk, and returns whether some were in no chunk before. */
  #statesMore(chunk: ChunkFacts['chunk']): boolean {
    let statesMore = false
    for (const [name, value] of Object.entries(chunk)) {
      if (IN_EVERY_STREAM.has(name) || value === null || this.#stated.get(name) === value) continue
      statesMore = true
      if (this.#stated.size < MAX_STATED) this.#stated.set(name, value)
    }
    return statesMore
  }

  #remember({ chunk: { id, object, created, model }, hasUsageObject }: ChunkFacts): void {
    this.#common ??= { id, object, created, model }
    if (hasUsageObject) this.#lacksUsage = false
  }
}

/**
 * Members that say nothing beside the text and the usage. `obfuscation` is padding, which is new in each chunk:
 * https://platform.openai.com/docs/api-reference/chat/create#chat-create-stream_options
 */
const IN_EVERY_STREAM: ReadonlySet<string> = new Set([
  'id',
  'object',
  'created',
  'model',
  'choices',
  'usage',
  'obfuscation',
])
const MAX_STATED = 32

/** The frame of a chunk without its `usage`. The other members keep their bytes. */
function withoutUsage(data: string): Buffer {
  const bytes = Buffer.from(data.replaceAll(/[\r\n]+/g, ' '))
  const edited = applyEdits(bytes, scanObject(bytes, RESPONSE_LIMITS), {
    remove: ['usage'],
    replace: new Map(),
  })
  return Buffer.concat([DATA, edited, FRAME_END])
}

const DATA = Buffer.from('data: ')
const FRAME_END = Buffer.from('\n\n')

/** The content of one choice in a chunk. */
interface ChunkChoice {
  readonly index: number
  /** The delta, or the whole message of a server that cannot stream. */
  readonly added: Fields | undefined
  /** The generated text in pieces, none of which is empty. */
  readonly pieces: readonly string[]
  readonly finished: boolean
  /** The finish reason as the upstream wrote it. */
  readonly reason: unknown
  /** Set if the choice ended for a reason that means a failure, or states an error. */
  readonly error: AnswerError | undefined
  /** Whether the choice cites a web page. */
  readonly cites: boolean
}

/** What the gateway needs to know about a chunk of a chat stream. */
interface ChunkFacts {
  /** The parsed chunk. */
  readonly chunk: Readonly<Record<string, unknown>>
  readonly choices: readonly ChunkChoice[]
  /** The usage, which may also be inside an error or next to it. */
  readonly usage: ReportedUsage | undefined
  /**
   * Whether `usage` is an object at the place where clients expect it, even if its values are not plausible.
   */
  readonly hasUsageObject: boolean
  /** Whether this is the chunk that `include_usage` requests: `choices` is empty and `usage` is an object. */
  readonly isUsageChunk: boolean
  readonly isError: boolean
}

/**
 * Reads the data of a chunk; undefined if it is not a JSON object. `isEmpty` states whether a choice has no text so far.
 */
function readChunk(
  data: string,
  isEmpty: (index: number) => boolean,
  ofChoices: UsageOfChoices,
): ChunkFacts | undefined {
  const chunk = parseRecord(data)
  if (!chunk) return undefined
  const choices = Array.isArray(chunk['choices']) ? chunk['choices'] : undefined
  const tellsUsage = asRecord(chunk['usage']) !== undefined
  return {
    chunk,
    choices: (choices ?? []).map((choice) => readChoice(choice, isEmpty)),
    usage: usageInChatReply(chunk, ofChoices),
    hasUsageObject: tellsUsage,
    isUsageChunk: choices?.length === 0 && tellsUsage,
    isError: isErrorObject(chunk),
  }
}

function readChoice(value: unknown, isEmpty: (index: number) => boolean): ChunkChoice {
  const choice = asRecord(value)
  const index = indexOfChoice(choice)
  const added = addedTo(choice, isEmpty(index))
  return {
    index,
    added,
    pieces: generatedText(added ?? completionAsMessage(choice)),
    cites: citesWebPage(added),
    reason: choice?.['finish_reason'],
    error: errorOfChoice(choice),
    finished: typeof choice?.['finish_reason'] === 'string' && choice['finish_reason'] !== '',
  }
}

/**
 * Reads what the gateway needs to know from a complete reply; never throws. The complete reply is parsed,
 * because JSON.parse is faster than searching for the members.
 */
export function usageOfReply(bytes: Buffer): ReplyFacts {
  const reply = parseRecord(bytes.toString()) ?? {}
  const choices = reply['choices']
  const error = errorInAnswer(reply, Array.isArray(choices))
  return {
    valid: Array.isArray(choices) && isReplyWith(error),
    hasUnknownEnd: Array.isArray(choices) && choices.some(hasUnknownEnd),
    usage: usageInChatReply(reply),
    served: statedTier(reply['service_tier']),
    ...(citesPageIn(choices) && { tools: [SEARCH_INFERRED_FROM_CITATION] }),
    error,
    names: () => namesIn(reply),
    text: () => textOf(choices),
    arrived: () => arrivedIn(choices),
  }
}

function hasUnknownEnd(choice: unknown): boolean {
  const reason = asRecord(choice)?.['finish_reason']
  return typeof reason === 'string' && reason !== '' && !endReasonOf(reason)
}

/** Id, model and finish reasons of a complete reply. */
function namesIn({ id, model, choices }: Readonly<Record<string, unknown>>): AnswerMetadata {
  const names = new AnswerMetadata()
  names.note(id, model)
  if (Array.isArray(choices))
    for (const [index, choice] of choices.entries()) names.finish(index, asRecord(choice)?.['finish_reason'])
  return names
}

function textOf(choices: unknown): string {
  if (!Array.isArray(choices)) return ''
  return choices
    .flatMap((value) => {
      const choice = asRecord(value)
      return generatedText(choice?.['message'] ?? completionAsMessage(choice))
    })
    .join('\n')
}

function arrivedIn(choices: unknown): ReceivedMedia {
  const arrived = new ReceivedMedia()
  if (Array.isArray(choices))
    for (const choice of choices) recordReceivedMedia(asRecord(asRecord(choice)?.['message']), arrived)
  return arrived
}

function citesPageIn(choices: unknown): boolean {
  return Array.isArray(choices) && choices.some((choice) => citesWebPage(asRecord(choice)?.['message']))
}
