import type { AnswerMetadata } from '@sluice/wire/answer-metadata'
import type { CacheDiagnosis } from '@sluice/wire/cache-diagnosis'
import type { ProtocolName } from '@sluice/wire/protocols'
import type { ReceivedMedia } from '@sluice/wire/received-media'
import type { ReplyFacts } from '@sluice/wire/reply-facts'
import type { ReportedUsage } from '@sluice/wire/reported-usage'
import type { StatedService } from '@sluice/wire/service-tier'
import type { StreamError, TapEndResult, TapPushResult } from '@sluice/wire/sse/stream-tap'
import type { ReportedToolUses } from '@sluice/wire/tool-use'
import type { ErrorContent } from '@sluice/wire/upstream-error'
import type { Usage } from '@sluice/wire/usage'
import type { OpenHold } from '../../accounts/ledger/open-hold.ts'
import type { CallNote } from '../../domain/call-outcome.ts'
import type { CallRowFacts, ChargeRate, ContinuedRequest } from '../../domain/price.ts'
import type { Provenance } from '../../domain/stored-response.ts'
import type { UpstreamKey } from '../../upstreams/key-ring.ts'
import type { IncomingCall } from '../incoming-call.ts'
import type { CallSession } from '../session.ts'

/**
 * How a response ended. One that its client left, or that was stopped, is charged even if nothing of it had
 * arrived. Of one that failed and was not delivered, only the reported usage is charged.
 */
export type ResponseEnding = 'complete' | 'cut' | 'client_gone' | 'stopped' | 'failed'

/** The call and the attempt from which an answer comes, for what is kept of the answer. */
export interface AnswerOrigin {
  readonly userId: number
  /** The model by its public name. */
  readonly model: string
  readonly group: string
  readonly channel: string
  readonly key: UpstreamKey
  /** The protocol of the channel. */
  readonly protocol: ProtocolName
}

/** A call whose answer is generated without its client, for its charge at the end. */
export interface ContinuedCall {
  readonly origin: AnswerOrigin
  readonly incoming: IncomingCall
  readonly hold: OpenHold
  readonly session: CallSession | undefined
  readonly isStreamed: boolean
  readonly rate: ChargeRate
  readonly sent: ContinuedRequest
  /** The same as `sent.rowFacts`, as it is by now: guards may check what is streamed. */
  readonly rowFacts: () => CallRowFacts
  readonly promptTokens: number
  /** Whether the request offers tools without a price. */
  readonly isPriceIncomplete: boolean
}

/** How a response lasts beyond its call: later requests of the client may refer to it. */
export interface LastingResponse {
  /**
   * Stores the response for later requests, before the client receives its end; rejects only with
   * `charged`, the usage for which the call was charged. `form` is what a check makes of the bytes for the client; absent if they
   * are not checked.
   */
  keep?(origin: AnswerOrigin, charged: Promise<Usage>, form?: (bytes: Buffer) => Buffer): Promise<void>
  /**
   * Facts about where the response comes from, also for an incomplete response; stored with the charge.
   * Undefined if clients cannot refer to the response.
   */
  provenance?(origin: AnswerOrigin, charged: Usage): Provenance | undefined
  /**
   * Set if the upstream continues when its client has left: a function that keeps the quota reserved for the
   * call, so that the call is charged when the end is known, and resolves to whether that is durable. Called
   * once, before the client receives anything.
   */
  readonly continueInBackground?: ((call: ContinuedCall) => Promise<boolean>) | undefined
}

/** What the row of a call states of its response. */
export interface RecordedResponse {
  /** Absent if later requests cannot refer to the response. */
  readonly lasting?: LastingResponse | undefined
  /**
   * Special outcome of the response, such as cut arguments, that is noted in the call's row in the usage
   * log.
   */
  readonly note?: CallNote | undefined
}

/** A response that is not a stream, ready for the client. */
export interface WholeReply extends RecordedResponse {
  readonly facts: ReplyFacts
  /**
   * Returns the bytes for the client. Called only if `facts` states a valid reply. `charged`: the usage for
   * which the call was charged.
   */
  body(charged: Usage): Buffer
  /**
   * Returns the body with the usage that the upstream reported, before the charge is known; absent if `body`
   * does not depend on the usage.
   */
  preview?(): Buffer
  /**
   * Set if the response must be checked before it is charged: resolves to the response as it may
   * be sent. Rejects with `CheckCancelled` if `signal` is aborted.
   */
  readonly check?: (signal: AbortSignal) => Promise<WholeReply>
  /**
   * Set if another request to the upstream is needed: its body, which is sent like the first one, and the
   * reader of its response. The facts of the next reply include those of this one.
   */
  readonly next?: { readonly body: Buffer; reply(bytes: Buffer): WholeReply }
}

/** Checks a stream on its way to the client. */
export interface StreamCheck {
  /**
   * Set while the part of the stream is checked that is held back. Settles when that is decided, and rejects only because
   * of a bug. Nothing may be pushed until then; afterwards, pushing an empty chunk returns what may be sent.
   */
  readonly checking: Promise<void> | undefined
  /** Whether text is held back until it is checked. */
  readonly holdsText: boolean
  /** Whether the check has ended the stream; `refusalBytes` then completes it. */
  readonly isBlocked: boolean
  /** Cancels running checks, because the stream is no longer read. */
  stopChecking(): void
  /**
   * When the stream breaks off: returns those events that were held back and may be sent. `failureFrame`
   * does not repeat them.
   */
  takeHeldEvents(): Buffer
  /** Returns the bytes that end a stream which the check has ended. `charged` is the usage to report. */
  refusalBytes(charged: Usage): Buffer
}

/** Watches or converts a stream on its way to the client. */
export interface Tap extends RecordedResponse {
  /** The last valid usage that the stream has reported. */
  readonly usage: ReportedUsage | undefined
  /**
   * How the provider serves the stream, such as its service tier; absent if the stream states it only in its
   * usage.
   */
  readonly served?: StatedService | undefined
  /** What the stream has stated about the prompt cache; absent if its dialect has no such statement. */
  readonly diagnosis?: CacheDiagnosis | undefined
  /** The id, model and finish reasons that the stream has stated; absent if its dialect has none. */
  readonly names?: AnswerMetadata | undefined
  /** Uses of the provider's own tools that the stream has reported so far. */
  readonly tools: ReportedToolUses
  readonly error: StreamError | undefined
  /** The upstream's error frame, unchanged, if the client speaks the upstream's dialect. */
  readonly errorFrame: Buffer | undefined
  /** Whether clients treat `errorFrame` as the end of the stream; otherwise `failureFrame` follows. */
  readonly endsWithError: boolean
  /** Number of events sent to the client so far, if the dialect needs it; comments do not count. */
  readonly sentEvents: number
  /** Whether an event has arrived, even if it is not forwarded; comments do not count. */
  readonly sawEvent: boolean
  /** Whether only the beginning of an event has been forwarded so far. */
  readonly isMidEvent: boolean
  /** Number of UTF-8 bytes of generated text so far. */
  readonly emittedBytes: number
  /** Number of events with generated text so far. */
  readonly contentFrames: number
  /** The generated text so far, for counting tokens. */
  readonly text: string
  /** Audio, images and hidden reasoning that have arrived so far, for the charge. */
  readonly arrived: ReceivedMedia
  push(chunk: Buffer): TapPushResult
  end(): Pick<TapEndResult, 'complete'>
  /** What checks the stream, and holds parts of it back until it has decided; absent if nothing does. */
  readonly check?: StreamCheck
  /** The client has left, and the stream is only read to its end, for its charge. */
  clientLeft?(): void
  /**
   * Takes those events at the end of a stream that may contain new texts out of `finalBytes` and `failureFrame`, so that
   * they can be checked before. They have the form of `finalBytes`. `isCut`: the stream has broken off.
   */
  takeLastTexts?(isCut: boolean): Buffer
  /**
   * Returns an event that only shows that the reply is in progress; undefined if none can be sent now, or if
   * the dialect has no such event. `isNumbered`: whether it has the number that events of its dialect have, if any,
   * and begins the reply where that has not begun; true by default.
   */
  keepAliveFrame(isNumbered?: boolean): Buffer | undefined
  /** Returns the bytes that end a complete stream, after it was charged. `charged` is the usage to report. */
  finalBytes(charged: Usage): Buffer
  /** Returns the event that reports the error at the end of a broken stream. */
  failureFrame(error: ErrorContent): Buffer
  /** Releases memory that is shared with other streams. Nothing more may be pushed. */
  release(): void
}

/** Placeholder for the stream functions of a dialect without streams. */
export function throwNoStreams(): never {
  throw new Error('this dialect has no streams')
}
