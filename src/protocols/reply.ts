import type { ConversionProtocol, Proof } from './conversation.ts'
import type { ReportedUsage } from './reported-usage.ts'

/** A whole answer in no protocol's words. */
export interface Reply {
  readonly id: string
  /** As the upstream names it. */
  readonly model: string
  readonly parts: readonly ReplyPart[]
  readonly stop: Stop
  /** Undefined where the upstream did not say, or not credibly. */
  readonly usage: ReportedUsage | undefined
}

/** A piece of an answer. */
export type ReplyPart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'thinking'; readonly text: string; readonly proof?: Proof }
  | {
      readonly kind: 'tool-call'
      readonly id: string
      readonly name: string
      /** The JSON text that the model wrote; empty means `{}`. */
      readonly input: string
    }
  | { readonly kind: 'opaque'; readonly protocol: ConversionProtocol; readonly value: unknown }

/** Why an answer ended. */
export interface Stop {
  readonly reason: StopReason
  /** The stop sequence that was met, where the upstream tells. */
  readonly sequence?: string
}

/** The reasons that more than one wire knows; `pause` is an answer that wants to be continued. */
export type StopReason = 'end' | 'length' | 'stop-sequence' | 'tool-calls' | 'refusal' | 'pause'

/**
 * A stream in no protocol's words. Parts are numbered from 0 in the order in which they begin; a part is
 * started, grows, and ends. Parts may be interleaved here even where a wire cannot do that: its encoder sees
 * to it.
 */
export type ReplyEvent =
  | {
      readonly kind: 'start'
      readonly id: string
      readonly model: string
      readonly usage: ReportedUsage | undefined
    }
  | { readonly kind: 'part-start'; readonly index: number; readonly part: StartedPart }
  | { readonly kind: 'text'; readonly index: number; readonly text: string }
  | { readonly kind: 'thinking'; readonly index: number; readonly text: string }
  | { readonly kind: 'proof'; readonly index: number; readonly proof: Proof }
  /** A piece of the JSON text of a tool call's input. */
  | { readonly kind: 'tool-input'; readonly index: number; readonly text: string }
  | { readonly kind: 'part-end'; readonly index: number }
  /** Keeps the connection alive and says nothing. */
  | { readonly kind: 'ping' }
  /** The answer is complete; `usage` is final. */
  | { readonly kind: 'end'; readonly stop: Stop; readonly usage: ReportedUsage | undefined }
  /** The upstream reports a failure in the middle of its answer; `code` as it wrote it. */
  | { readonly kind: 'failure'; readonly type: string; readonly message: string; readonly code?: unknown }

/** What is known of a part when it begins. */
export type StartedPart =
  | { readonly kind: 'text' }
  | { readonly kind: 'thinking' }
  | { readonly kind: 'tool-call'; readonly id: string; readonly name: string }
  | { readonly kind: 'opaque'; readonly protocol: ConversionProtocol; readonly value: unknown }
