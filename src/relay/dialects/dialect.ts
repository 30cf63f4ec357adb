import type { OutgoingBody } from '@sluice/http1'
import type { Caller } from '../../accounts/authentication/caller.ts'
import type { Endpoint } from '../../domain/endpoints.ts'
import type { CallNote } from '../../domain/call-note.ts'
import type { UsageBounds } from '../../domain/charge.ts'
import type { MeasuredUnit } from '../../domain/price-units.ts'
import type { Channel } from '../../domain/records/channel.ts'
import type { ProtocolName } from '../../domain/protocols.ts'
import type { Provenance } from '../../domain/provenance.ts'
import type { Model } from '../../domain/records/model.ts'
import type { Settings } from '../../domain/settings.ts'
import type { ProviderTools } from '../../domain/tool-use.ts'
import type { Usage } from '../../domain/usage.ts'
import type { StoreRead } from '../../limits/store-reads.ts'
import type { ScanLimits } from '../../protocols/json/json-scan.ts'
import type { KnownNames } from '../../protocols/json/known-names.ts'
import type { ScannedObject } from '../../protocols/json/scanned-object.ts'
import type { PromptLevels } from '../../protocols/prompt-levels.ts'
import type { ArrivedMedia } from '../../protocols/arrived-media.ts'
import type { ReplyFacts } from '../../protocols/reply-facts.ts'
import type { ReportedUsage } from '../../protocols/reported-usage.ts'
import type { EventMemory } from '../../protocols/sse/event-memory.ts'
import type { StreamError, TapEnd, TapStep } from '../../protocols/sse/stream-tap.ts'
import type { ErrorParts } from '../../protocols/upstream-error.ts'
import type { Headers } from '../../http/request.ts'
import type { SeenTools } from '../../protocols/tool-tally.ts'
import type { UpstreamKey } from '../../upstreams/key-ring.ts'
import type { Call, Target } from '../call.ts'
import type { MediaRequester } from '../media.ts'
import type { PassedResponses } from './passage.ts'

/** Bounds of measured units, and whether tokens may stand for audio or images. */
export type MeasuredBounds = Omit<UsageBounds, 'prompt' | 'output' | 'tools'>

/** A client's request as the relay sees it, in any dialect. */
export interface RelayedRequest {
  readonly model: string
  readonly stream: boolean
  /** Content type of a stream to the client, where it is not made of events. */
  readonly streamType?: string
  /** The client's own maximum of output tokens; undefined where the request has none. */
  readonly maxTokens: number | undefined
  /** At least as many tokens as the prompt can have. */
  readonly promptBound: number
  /** Bounds of what is charged beside tokens of text; absent where nothing is. */
  readonly measuredBounds?: MeasuredBounds
  /** A call without a price and without an entry in the usage log, whatever the model costs. */
  readonly isFree?: boolean
  /**
   * Seconds and characters of the prompt, the least number of images that come, and expected search units: a
   * crash during the call is charged them.
   */
  readonly measuredPrompt?: Partial<Pick<Usage, MeasuredUnit['count']>>
  /** Search units of the request if its texts have so many tokens; absent where none are charged. */
  readonly searchUnits?: (tokens: number) => number
  /** Tokens of the stored context that the request continues. */
  readonly contextTokens?: number
  /** Parts of the prompt are only named, and may be as large as the model's context. */
  readonly namesPrompt?: boolean
  /** Bytes of the request with the stored context in front, where the gateway keeps that. */
  readonly body?: Buffer
  /** The channels among these that can take the request; throws where none can. All, if absent. */
  channelsFor?(channels: readonly Channel[]): readonly Channel[]
  /**
   * The same request for another model, by the name that a client would ask for. Absent where only the model
   * asked for can take it.
   */
  forModel?(name: string): RelayedRequest
  /** Names of what was left out before a channel was chosen. */
  readonly dropped?: readonly string[]
  /** Upstreams need not have the endpoint: a 404 then says nothing of the model. */
  readonly mayBeUnserved?: boolean
  /**
   * The requests for these channels, in the order in which to try them; accounts of one channel may get
   * requests of their own. A conversation is decoded here, once, if any of the channels speaks another
   * dialect.
   */
  forChannels(
    channels: readonly Channel[],
    model: Model,
  ): readonly ChannelRequest[] | Promise<readonly ChannelRequest[]>
}

/** Tools of a provider's own in a request for one channel. */
export interface ChannelTools extends ProviderTools {
  /** The dialect that the channel is asked in. */
  readonly dialect: ProtocolName
  /** The upstream's name of the model. */
  readonly model: string
}

/** A client's request for one channel. */
export interface ChannelRequest {
  readonly channel: Channel
  /** The maximum of output tokens that the channel will be told; undefined where it is told none. */
  readonly outputMaximum: number | undefined
  /** Number of answers that the channel will be asked for, each of up to that maximum. */
  readonly choices: number
  /** Tools that the channel's provider may run for it; absent without any. */
  readonly tools?: ChannelTools
  /** Whether the request belongs to the account of this key; others are tried only if it is gone. */
  isOfKey?(key: UpstreamKey): boolean
  /**
   * The bytes for the channel; throws the error for the client where it cannot be asked. `requester`: on
   * whose behalf files are fetched, if any must be.
   */
  prepare(passThrough: boolean, requester: MediaRequester): Prepared | Promise<Prepared>
}

/** A request ready for a channel, and the way its response comes back. */
export interface Prepared {
  /** `POST` if absent. */
  readonly method?: 'GET'
  /** The dialect that it is written in. */
  readonly protocol: ProtocolName
  /** Below the channel's base URL. */
  readonly path: string
  /** Headers beside those of the channel, names and values in turn. */
  readonly headers: readonly string[]
  readonly body: Buffer | OutgoingBody
  /** Type of the body; JSON if absent. */
  readonly contentType?: string
  /** Members of the body that are prompt, or the text of the prompt; absent where no prompt is charged. */
  readonly prompt?: PromptLevels | (() => string)
  /** Set where the response goes through as it comes: `tap` and `reply` are not called then. */
  readonly passed?: PassedResponses
  /** The model's name as the upstream knows it. */
  readonly upstreamModel: string
  /** Tools of its `ChannelRequest`. */
  readonly tools?: ChannelTools
  /** Fields that a conversion left out. */
  readonly dropped: readonly string[]
  /** The stream's first event tells the tokens of the prompt, which the upstream may tell only later. */
  readonly beginsWithPrompt?: boolean
  /** The body of an upstream's error for the client's eyes: with the ids that the client knows. */
  errorBody?(body: Buffer): Buffer
  /**
   * The tap of the response's stream. `promptTokens` is called where the first event needs them; `memory` is
   * that of events which must be complete.
   */
  tap(promptTokens: () => number, memory: EventMemory): Tap
  /** Reads a response that is no stream. */
  reply(bytes: Buffer): PreparedReply
}

/** Response that clients may refer to after its call. */
export interface Lasting {
  /**
   * Stores what clients may refer to, before they see the end; never rejects. `charged` is the usage that the
   * call was charged for.
   */
  keep?(target: Target, call: Call, charged: Promise<Usage>): Promise<void>
  /** Origin of the response as far as it came, stored with its charge; undefined = nothing to refer to. */
  provenance?(target: Target, call: Call, charged: Usage): Provenance | undefined
  /**
   * Set where the upstream goes on without its client: parks the call's hold, so that it is charged when the
   * end is known. Resolves to whether that is durable. Called once, before the client sees anything.
   */
  readonly goOn?: ((target: Target, call: Call) => Promise<boolean>) | undefined
  /** Oddity of the response, for the call's row in the usage log. */
  readonly note?: CallNote | undefined
}

/** A response that is no stream, on its way to the client. */
export interface PreparedReply extends Lasting {
  readonly facts: ReplyFacts
  /** Bytes for the client, where the facts are valid. `charged`: the usage that the call was charged for. */
  body(charged: Usage): Buffer
  /**
   * Set where the upstream must be asked for more: another body, sent like the first, and the reader of its
   * response, whose facts include those of this one.
   */
  readonly next?: { readonly body: Buffer; reply(bytes: Buffer): PreparedReply }
}

/** Watches a stream, or converts it, on its way to the client. */
export interface Tap extends Lasting {
  /** The last valid usage. */
  readonly usage: ReportedUsage | undefined
  /** Uses of the provider's tools so far. */
  readonly tools: SeenTools
  readonly error: StreamError | undefined
  /** The error's frame as it came, where the client's dialect is the upstream's. */
  readonly errorFrame: Buffer | undefined
  /** Whether that frame is the end of a stream to clients of the dialect; else `failureFrame` follows. */
  readonly endsWithError: boolean
  /** Events for the client so far, as far as the dialect needs them counted; comments are none. */
  readonly sentEvents: number
  /** An event came, be it one that is not forwarded; comments are none. */
  readonly sawEvent: boolean
  /** A part of an event went on, and its end is to come. */
  readonly isMidEvent: boolean
  /** UTF-8 bytes of generated text. */
  readonly emittedBytes: number
  /** Frames that had generated text. */
  readonly contentFrames: number
  /** The generated text so far, for counting. */
  readonly text: string
  /** Sound, pictures and hidden reasoning so far. */
  readonly arrived: ArrivedMedia
  push(chunk: Buffer): TapStep
  end(): Pick<TapEnd, 'complete'>
  /**
   * An event that only says that the answer goes on; undefined where none can be sent now, or where the
   * dialect has none.
   */
  keepAliveFrame(): Buffer | undefined
  /** The bytes that end a complete stream, once it is charged: `charged` is the usage to tell. */
  finalBytes(charged: Usage): Buffer
  /** The frame that ends a broken-off stream. */
  failureFrame(error: ErrorParts): Buffer
  /** Gives back memory that is shared with other streams: nothing more comes. */
  release(): void
}

/** Maker of a request, and the settings that it is read by. */
export interface Reader {
  readonly caller: Caller
  readonly settings: Settings
  /** Takes memory for as many bytes beside the body, until the call ends; throws `overloaded` without any. */
  readonly hold: (bytes: number) => void
  /** Begins a read of the store for the request; what it holds is held until the call ends. */
  readonly readStore: () => StoreRead
}

/** A protocol as clients speak it. */
export interface Dialect {
  readonly name: ProtocolName
  /** Endpoint that its calls are logged as. */
  readonly endpoint: Endpoint
  /** Protocols of the channels that serve it; absent where all that calls are converted to do. */
  readonly servedBy?: readonly ProtocolName[]
  /** Names of its requests, which are checked before anything else. */
  readonly names: KnownNames
  /** Limits of its requests where they are not those of all. */
  readonly scanLimits?: ScanLimits
  /** A model without a price costs nothing here, whatever the operator has decided for others. */
  readonly isFreeUnpriced?: true
  /** Checks a request; throws `invalid_request` naming the field. */
  read(scan: ScannedObject, headers: Headers, reader: Reader): RelayedRequest | Promise<RelayedRequest>
}
