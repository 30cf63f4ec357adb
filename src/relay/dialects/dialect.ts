import type { AnswerNames } from '@sluice/wire/answer-names'
import type { Diagnosis } from '@sluice/wire/diagnosis'
import type { Caller } from '../../accounts/authentication/caller.ts'
import type { CallNote } from '../../domain/call-outcome.ts'
import type { Endpoint } from '../../domain/endpoints.ts'
import type { ProtocolName, ServedProtocol } from '@sluice/wire/protocols'
import type { Provenance } from '../../domain/stored-response.ts'
import type { Settings } from '../../domain/settings.ts'
import type { Usage } from '@sluice/wire/usage'
import type { Headers } from '../../http/request.ts'
import type { StoreRead } from '../../limits/store-reads.ts'
import type { ConversationForm } from '@sluice/wire/conversation-digests'
import type { ScanLimits } from '@sluice/wire/json/json-scan'
import type { KnownNames } from '@sluice/wire/json/known-names'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { ArrivedMedia } from '@sluice/wire/received-media'
import type { ReplyFacts } from '@sluice/wire/reply-facts'
import type { ReportedUsage } from '@sluice/wire/reported-usage'
import type { StreamError, TapEnd, TapStep } from '@sluice/wire/sse/stream-tap'
import type { Served } from '@sluice/wire/service-tier'
import type { SeenTools } from '@sluice/wire/tool-use'
import type { ErrorContent } from '@sluice/wire/upstream-error'
import type { AnswerKeeping } from '../answer-cache/answer-keeping.ts'
import type { FormBody } from '../body-reader.ts'
import type { Call } from '../call.ts'
import type { CallGuards } from '../guards/call-guards.ts'
import type { ParsedRequest, Target } from '../request-stages.ts'

/** Response to which clients may refer after its call. */
export interface StorableResponse {
  /**
   * Stores what clients may refer to, before they receive the end; never rejects. `charged` is the usage for
   * which the call was charged.
   */
  keep?(target: Target, call: Call, charged: Promise<Usage>): Promise<void>
  /**
   * Origin of the response as far as it came, stored with its charge; undefined if clients cannot refer to
   * it.
   */
  provenance?(target: Target, call: Call, charged: Usage): Provenance | undefined
  /**
   * Set if the upstream continues without its client. Parks the call's hold, so that the call is charged when
   * the end is known, and resolves to whether that is durable. Called once, before the client receives
   * anything.
   */
  readonly goOn?: ((target: Target, call: Call) => Promise<boolean>) | undefined
  /** Peculiarity of the response for the call's row in the usage log. */
  readonly note?: CallNote | undefined
  /** Set by guards: returns the bytes in which the response is stored, as the client receives it. */
  keptForm?: ((bytes: Buffer) => Buffer) | undefined
}

/** A response that is not a stream, ready for the client. */
export interface WholeReply extends StorableResponse {
  readonly facts: ReplyFacts
  /**
   * Returns the bytes for the client, if the facts are valid. `charged`: the usage for which the call was
   * charged.
   */
  body(charged: Usage): Buffer
  /** Returns the bytes as they would be for another usage; absent if `body` does not depend on it. */
  preview?(): Buffer
  /**
   * Set if services of guards must be asked before it is charged: resolves to the response as it may be sent.
   * Rejects with `CheckCancelled` if `signal` is aborted.
   */
  readonly check?: (signal: AbortSignal) => Promise<WholeReply>
  /**
   * Set if another request to the upstream is needed: its body, sent like the first, and the reader of its
   * response, whose facts include those of this one.
   */
  readonly next?: { readonly body: Buffer; reply(bytes: Buffer): WholeReply }
}

/** Watches or converts a stream on its way to the client. */
export interface Tap extends StorableResponse {
  /**
   * Set if the stream was charged when its response was generated, so that nothing of it is charged or counted
   * again.
   */
  readonly isReplay?: true | undefined
  /** The last valid usage. */
  readonly usage: ReportedUsage | undefined
  /** What the stream has stated about how it is served; absent if only `usage` states it. */
  readonly served?: Served | undefined
  /** What the stream has stated about the prompt cache; absent if its dialect has no such statement. */
  readonly diagnosis?: Diagnosis | undefined
  /** What the stream has stated about itself; absent if its dialect has no such statement. */
  readonly names?: AnswerNames
  /** Uses of the provider's tools so far. */
  readonly tools: SeenTools
  readonly error: StreamError | undefined
  /** The error's frame unchanged, if the client's dialect is the upstream's. */
  readonly errorFrame: Buffer | undefined
  /** Whether clients treat that frame as the end of the stream; otherwise `failureFrame` follows. */
  readonly endsWithError: boolean
  /** Number of events sent to the client so far, if the dialect needs it; comments do not count. */
  readonly sentEvents: number
  /** Whether an event has arrived, even if it is not forwarded; comments do not count. */
  readonly sawEvent: boolean
  /** Whether the beginning of an event was forwarded and its end is still to come. */
  readonly isMidEvent: boolean
  /** UTF-8 bytes of generated text. */
  readonly emittedBytes: number
  /** Number of frames with generated text. */
  readonly contentFrames: number
  /** The generated text so far, for counting tokens. */
  readonly text: string
  /** Audio, images and hidden reasoning so far. */
  readonly arrived: ArrivedMedia
  push(chunk: Buffer): TapStep
  end(): Pick<TapEnd, 'complete'>
  /**
   * Set while services of guards check what is held of the stream: settles when they have decided, and rejects
   * only with a bug. Until then nothing may be pushed; after that, pushing nothing returns what may be sent.
   */
  readonly checking?: Promise<void> | undefined
  /** Whether text is held for services of guards. */
  readonly holdsText?: boolean
  /** Ends checks under way, because nobody reads the stream any more. */
  stopChecking?(): void
  /** Returns the events of `finalBytes` that may have new texts, which services check before the charge. */
  lastTexts?(): Buffer
  /** Set if events are held for services: returns those that were not sent. */
  heldFrames?(): readonly string[]
  /** Takes the events that are held for services which change nothing, because the stream breaks off. */
  takeUnjudged?(): Buffer
  /**
   * Returns an event that only shows that the reply is in progress; undefined if none can be sent now, or if
   * the dialect has none.
   */
  keepAliveFrame(): Buffer | undefined
  /** Returns the bytes that end a complete stream, after it was charged. `charged` is the usage to report. */
  finalBytes(charged: Usage): Buffer
  /** Returns the frame that ends a broken stream. */
  failureFrame(error: ErrorContent): Buffer
  /** Whether a guard has ended the stream, which `refusalBytes` then completes. */
  readonly isBlocked?: boolean
  /** Returns the bytes that end a stream which a guard has blocked. `charged` is the usage to report. */
  refusalBytes?(charged: Usage): Buffer
  /** Releases memory that is shared with other streams. Nothing more may be pushed. */
  release(): void
}

/** Author of a request, and the settings by which it is read. */
export interface Reader {
  readonly caller: Caller
  readonly settings: Settings
  /** Allocates memory in addition to the body until the call ends. Throws `overloaded` if none is left. */
  readonly hold: (bytes: number) => void
  /** Waits for the memory of the copies that a conversion of so many bytes makes; see `Body`. */
  readonly holdCopies: (bytes: number) => Promise<void> | undefined
  /** Begins a read of the store for the request. Its memory is held until the call ends. */
  readonly readStore: () => StoreRead
  /** Guards of the call; absent if there are none. */
  readonly guards?: CallGuards
}

/** An endpoint's protocol as clients speak it. */
export interface DialectFacts {
  readonly name: ServedProtocol
  /** Endpoint under which its calls are logged. */
  readonly endpoint: Endpoint
  /** Protocols of the channels that serve it; absent if all protocols to which calls are converted do. */
  readonly servedBy?: readonly ProtocolName[]
  /** Names of the fields of its requests, which are checked before anything else. */
  readonly names: KnownNames
  /** Limits of its requests, if they differ from the common ones. */
  readonly scanLimits?: ScanLimits
  /** Whether a model without a price is free here, independent of the operator's setting. */
  readonly isFreeUnpriced?: true
}

/** A dialect whose requests are JSON. */
export interface Dialect extends DialectFacts {
  /** How its conversations are compared; absent if its requests are none. */
  readonly conversation?: ConversationForm
  /** How the answer to a request may be kept for equal ones; undefined if it may not. Absent if none may be. */
  readonly keeping?: (scan: ScannedObject) => AnswerKeeping | undefined
  /** Checks a request. Throws `invalid_request` that names the field. */
  read(scan: ScannedObject, headers: Headers, reader: Reader): ParsedRequest | Promise<ParsedRequest>
}

/** A dialect whose requests are forms. */
export interface FormDialect extends DialectFacts {
  /** Checks a request. Throws `invalid_request` that names the field. */
  read(form: FormBody, reader: Reader): ParsedRequest | Promise<ParsedRequest>
}

/** Placeholder for the stream functions of a dialect without streams. */
export function throwNoStreams(): never {
  throw new Error('this dialect has no streams')
}
