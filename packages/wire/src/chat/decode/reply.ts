import { errorInAnswer, FailedAnswer } from '../../answer-error.ts'
import { WireError } from '../../wire-error.ts'
import { ReceivedMedia } from '../../received-media.ts'
import {
  type Choice,
  codePointsIn,
  combineEvents,
  type Logprobs,
  shiftCitation,
  readUrlCitation,
  type Reply,
  type ReplyEvent,
  type Span,
  type StartedPart,
} from '../../reply.ts'
import { asRecord, stringOrEmpty } from '../../json/record.ts'
import type { Fields } from '../../field.ts'
import { SEARCH_INFERRED_FROM_CITATION, citesWebPage, pictureUrl, recordReceivedMedia } from '../answer.ts'
import { SignedDetails } from '../reasoning-details.ts'
import { sourceMarksIn, sourcesIn } from '../sources.ts'
import { ToolCallDecoder, parseChatReply } from './tool-call-decoder.ts'
import { matchedStopOf, readChatStop } from '../stop-reasons.ts'
import { statedServiceMember } from '../../service-tier.ts'
import { usageInChatReply } from '../usage.ts'
import type { CopyablePart } from '../../frame-writer.ts'
import type { FrameTextMatch } from '../../sse/frame-template.ts'

/** Decodes a whole reply with up to `choices` choices. Throws `upstream_error` if it is not a reply. */
export function decodeReply(bytes: Buffer, choices = 1): Reply {
  const reply = parseChatReply(bytes.toString())
  const choice = firstChoice(reply?.['choices'])
  const error = errorInAnswer(reply, choice !== undefined)
  const id = stringOrEmpty(reply?.['id'])
  const arrived = new ReceivedMedia()
  const first = reply && choice && read(choice, id, arrived, reply)
  const found = Array.from({ length: choices - 1 }, (_, i) => choiceAt(reply?.['choices'], i + 1))
  const others = found
    .filter((other) => other !== undefined)
    .map((other, i) => read(other, `${id}_${i + 1}`, arrived, reply ?? {}))
  if (error) {
    const parts = [first, ...others].flatMap((one) => one?.parts ?? [])
    throw new FailedAnswer(error, reply && usageInChatReply(reply), parts)
  }
  if (!reply || !first)
    throw new WireError('upstream_error', 'The upstream sent no response that could be understood.')
  return {
    id,
    model: stringOrEmpty(reply['model']),
    ...first,
    usage: usageInChatReply(reply),
    ...statedServiceMember(reply['service_tier']),
    ...(others.length > 0 && { others }),
    ...(citesWebPage(choice?.['message']) && { tools: [SEARCH_INFERRED_FROM_CITATION] }),
    ...(!arrived.isEmpty && { arrived }),
  }
}

function read(choice: Fields, id: string, arrived: ReceivedMedia, reply: Fields): Choice {
  recordReceivedMedia(asRecord(choice['message']), arrived)
  const events: ReplyEvent[] = []
  const parts = new ReplyPartsDecoder((event) => events.push(event))
  parts.setReplyId(id)
  parts.noteSources(reply)
  parts.read(withCallIndexes(asRecord(choice['message']) ?? {}), logprobsOf(choice))
  parts.end()
  return {
    parts: combineEvents(events),
    stop: readChatStop(finishReasonOf(choice), parts, matchedStopOf(choice)),
  }
}

/** Numbers the calls of a whole message, which are complete. Some servers give all of them the same id. */
function withCallIndexes(message: Fields): Fields {
  const calls = message['tool_calls']
  if (!Array.isArray(calls)) return message
  const numbered = calls.map((call, index) =>
    asRecord(asRecord(call)?.['function'])?.['name'] ? { ...call, index } : call,
  )
  return { ...message, tool_calls: numbered }
}

/** Finds the first choice: the one with index 0, or without an index. */
export function firstChoice(choices: unknown): Fields | undefined {
  return choiceAt(choices, 0)
}

/** Finds the choice with this index; a choice that states no index has index 0. */
export function choiceAt(choices: unknown, number: number): Fields | undefined {
  if (!Array.isArray(choices)) return undefined
  for (const value of choices) {
    const choice = asRecord(value)
    if (choice && (choice['index'] ?? 0) === number) return choice
  }
  return undefined
}

/** Returns a choice's finish reason; undefined if it has none. */
export function finishReasonOf(choice: Fields): string | undefined {
  return stringOrEmpty(choice['finish_reason']) || undefined
}

/** Returns the log probabilities of the tokens of a choice's content; undefined if it has none. */
export function logprobsOf(choice: Fields): Logprobs | undefined {
  const tokens = asRecord(choice['logprobs'])?.['content']
  return Array.isArray(tokens) && tokens.length > 0 ? tokens : undefined
}

/** Kind of text in a message. */
type MessageTextKind = 'text' | 'thinking' | 'refusal'

const STARTS = {
  text: { kind: 'text' },
  thinking: { kind: 'thinking' },
  refusal: { kind: 'text', refusal: true },
} as const satisfies Record<MessageTextKind, StartedPart>

/** Index of a `function_call`, which does not state one. */
const LEGACY_INDEX = -1

/**
 * Converts a chat reply, whole or in deltas, to parts. Chat does not mark the end of a part, so a part ends
 * when text of another kind begins.
 */
export class ReplyPartsDecoder {
  readonly #emit: (event: ReplyEvent) => void
  readonly #calls: ToolCallDecoder
  /** Set once the reply has reasoning details. */
  #signed: SignedDetails | undefined
  /** The pages that the answer states for all its texts, and the indexes of those that were cited. */
  #sources: ReturnType<typeof sourcesIn> = []
  #citedSources: Set<number> | undefined
  /** The growing text, in which marks of sources are found; undefined if no source was known when it began. */
  #text: string | undefined
  /** Whether the upstream states citations of the texts. */
  #hasAnnotations = false
  #replyId = ''
  #nextIndex = 0
  /** The part whose text is still growing; `base` is its offset in the reply's content, in code points. */
  #growing: { readonly kind: MessageTextKind; readonly index: number; readonly base: number } | undefined
  /** Length of the content so far, in code points, because citations state positions in them. */
  #contentLength = 0

  constructor(emit: (event: ReplyEvent) => void) {
    this.#emit = emit
    this.#calls = new ToolCallDecoder({
      emit,
      begin: () => {
        this.#endGrowing()
        return this.#nextIndex++
      },
      mintId: (part) => `call_${this.#replyId.replaceAll(/[^\w-]/g, '_')}_${part}`,
    })
  }

  /** Whether no part has begun. */
  get isEmpty(): boolean {
    return this.#nextIndex === 0
  }

  get calledTools(): boolean {
    return this.#calls.hasCalls
  }

  /**
   * Sets the reply's id. Tool calls without an id get one that is derived from it, so that the ids in two
   * turns differ.
   */
  setReplyId(id: string): void {
    this.#replyId = id
  }

  /** Notes the sources that the answer or a chunk states beside its choices. A later list replaces an earlier one. */
  noteSources(answer: Fields): void {
    const sources = sourcesIn(answer)
    if (sources.length > 0) this.#sources = sources
  }

  /**
   * Reads a message or a delta: thinking first, then content, then calls. `logprobs` belong to the tokens of
   * its content.
   */
  read(message: Fields, logprobs?: Logprobs): void {
    const thought = message['reasoning_content'] || message['reasoning']
    if (typeof thought === 'string' && thought !== '') this.grow('thinking', thought)
    else this.#readDetails(message['reasoning_details'])
    if (message['reasoning_details']) (this.#signed ??= new SignedDetails()).add(message['reasoning_details'])
    this.#readContent(message['content'], logprobs)
    // OpenRouter's place for pictures: https://openrouter.ai/docs/features/multimodal/image-generation
    if (Array.isArray(message['images']))
      for (const image of message['images']) this.#readPicture(asRecord(image))
    this.#readRefusal(message['refusal'])
    const transcript = asRecord(message['audio'])?.['transcript']
    if (typeof transcript === 'string') this.grow('text', transcript)
    this.#readAnnotations(message['annotations'])
    const calls = message['tool_calls']
    if (Array.isArray(calls)) for (const call of calls) this.#readCall(asRecord(call))
    const legacy = asRecord(message['function_call'])
    if (legacy && (legacy['name'] || legacy['arguments']))
      this.#readCall({ index: LEGACY_INDEX, function: legacy })
  }

  /**
   * Adds text to the current part of the reply. If that part has another kind, it ends, and a new part
   * begins.
   */
  grow(kind: MessageTextKind, text: string, logprobs?: Logprobs): void {
    // A token with log probabilities may have no text, if it is a fragment of a character.
    if (text === '' && !logprobs) return
    if (this.#growing?.kind !== kind) {
      this.#endGrowing()
      this.#calls.endComplete()
      this.#growing = { kind, index: this.#nextIndex++, base: this.#contentLength }
      this.#text = kind === 'text' && this.#sources.length > 0 ? '' : undefined
      this.#emit({ kind: 'part-start', index: this.#growing.index, part: STARTS[kind] })
    }
    const { index } = this.#growing
    if (kind === 'thinking') return this.#emit({ kind, index, text })
    if (kind === 'text') this.#contentLength += codePointsIn(text)
    if (this.#text !== undefined) this.#text += text
    this.#emit(logprobs ? { kind: 'text', index, text, logprobs } : { kind: 'text', index, text })
  }

  /**
   * Returns the growing part if it is of this kind, so that the text can be copied as bytes; otherwise
   * undefined.
   */
  copy(kind: 'text' | 'thinking', { codePoints }: FrameTextMatch): CopyablePart | undefined {
    if (this.#growing?.kind !== kind || this.#text !== undefined) return undefined
    if (kind === 'text') this.#contentLength += codePoints
    return { kind, index: this.#growing.index }
  }

  /**
   * Returns the part of the call with this index, so that its arguments can be copied as bytes; undefined if
   * the call has not begun.
   */
  copyArguments(index: number, bytes: Buffer, match: FrameTextMatch): CopyablePart | undefined {
    return this.#calls.copyArguments(index, bytes, match)
  }

  /** Adds arguments to the call with this index. */
  growCall(index: number, text: string): void {
    this.#calls.readArguments(index, text)
  }

  /** Ends all parts of the reply that are still open, and adds what the upstream signed. */
  end(): void {
    this.#endGrowing(true)
    this.#calls.endAll()
    const part = this.#signed?.part
    if (!part) return
    const index = this.#nextIndex++
    this.#emit({ kind: 'part-start', index, part })
    this.#emit({ kind: 'part-end', index })
  }

  #readCall(call: Fields | undefined): void {
    if (call) this.#calls.read(call)
  }

  /**
   * Reads content: a text, or a list of parts with text and thinking, whose thinking may itself be a list of
   * parts.
   */
  #readContent(content: unknown, logprobs: Logprobs | undefined): void {
    if (typeof content === 'string') return this.grow('text', content, logprobs)
    if (!Array.isArray(content)) return undefined
    for (const value of content) {
      const part = asRecord(value)
      if (!part) continue
      if (part['thinking'] !== undefined) this.#readThoughts(part['thinking'])
      else if (typeof part['text'] === 'string') this.grow('text', part['text'])
      else if (part['image_url'] !== undefined) this.#readPicture(part)
      else this.#readRefusal(part['refusal'])
    }
    return undefined
  }

  /** Emits a picture as a text that links to it, because most clients support nothing else. */
  #readPicture(part: Fields | undefined): void {
    const url = pictureUrl(part)
    if (url === '') return
    this.#endGrowing()
    this.#calls.endComplete()
    const index = this.#nextIndex++
    this.#emit({ kind: 'part-start', index, part: STARTS.text })
    this.#emit({ kind: 'text', index, text: `![image](${url})`, isMedia: true })
    this.#emit({ kind: 'part-end', index })
  }

  #readThoughts(thinking: unknown): void {
    const thoughts = Array.isArray(thinking) ? thinking.map((part) => asRecord(part)?.['text']) : [thinking]
    for (const thought of thoughts) if (typeof thought === 'string') this.grow('thinking', thought)
  }

  #readRefusal(refusal: unknown): void {
    if (typeof refusal === 'string') this.grow('refusal', refusal)
  }

  /** Reads reasoning from `reasoning_details`, for providers that send it only there. */
  #readDetails(details: unknown): void {
    if (!Array.isArray(details)) return
    for (const detail of details) {
      const thought = asRecord(detail)?.['text'] ?? asRecord(detail)?.['summary']
      if (typeof thought === 'string') this.grow('thinking', thought)
    }
  }

  /** Reads citations of the growing text. Citations in a delta without text belong to the text before it. */
  #readAnnotations(annotations: unknown): void {
    if (!Array.isArray(annotations) || this.#growing?.kind !== 'text') return
    const { index, base } = this.#growing
    for (const value of annotations) {
      const annotation = asRecord(value)
      if (annotation?.['type'] !== 'url_citation') continue
      const citation = readUrlCitation(asRecord(annotation['url_citation']))
      if (!citation) continue
      this.#hasAnnotations = true
      this.#emit({ kind: 'citation', index, citation: shiftCitation(citation, base) })
    }
  }

  /** Cites the sources that the growing text marks. The whole last text cites those without a mark. */
  #citeSources(index: number, isLast: boolean): void {
    const cite = (number: number, span?: Span): void => {
      const source = this.#sources[number]
      if (!source) return
      ;(this.#citedSources ??= new Set()).add(number)
      this.#emit({ kind: 'citation', index, citation: { ...source, ...(span && { span }) } })
    }
    for (const { source, span } of sourceMarksIn(this.#text ?? '')) cite(source, span)
    if (!isLast) return
    for (const number of this.#sources.keys()) if (!this.#citedSources?.has(number)) cite(number)
  }

  #endGrowing(isLast = false): void {
    if (this.#growing?.kind === 'text' && !this.#hasAnnotations)
      this.#citeSources(this.#growing.index, isLast)
    if (this.#growing) this.#emit({ kind: 'part-end', index: this.#growing.index })
    this.#growing = undefined
  }
}
