import type { ConversionProtocol } from './protocols.ts'
import type { ToolUse } from './tool-use.ts'
import type { ArrivedMedia } from './received-media.ts'
import type { Conversation, Proof, SearchPart } from './conversation.ts'
import type { ReportedUsage } from './reported-usage.ts'
import type { Served } from './service-tier.ts'
import type { Fields } from './field.ts'
import { refuse } from './field-check.ts'

/** Whole reply in the form that all dialects share. */
export interface Reply {
  readonly id: string
  /** Model name as the upstream reports it. */
  readonly model: string
  readonly parts: readonly ReplyPart[]
  readonly stop: Stop
  /** The second and further choices, in order; absent if only one was requested. */
  readonly others?: readonly Choice[]
  /** Undefined if the upstream reported none, or an implausible one. */
  readonly usage: ReportedUsage | undefined
  /** What it states about how it was served; absent if only `usage` states it. */
  readonly served?: Served | undefined
  /** The provider's verdict about the prompt cache, as it came; absent if there is none. */
  readonly cacheVerdict?: object
  /** Uses of the provider's tools that it reports; absent if there are none. */
  readonly tools?: readonly ToolUse[]
  /** Audio and images in it; absent if there are none. */
  readonly arrived?: ArrivedMedia
}

/** One of several replies to a request. */
export type Choice = Pick<Reply, 'parts' | 'stop'>

/** Part of a reply. */
export type ReplyPart =
  | ReplyText
  | { readonly kind: 'thinking'; readonly text: string; readonly proof?: Proof }
  | {
      readonly kind: 'tool-call'
      readonly id: string
      readonly name: string
      /** JSON text as the model wrote it; empty means `{}`. */
      readonly input: string
    }
  | SearchPart
  | { readonly kind: 'opaque'; readonly protocol: ConversionProtocol; readonly value: unknown }

/** Text of a reply. */
export interface ReplyText {
  readonly kind: 'text'
  readonly text: string
  /** The text without links that contain the data of media; absent if it has none. */
  readonly withoutMedia?: string
  readonly citations?: readonly Citation[]
  readonly logprobs?: Logprobs
  /** Whether it is a refusal by the model, in dialects that separate refusals from other text. */
  readonly refusal?: true
}

/**
 * Log probabilities of a text's tokens in the order of the text, as the upstream wrote them. Chat and
 * responses share the form `{token, logprob, bytes, top_logprobs}`.
 */
export type Logprobs = readonly unknown[]

/** End of a reply. */
export interface Stop {
  readonly reason: StopReason
  /** Stop sequence that the model met, if the upstream reports it. */
  readonly sequence?: string
}

/** Stop reasons that several dialects share. `pause` is a reply that the client should continue. */
export type StopReason = 'end' | 'length' | 'stop-sequence' | 'tool-calls' | 'refusal' | 'pause'

/**
 * Event of a stream in the form that all dialects share. In each choice (`choiceOf`) parts are numbered from
 * 0 in the order of their starts. A part starts, grows, and ends. Parts may be interleaved; an encoder orders
 * them if its dialect requires that.
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
      /** Whether the text is a link that contains the data of media, which are charged as media. */
      readonly isMedia?: true
    }
  /** Source of a text; may come before the text. */
  | { readonly kind: 'citation'; readonly index: number; readonly citation: Citation }
  | { readonly kind: 'thinking'; readonly index: number; readonly text: string }
  | { readonly kind: 'proof'; readonly index: number; readonly proof: Proof }
  /** Piece of the JSON text of a tool call's input. */
  | { readonly kind: 'tool-input'; readonly index: number; readonly text: string }
  | { readonly kind: 'part-end'; readonly index: number }
  /** Keep-alive without content. */
  | { readonly kind: 'ping' }
  /** The reply is complete; `usage` is final. */
  | {
      readonly kind: 'end'
      readonly stop: Stop
      /** Stops of the second and further choices. */
      readonly others?: readonly Stop[]
      readonly usage: ReportedUsage | undefined
    }
  /** Failure that the upstream reports in mid-stream; `code` is unchanged. */
  | {
      readonly kind: 'failure'
      /** Undefined if the upstream reports none. */
      readonly type: string | undefined
      readonly message: string
      readonly code?: unknown
      /** HTTP status that the upstream reports. */
      readonly status?: number | undefined
    }

/** Part at its start. */
export type StartedPart =
  | { readonly kind: 'text'; readonly refusal?: true }
  | { readonly kind: 'thinking' }
  | { readonly kind: 'tool-call'; readonly id: string; readonly name: string }
  /** A search is complete when it starts. */
  | SearchPart
  | { readonly kind: 'opaque'; readonly protocol: ConversionProtocol; readonly value: unknown }

/** Web page cited by the text of a reply. */
export interface Citation {
  readonly url: string
  /** Empty if the upstream reports none. */
  readonly title: string
  /** Position in the text of the part; undefined means the whole part. */
  readonly span?: Span
}

/** Range of a text in Unicode code points, the unit of chat and responses; `end` is exclusive. */
export interface Span {
  readonly start: number
  readonly end: number
}

/**
 * Reads the members of a `url_citation`, which chat and responses share; undefined if it has no URL. Some
 * upstreams omit position and title.
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

/** Renders a `url_citation` for a part of `length` that begins at `base` in its text. */
export function urlCitation({ url, title, span }: Citation, length: number, base = 0): object {
  return { start_index: base + (span?.start ?? 0), end_index: base + (span?.end ?? length), title, url }
}

/**
 * Shifts a citation whose position is relative to a longer text, for the part that begins at `base` in that
 * text.
 */
export function shiftCitation(citation: Citation, base: number): Citation {
  const { span } = citation
  if (!span || base === 0) return citation
  return { ...citation, span: { start: Math.max(0, span.start - base), end: Math.max(0, span.end - base) } }
}

/**
 * Counts the code points of a text. A surrogate pair that is split between two texts is counted with its
 * first half.
 */
export function codePointsIn(text: string): number {
  let count = text.length
  for (let i = 0; i < text.length; i++) if ((text.charCodeAt(i) & 0xfc00) === 0xdc00) count--
  return count
}

function isIndex(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** The generated text of a reply with all of its choices, for counting tokens. */
export function replyText(reply: Reply): string {
  return [reply, ...(reply.others ?? [])].map(choiceText).join('\n')
}

function choiceText({ parts }: Choice): string {
  return parts
    .map((part) => {
      switch (part.kind) {
        case 'text':
          return part.withoutMedia ?? part.text
        case 'thinking':
          return part.text
        case 'tool-call':
          return `${part.name}\n${part.input}`
        case 'search':
        case 'opaque':
          return ''
      }
    })
    .join('\n')
}

/** Part whose text is being collected. */
interface GrowingPart {
  readonly started: StartedPart
  text: string
  /** The text without links to media; undefined if it has none. */
  withoutMedia: string | undefined
  proof: Extract<ReplyEvent, { kind: 'proof' }>['proof'] | undefined
  readonly citations: Citation[]
  readonly logprobs: unknown[]
}

/** Combines the events of one choice into its parts. */
export function foldParts(events: Iterable<ReplyEvent>, choice = 0): readonly ReplyPart[] {
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
  return [...parts]
    .filter(([index]) => choiceOf(index) === choice)
    .sort(([a], [b]) => a - b)
    .map(([, part]) => partOf(part))
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
 * Size of the range of part numbers that each choice of a stream has; that of the first choice begins at 0.
 */
const PARTS_OF_CHOICE = 2 ** 24

/** Number of choices that a client requests, for spreading into a conversation. */
export function readChoiceCount(
  field: 'n' | 'candidateCount',
  count: unknown,
): Pick<Conversation, 'choices'> {
  return typeof count === 'number' && count > 1 ? { choices: { field, count } } : {}
}

/** Number of choices that are requested. */
export function choicesOf({ choices }: Pick<Conversation, 'choices'>): number {
  return choices?.count ?? 1
}

/** Throws `invalid_request` if several choices are requested, because the target dialect has only one. */
export function refuseChoices({ choices }: Pick<Conversation, 'choices'>): void {
  if (choices) refuse(choices.field, `1, as this model's channel gives one answer`, 'a larger number')
}

/** Index from 0 of the choice to which a part of a stream belongs. */
export function choiceOf(part: number): number {
  return Math.floor(part / PARTS_OF_CHOICE)
}

/** Renumbers an event of one choice, so that its part has a unique number among all choices. */
export function renumberForChoice(choice: number, event: ReplyEvent): ReplyEvent {
  return 'index' in event ? { ...event, index: choice * PARTS_OF_CHOICE + event.index } : event
}
