import type { ProtocolName } from '@sluice/wire/protocols'
import type { OutgoingBody } from '@sluice/http1'
import type { Caller } from '../../accounts/authentication/caller.ts'
import type { Endpoint } from '../../domain/endpoints.ts'
import type { CallNote } from '../../domain/call-outcome.ts'
import type { UsageBounds } from '../../domain/charge.ts'
import type { MeasuredUnit } from '../../domain/price.ts'
import type { Channel } from '../../domain/records/channel.ts'
import type { Provenance } from '../../domain/stored-response.ts'
import type { Model } from '../../domain/records/model.ts'
import type { Settings } from '../../domain/settings.ts'
import type { ProviderTools } from '@sluice/wire/tool-use'
import type { Usage } from '@sluice/wire/usage'
import type { StoreRead } from '../../limits/store-reads.ts'
import type { ScanLimits } from '@sluice/wire/json/json-scan'
import type { KnownNames } from '@sluice/wire/json/known-names'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { PromptLevels } from '@sluice/wire/prompt-levels'
import type { ArrivedMedia } from '@sluice/wire/received-media'
import type { ReplyFacts } from '@sluice/wire/reply-facts'
import type { ReportedUsage } from '@sluice/wire/reported-usage'
import type { EventMemory } from '@sluice/wire/sse/event-memory'
import type { StreamError, TapEnd, TapStep } from '@sluice/wire/sse/stream-tap'
import type { ErrorParts } from '@sluice/wire/upstream-error'
import type { Headers } from '../../http/request.ts'
import type { SeenTools } from '@sluice/wire/tool-tally'
import type { UpstreamKey } from '../../upstreams/key-ring.ts'
import type { Call, Target } from '../call.ts'
import type { MediaRequester } from '../media.ts'
import type { PassedResponses } from './passthrough.ts'

/** Upper bounds of units other than tokens, and whether tokens may be audio or images. */
export type MeasuredBounds = Omit<UsageBounds, 'prompt' | 'output' | 'tools'>

/** A client's request in any dialect, as the relay needs it. */
export interface RelayedRequest {
  readonly model: string
  readonly stream: boolean
  /** Content type of the client's stream, if it does not consist of events. */
  readonly streamType?: string
  /** The client's maximum of output tokens; undefined if the request has none. */
  readonly maxTokens: number | undefined
  /** Upper bound on the tokens of the prompt. */
  readonly promptBound: number
  /** Upper bounds of what is charged in addition to text tokens; absent if there is nothing. */
  readonly measuredBounds?: MeasuredBounds
  /** Whether the call has no price and no entry in the usage log, independent of the model's price. */
  readonly isFree?: boolean
  /**
   * Seconds and characters of the prompt, the minimum number of images, and expected search units. They are
   * charged if the gateway crashes during the call.
   */
  readonly measuredPrompt?: Partial<Pick<Usage, MeasuredUnit['count']>>
  /** Search units of the request if its texts have this many tokens; absent if none are charged. */
  readonly searchUnits?: (tokens: number) => number
  /** Tokens of the stored context that the request continues. */
  readonly contextTokens?: number
  /** Whether the request only refers to parts of its prompt, which may be as large as the model's context. */
  readonly namesPrompt?: boolean
  /** The request's body with the stored context included, if the gateway keeps that context. */
  readonly body?: Buffer
  /** Filters the channels that can serve the request. Throws if there are none. If absent, all can. */
  channelsFor?(channels: readonly Channel[]): readonly Channel[]
  /**
   * Returns the same request for another model, given by its public name. Absent if only the requested model
   * can serve it.
   */
  forModel?(name: string): RelayedRequest
  /** Names of what was left out before a channel was chosen. */
  readonly dropped?: readonly string[]
  /**
   * Whether the endpoint is optional for upstreams, so that a 404 does not mean that the model is missing.
   */
  readonly mayBeUnserved?: boolean
  /**
   * Creates the requests for these channels, in the order in which they are tried; accounts of one channel
   * may get different requests. If any of the channels speaks another dialect, the conversation is decoded
   * here, once.
   */
  forChannels(
    channels: readonly Channel[],
    model: Model,
  ): readonly ChannelRequest[] | Promise<readonly ChannelRequest[]>
}

/** The provider's own tools in a request for one channel. */
export interface ChannelTools extends ProviderTools {
  /** The dialect of the channel's request. */
  readonly dialect: ProtocolName
  /** The upstream's name for the model. */
  readonly model: string
}

/** A client's request for one channel. */
export interface ChannelRequest {
  readonly channel: Channel
  /** The maximum of output tokens that will be sent to the channel; undefined if none is sent. */
  readonly outputMaximum: number | undefined
  /** Number of choices requested from the channel, each up to that maximum. */
  readonly choices: number
  /** Tools that the channel's provider may run for it; absent if there are none. */
  readonly tools?: ChannelTools
  /**
   * Reports whether the request belongs to the account of this key. Other keys are tried only if that key no
   * longer exists.
   */
  isOfKey?(key: UpstreamKey): boolean
  /**
   * Creates the request body for the channel. Throws the error for the client if that is impossible.
   * `requester`: the client on whose behalf files are fetched.
   */
  prepare(passThrough: boolean, requester: MediaRequester): Prepared | Promise<Prepared>
}

/** A request ready for a channel, and how its response is converted back. */
export interface Prepared {
  /** `POST` if absent. */
  readonly method?: 'GET'
  /** The dialect of the request. */
  readonly protocol: ProtocolName
  /** Path relative to the channel's base URL. */
  readonly path: string
  /** Headers in addition to those of the channel, names and values in turn. */
  readonly headers: readonly string[]
  readonly body: Buffer | OutgoingBody
  /** Content type of the body; JSON if absent. */
  readonly contentType?: string
  /**
   * Describes which members of the body are part of the prompt, or returns the prompt's text; absent if no
   * prompt is charged.
   */
  readonly prompt?: PromptLevels | (() => string)
  /** Set if the response is passed through unchanged: `tap` and `reply` are not called then. */
  readonly passed?: PassedResponses
  /** The upstream's name for the model. */
  readonly upstreamModel: string
  /** Tools of its `ChannelRequest`. */
  readonly tools?: ChannelTools
  /** Fields that a conversion left out. */
  readonly dropped: readonly string[]
  /**
   * Whether the stream's first event must contain the tokens of the prompt, which the upstream may report
   * only later.
   */
  readonly beginsWithPrompt?: boolean
  /** Returns the body of an upstream's error with the ids that the client knows. */
  errorBody?(body: Buffer): Buffer
  /**
   * Creates the tap of the response's stream. `promptTokens` is called if the first event needs them;
   * `memory` accounts for events that must be complete.
   */
  tap(promptTokens: () => number, memory: EventMemory): Tap
  /** Reads a response that is not a stream. */
  reply(bytes: Buffer): PreparedReply
}

/** Response to which clients may refer after its call. */
export interface Lasting {
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
}

/** A response that is not a stream, ready for the client. */
export interface PreparedReply extends Lasting {
  readonly facts: ReplyFacts
  /**
   * Returns the bytes for the client, if the facts are valid. `charged`: the usage for which the call was
   * charged.
   */
  body(charged: Usage): Buffer
  /**
   * Set if another request to the upstream is needed: its body, sent like the first, and the reader of its
   * response, whose facts include those of this one.
   */
  readonly next?: { readonly body: Buffer; reply(bytes: Buffer): PreparedReply }
}

/** Watches or converts a stream on its way to the client. */
export interface Tap extends Lasting {
  /** The last valid usage. */
  readonly usage: ReportedUsage | undefined
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
   * Returns an event that only shows that the reply is in progress; undefined if none can be sent now, or if
   * the dialect has none.
   */
  keepAliveFrame(): Buffer | undefined
  /** Returns the bytes that end a complete stream, after it was charged. `charged` is the usage to report. */
  finalBytes(charged: Usage): Buffer
  /** Returns the frame that ends a broken stream. */
  failureFrame(error: ErrorParts): Buffer
  /** Releases memory that is shared with other streams. Nothing more may be pushed. */
  release(): void
}

/** Author of a request, and the settings by which it is read. */
export interface Reader {
  readonly caller: Caller
  readonly settings: Settings
  /** Allocates memory in addition to the body until the call ends. Throws `overloaded` if none is left. */
  readonly hold: (bytes: number) => void
  /** Begins a read of the store for the request. Its memory is held until the call ends. */
  readonly readStore: () => StoreRead
}

/** A protocol as clients speak it. */
export interface Dialect {
  readonly name: ProtocolName
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
  /** Checks a request. Throws `invalid_request` that names the field. */
  read(scan: ScannedObject, headers: Headers, reader: Reader): RelayedRequest | Promise<RelayedRequest>
}
