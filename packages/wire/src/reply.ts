import type { ConversionProtocol } from './protocols.ts'
import type { ToolUse } from './tool-use.ts'
import type { ArrivedMedia } from './received-media.ts'
import type { Citation } from './citation.ts'
import type { Proof } from './conversation.ts'
import type { SearchPart } from './provider-search.ts'
import type { ReportedUsage } from './reported-usage.ts'

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
