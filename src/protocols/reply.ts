import type { ConversionProtocol } from '../domain/protocols.ts'
import type { ToolUse } from '../domain/tool-use.ts'
import type { ArrivedMedia } from './arrived-media.ts'
import type { Citation } from './citation.ts'
import type { Proof } from './conversation.ts'
import type { SearchPart } from './provider-search.ts'
import type { ReportedUsage } from './reported-usage.ts'

/** Whole reply in the form that all dialects share. */
export interface Reply {
  readonly id: string
  /** Model name as the upstream states it. */
  readonly model: string
  readonly parts: readonly ReplyPart[]
  readonly stop: Stop
  /** Choices behind the first, in their order; absent where one was asked for. */
  readonly others?: readonly Choice[]
  /** Undefined if the upstream reported none, or none that is credible. */
  readonly usage: ReportedUsage | undefined
  /** Uses of the provider's tools that it shows; absent without any. */
  readonly tools?: readonly ToolUse[]
  /** Sound and pictures in it; absent without any. */
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
      /** JSON text that the model wrote; empty means `{}`. */
      readonly input: string
    }
  | SearchPart
  | { readonly kind: 'opaque'; readonly protocol: ConversionProtocol; readonly value: unknown }

/** Text of a reply. */
export interface ReplyText {
  readonly kind: 'text'
  readonly text: string
  /** The text without links that have the data of media in them; absent without any. */
  readonly withoutMedia?: string
  readonly citations?: readonly Citation[]
  readonly logprobs?: Logprobs
  /** Words in which the model declined, of a dialect that sets them apart from other text. */
  readonly refusal?: true
}

/**
 * Log probabilities of a text's tokens, in the order of the text, as the upstream wrote them: chat and
 * responses share the form `{token, logprob, bytes, top_logprobs}`.
 */
export type Logprobs = readonly unknown[]

/** End of a reply. */
export interface Stop {
  readonly reason: StopReason
  /** Stop sequence that was met, if the upstream states it. */
  readonly sequence?: string
}

/** Stop reasons that several dialects share; `pause` is a reply that is to be continued. */
export type StopReason = 'end' | 'length' | 'stop-sequence' | 'tool-calls' | 'refusal' | 'pause'

/**
 * Event of a stream in the form that all dialects share. Parts are numbered from 0 in the order of their
 * starts, in each choice (`choiceOf`); a part starts, grows, and ends. Parts may be interleaved; an encoder
 * orders them where its dialect requires that.
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
      /** Whether the text is a link with the data of media in it, which count as what they are. */
      readonly isMedia?: true
    }
  /** Source of a text; may come before its text. */
  | { readonly kind: 'citation'; readonly index: number; readonly citation: Citation }
  | { readonly kind: 'thinking'; readonly index: number; readonly text: string }
  | { readonly kind: 'proof'; readonly index: number; readonly proof: Proof }
  /** Piece of the JSON text of a tool call's input. */
  | { readonly kind: 'tool-input'; readonly index: number; readonly text: string }
  | { readonly kind: 'part-end'; readonly index: number }
  /** Sign of life without content. */
  | { readonly kind: 'ping' }
  /** The reply is complete; `usage` is final. */
  | {
      readonly kind: 'end'
      readonly stop: Stop
      /** Stops of the choices behind the first. */
      readonly others?: readonly Stop[]
      readonly usage: ReportedUsage | undefined
    }
  /** Failure that the upstream reports in mid-stream; `code` as it came. */
  | {
      readonly kind: 'failure'
      /** Undefined where the upstream states none. */
      readonly type: string | undefined
      readonly message: string
      readonly code?: unknown
      /** HTTP status that it states. */
      readonly status?: number | undefined
    }

/** Part at its start. */
export type StartedPart =
  | { readonly kind: 'text'; readonly refusal?: true }
  | { readonly kind: 'thinking' }
  | { readonly kind: 'tool-call'; readonly id: string; readonly name: string }
  /** A search is whole at its start. */
  | SearchPart
  | { readonly kind: 'opaque'; readonly protocol: ConversionProtocol; readonly value: unknown }
