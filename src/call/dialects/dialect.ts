import type { AnswerMetadata } from '@sluice/wire/answer-metadata'
import type { CacheDiagnosis } from '@sluice/wire/cache-diagnosis'
import type { Caller } from '../../accounts/authentication/caller.ts'
import type { CallNote } from '../../domain/call-outcome.ts'
import type { Endpoint } from '../../domain/endpoints.ts'
import type { ProtocolName, ServedProtocol } from '@sluice/wire/protocols'
import type { Provenance } from '../../domain/stored-response.ts'
import type { Settings } from '../../domain/settings.ts'
import type { Usage } from '@sluice/wire/usage'
import type { Headers } from '../../http/request.ts'
import type { StoreRead } from '../../limits/store-reads.ts'
import type { ConversationComparisonRules } from '@sluice/wire/conversation-digests'
import type { ScanLimits } from '@sluice/wire/json/json-scan'
import type { KnownMemberNames } from '@sluice/wire/json/known-names'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { Shape } from '@sluice/wire/shape/define-shape'
import type { ReceivedMedia } from '@sluice/wire/received-media'
import type { ReplyFacts } from '@sluice/wire/reply-facts'
import type { ReportedUsage } from '@sluice/wire/reported-usage'
import type { StreamError, TapEndResult, TapPushResult } from '@sluice/wire/sse/stream-tap'
import type { StatedService } from '@sluice/wire/service-tier'
import type { ReportedToolUses } from '@sluice/wire/tool-use'
import type { ErrorContent } from '@sluice/wire/upstream-error'
import type { AnswerStorageRules } from './answer-storage-rules.ts'
import type { FormBody } from '../body-reader.ts'
import type { Call } from '../call.ts'
import type { ReadingFeatures } from '../reading-features.ts'
import type { ParsedRequest, AttemptTarget } from '../request-stages.ts'

/** How a response lasts beyond its call: later requests of the client may refer to it. */
export interface LastingResponse {
  /**
   * Stores the response for later requests, before the client receives its end; never rejects. `charged` is
   * the usage for which the call was charged. `form` is what a check makes of the bytes for the client; absent if they
   * are not checked.
   */
  keep?(
    target: AttemptTarget,
    call: Call,
    charged: Promise<Usage>,
    form?: (bytes: Buffer) => Buffer,
  ): Promise<void>
  /**
   * Facts about where the response comes from, also for an incomplete response; stored with the charge.
   * Undefined if clients cannot refer to the response.
   */
  provenance?(target: AttemptTarget, call: Call, charged: Usage): Provenance | undefined
  /**
   * Set if the upstream continues when its client has left: a function that keeps the quota reserved for the
   * call, so that the call is charged when the end is known, and resolves to whether that is durable. Called
   * once, before the client receives anything.
   */
  readonly continueInBackground?: ((target: AttemptTarget, call: Call) => Promise<boolean>) | undefined
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
  readonly names?: AnswerMetadata
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
   * the dialect has no such event.
   */
  keepAliveFrame(): Buffer | undefined
  /** Returns the bytes that end a complete stream, after it was charged. `charged` is the usage to report. */
  finalBytes(charged: Usage): Buffer
  /** Returns the event that reports the error at the end of a broken stream. */
  failureFrame(error: ErrorContent): Buffer
  /** Releases memory that is shared with other streams. Nothing more may be pushed. */
  release(): void
}

/** The caller whose request is read, and what reading it needs. */
export interface RequestReaderContext {
  readonly caller: Caller
  readonly settings: Settings
  /** Allocates memory in addition to the body until the call ends. Throws `overloaded` if none is left. */
  readonly hold: (bytes: number) => void
  /** Waits for the memory of the copies that a conversion of a request of `bytes` bytes makes; see `Body`. */
  readonly holdCopies: (bytes: number) => Promise<void> | undefined
  /**
   * Begins a read of the database for the request. The memory of the result is allocated until the call ends.
   */
  readonly readStore: () => StoreRead
  /** The features that take part in reading the request. */
  readonly features: ReadingFeatures
  /** Checks content that is added to the request, as the request itself was checked; absent if it was not. */
  readonly check?: (scan: ScannedObject, shape: Shape) => Promise<ScannedObject>
}

/** An endpoint's protocol as clients speak it. */
export interface DialectFacts {
  readonly name: ServedProtocol
  /** Name of the endpoint under which calls are recorded. */
  readonly endpoint: Endpoint
  /**
   * Protocols of the channels that serve the endpoint; absent if calls can be converted to all protocols that
   * have conversions.
   */
  readonly servedBy?: readonly ProtocolName[]
  /** Names of the fields that requests may have. They are checked before anything else. */
  readonly names: KnownMemberNames
  /**
   * Limits on the depth and the number of values of a request's JSON, if they differ from those of other
   * endpoints.
   */
  readonly scanLimits?: ScanLimits
  /** Content type of the client's streams, if these do not consist of events. */
  readonly streamType?: string
  /** Whether upstreams need not have the endpoint. A 404 then does not mean that the model is missing. */
  readonly mayBeUnserved?: true
  /** Whether a model without a price is free at this endpoint, independent of the operator's setting. */
  readonly isFreeUnpriced?: true
}

/** A dialect whose requests are JSON. */
export interface Dialect extends DialectFacts {
  /** The shape of its requests. */
  readonly shape: Shape
  /** Returns the dialect in which a body is read that has another form; undefined for the usual form. */
  readonly ofForm?: (scan: ScannedObject) => Dialect | undefined
  /**
   * How conversations in this dialect are compared with earlier ones; absent if requests contain no
   * conversation.
   */
  readonly conversation?: ConversationComparisonRules
  /**
   * Returns how the answer to a request may be kept for equal requests; undefined if it may not be kept.
   * Absent if no answer of this dialect may be kept.
   */
  readonly keeping?: (scan: ScannedObject) => AnswerStorageRules | undefined
  /** Checks a request. Throws `invalid_request` that names the field. */
  read(
    scan: ScannedObject,
    headers: Headers,
    reader: RequestReaderContext,
  ): ParsedRequest | Promise<ParsedRequest>
}

/** A dialect whose requests are forms. */
export interface FormDialect extends DialectFacts {
  /** Checks a request. Throws `invalid_request` that names the field. */
  read(form: FormBody, reader: RequestReaderContext): ParsedRequest | Promise<ParsedRequest>
}

/** Placeholder for the stream functions of a dialect without streams. */
export function throwNoStreams(): never {
  throw new Error('this dialect has no streams')
}
