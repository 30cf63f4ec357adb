import type { FailureCulprit } from './end-reasons.ts'
import type { ConversionProtocol } from './protocols.ts'
import type { ToolUse } from './tool-use.ts'
import type { ReceivedMedia } from './received-media.ts'
import type { Conversation, ProviderSignature, SearchPart } from './conversation.ts'
import type { ReportedUsage } from './reported-usage.ts'
import type { StatedService } from './service-tier.ts'
import { providerToolTexts } from './executed-code.ts'
import type { Fields } from './field.ts'
import { refuseField } from './field-check.ts'

/** A complete reply, independent of the protocol. */
export interface Reply {
  readonly id: string
  /** Model name as the upstream reports it. */
  readonly model: string
  readonly parts: readonly ReplyPart[]
  readonly stop: Stop
  /** The second and further choices, in order; absent if only one was requested. */
  readonly others?: readonly Choice[]
  /** Usage; undefined if the upstream reported none or an implausible one. */
  readonly usage: ReportedUsage | undefined
  /** Service tier and region that the reply states; absent if only `usage` states them. */
  readonly served?: StatedService | undefined
  /** What the provider says about the prompt cache, unchanged; absent if it says nothing. */
  readonly cacheVerdict?: object
  /** Uses of the provider's tools; absent if there are none. */
  readonly tools?: readonly ToolUse[]
  /** Audio and images in the reply; absent if there are none. */
  readonly arrived?: ReceivedMedia
}

/** One of several alternative replies to a request. */
export type Choice = Pick<Reply, 'parts' | 'stop'>

export type ReplyPart =
  | ReplyText
  | { readonly kind: 'thinking'; readonly text: string; readonly proof?: ProviderSignature }
  | {
      readonly kind: 'tool-call'
      readonly id: string
      readonly name: string
      /** JSON text of the input as the model wrote it; empty means `{}`. */
      readonly input: string
    }
  | SearchPart
  | { readonly kind: 'opaque'; readonly protocol: ConversionProtocol; readonly value: unknown }

export interface ReplyText {
  readonly kind: 'text'
  readonly text: string
  /**
   * The text without links that contain media data, which are charged as media; absent if there are no such
   * links.
   */
  readonly withoutMedia?: string
  readonly citations?: readonly Citation[]
  readonly logprobs?: Logprobs
  /** Whether the text is a refusal. Only in protocols that separate refusals from other text. */
  readonly refusal?: true
}

/**
 * Log probabilities of the tokens of a text, in order, as the upstream wrote them. Chat and responses both
 * use `{token, logprob, bytes, top_logprobs}`.
 */
export type Logprobs = readonly unknown[]

/** How a reply ended. */
export interface Stop {
  readonly reason: StopReason
  /** The stop sequence that ended the reply, if the upstream reports it. */
  readonly sequence?: string
  /** Set if the upstream reported a reason that is not known. */
  readonly isUnknown?: true
  /** The provider's own words about a refusal. The model has not written them, so they are no output that is counted. */
  readonly words?: string
}

/** The parts of a choice and the provider's words about its end, for protocols that have a part for refusals. */
export function partsWithWords({ parts, stop: { words } }: Choice): readonly ReplyPart[] {
  return words === undefined ? parts : [...parts, { kind: 'text', text: words, refusal: true }]
}

/**
 * Reasons why a reply ended, independent of the protocol. With `pause`, the client should send a request to
 * continue the reply.
 */
export type StopReason = 'end' | 'length' | 'stop-sequence' | 'tool-calls' | 'refusal' | 'pause'

/**
 * An event of a stream, independent of the protocol. In each choice (`choiceOfPart`), parts are numbered from 0
 * in the order in which they start. A part starts, grows and ends. Several parts may grow at the same time;
 * an encoder puts them in order if its protocol requires that.
 */
export type ReplyEvent =
  | {
      readonly kind: 'start'
      readonly id: string
      readonly model: string
      readonly usage: ReportedUsage | undefined
    }
  | { readonly kind: 'part-start'; readonly index: number; readonly part: StartedPart }
  | {
      readonly kind: 'text'
      readonly index: number
      readonly text: string
      readonly logprobs?: Logprobs
      /**
       * Whether the text is a link that contains media data. Such links are charged as media, not as text.
       */
      readonly isMedia?: true
    }
  /** A source that a text cites; it may arrive before the text. */
  | { readonly kind: 'citation'; readonly index: number; readonly citation: Citation }
  | { readonly kind: 'thinking'; readonly index: number; readonly text: string }
  | { readonly kind: 'proof'; readonly index: number; readonly proof: ProviderSignature }
  /** A piece of the JSON text of a tool call's input. */
  | { readonly kind: 'tool-input'; readonly index: number; readonly text: string }
  | { readonly kind: 'part-end'; readonly index: number }
  /** An event without content that keeps the connection alive. */
  | { readonly kind: 'ping' }
  /** The end of the reply. `usage` is complete. */
  | {
      readonly kind: 'end'
      readonly stop: Stop
      /** How the second and further choices ended. */
      readonly others?: readonly Stop[]
      readonly usage: ReportedUsage | undefined
      /** Service tier and region that the upstream stated; absent if only `usage` states them. */
      readonly served?: StatedService | undefined
    }
  /** An error that the upstream reports within the stream. `code` is unchanged. */
  | {
      readonly kind: 'failure'
      /** Type of the error; undefined if the upstream states none. */
      readonly type: string | undefined
      readonly message: string
      readonly code?: unknown
      /** HTTP status that the upstream states for the error. */
      readonly status?: number | undefined
      /** Set if the reply ended for a reason that means a failure: who caused it. */
      readonly culprit?: FailureCulprit | undefined
    }

/** A part of a reply at its start, without the content that arrives later. */
export type StartedPart =
  | { readonly kind: 'text'; readonly refusal?: true }
  | { readonly kind: 'thinking' }
  | { readonly kind: 'tool-call'; readonly id: string; readonly name: string }
  /** A search is complete when its part starts. */
  | SearchPart
  | { readonly kind: 'opaque'; readonly protocol: ConversionProtocol; readonly value: unknown }

/** A web page cited by the text of a reply. */
export interface Citation {
  readonly url: string
  /** Title of the page; empty if the upstream states none. */
  readonly title: string
  /** Cited range in the text of the part; undefined for the whole part. */
  readonly span?: Span
}

/** Range of a text in Unicode code points, as in chat and responses. `end` is not included. */
export interface Span {
  readonly start: number
  readonly end: number
}

/**
 * Reads the members of a `url_citation`, which chat and responses have in common; undefined if it has no URL.
 * Some upstreams leave out position and title.
 */
export function readUrlCitation(value: Fields | undefined): Citation | undefined {
  const url = value?.['url']
  if (typeof url !== 'string' || url === '') return undefined
  const title = value?.['title']
  const start = value?.['start_index']
  const end = value?.['end_index']
  const hasSpan = isIndex(start) && isIndex(end) && start <= end
  return { url, title: typeof title === 'string' ? title : '', ...(hasSpan && { span: { start, end } }) }
}

/**
 * Renders a `url_citation` for a part that has `length` code points and begins at `base` in the whole text.
 */
export function urlCitation({ url, title, span }: Citation, length: number, base = 0): object {
  return { start_index: base + (span?.start ?? 0), end_index: base + (span?.end ?? length), title, url }
}

/** A citation of a part of `length` code points, with its position in a longer text in which the part begins at `base`. */
export function placedCitation(citation: Citation, length: number, base: number): Citation {
  const { start, end } = citation.span ?? { start: 0, end: length }
  return { ...citation, span: { start: base + start, end: base + end } }
}

/**
 * Adapts a citation whose position is relative to a longer text to the part that begins at `base` in that
 * text.
 */
export function shiftCitation(citation: Citation, base: number): Citation {
  const { span } = citation
  if (!span || base === 0) return citation
  return { ...citation, span: { start: Math.max(0, span.start - base), end: Math.max(0, span.end - base) } }
}

/**
 * Counts the code points of a text. If a surrogate pair is split between two texts, it is counted in the
 * first one.
 */
export function codePointsIn(text: string): number {
  let count = text.length
  for (let i = 0; i < text.length; i++) if ((text.charCodeAt(i) & 0xfc00) === 0xdc00) count--
  return count
}

function isIndex(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** The generated text of all choices of a reply, for counting tokens. */
export function replyText(reply: Reply): string {
  return [reply, ...(reply.others ?? [])].map(({ parts }) => textOfParts(parts)).join('\n')
}

/** The generated text of the parts of a choice. */
export function textOfParts(parts: readonly ReplyPart[]): string {
  return parts
    .map((part) => {
      switch (part.kind) {
        case 'text':
          return part.withoutMedia ?? part.text
        case 'thinking':
          return part.text
        case 'tool-call':
          return `${part.name}\n${part.input}`
        case 'opaque':
          return providerToolTexts(part.value).join('\n')
        case 'search':
          return ''
      }
    })
    .join('\n')
}

/** A part of a reply whose content is collected from events. */
interface GrowingPart {
  readonly started: StartedPart
  text: string
  /** The text without links that contain media data; undefined if there are no such links. */
  withoutMedia: string | undefined
  proof: Extract<ReplyEvent, { kind: 'proof' }>['proof'] | undefined
  readonly citations: Citation[]
  readonly logprobs: unknown[]
}

/** Builds the parts of one choice from its events. */
export function combineEvents(events: Iterable<ReplyEvent>, choice = 0): readonly ReplyPart[] {
  return combineChoices(events)[choice] ?? []
}

/** Builds the parts of all choices from their events. A choice without a part is empty. */
export function combineChoices(events: Iterable<ReplyEvent>): readonly (readonly ReplyPart[])[] {
  const parts = new Map<number, GrowingPart>()
  for (const event of events) {
    switch (event.kind) {
      case 'part-start':
        parts.set(event.index, {
          started: event.part,
          text: '',
          withoutMedia: undefined,
          proof: undefined,
          citations: [],
          logprobs: [],
        })
        break
      case 'text':
      case 'thinking':
      case 'tool-input': {
        const part = parts.get(event.index)
        if (!part) break
        const isMedia = event.kind === 'text' && event.isMedia
        if (isMedia) part.withoutMedia ??= part.text
        else if (part.withoutMedia !== undefined) part.withoutMedia += event.text
        part.text += event.text
        if (event.kind === 'text' && event.logprobs) part.logprobs.push(...event.logprobs)
        break
      }
      case 'citation':
        parts.get(event.index)?.citations.push(event.citation)
        break
      case 'proof': {
        const part = parts.get(event.index)
        if (part) part.proof = event.proof
        break
      }
      case 'start':
      case 'end':
      case 'part-end':
      case 'ping':
      case 'failure':
    }
  }
  const choices: ReplyPart[][] = []
  for (const [index, part] of [...parts].sort(([a], [b]) => a - b)) {
    const choice = choiceOfPart(index)
    while (choices.length <= choice) choices.push([])
    choices[choice]?.push(partOf(part))
  }
  return choices
}

function partOf({ started, text, withoutMedia, proof, citations, logprobs }: GrowingPart): ReplyPart {
  switch (started.kind) {
    case 'text':
      return {
        kind: 'text',
        text,
        ...(withoutMedia !== undefined && { withoutMedia }),
        ...(citations.length > 0 && { citations }),
        ...(logprobs.length > 0 && { logprobs }),
        ...(started.refusal && { refusal: true }),
      }
    case 'thinking':
      return { kind: 'thinking', text, ...(proof && { proof }) }
    case 'tool-call':
      return { ...started, input: text }
    case 'search':
    case 'opaque':
      return started
  }
}

/**
 * Number of part indexes that are reserved for each choice of a stream. The indexes of the first choice begin
 * at 0.
 */
const PARTS_OF_CHOICE = 2 ** 24

/** Number of choices that a client requests, as an object to spread into a conversation. */
export function readChoiceCount(
  field: 'n' | 'candidateCount',
  count: unknown,
): Pick<Conversation, 'choices'> {
  return typeof count === 'number' && count > 1 ? { choices: { field, count } } : {}
}

export function requestedChoiceCount({ choices }: Pick<Conversation, 'choices'>): number {
  return choices?.count ?? 1
}

/** Throws `invalid_request` if several choices are requested, because the target protocol has only one. */
export function refuseSeveralChoices({ choices }: Pick<Conversation, 'choices'>): void {
  if (choices) refuseField(choices.field, `1, as this model's channel gives one answer`, 'a larger number')
}

/** Index of the choice (from 0) to which a part of a stream belongs. */
export function choiceOfPart(part: number): number {
  return Math.floor(part / PARTS_OF_CHOICE)
}

/** Changes the index of the part in an event, so that no part of another choice has the same index. */
export function withUniquePartIndex(choice: number, event: ReplyEvent): ReplyEvent {
  return 'index' in event ? { ...event, index: choice * PARTS_OF_CHOICE + event.index } : event
}
