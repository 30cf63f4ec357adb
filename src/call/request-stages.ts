import type { SessionFinder } from './session.ts'
import type { UsageBounds } from '../domain/charge.ts'
import type { ChargeRate, MeasuredUnit } from '../domain/price.ts'
import type { ProtocolName } from '@sluice/wire/protocols'
import type { Channel } from '../domain/records/channel.ts'
import type { Group } from '../domain/records/group.ts'
import type { FallbackReason, Model } from '../domain/records/model.ts'
import type { Settings } from '../domain/settings.ts'
import type { CacheWriteLifetime } from '@sluice/wire/reported-usage'
import type { ProviderTools } from '@sluice/wire/tool-use'
import type { SentRequest } from '@sluice/wire/hidden-thinking'
import type { Usage } from '@sluice/wire/usage'
import type { ConversationComparisonRules } from '@sluice/wire/conversation-digests'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { PromptRules } from '@sluice/wire/prompt-text'
import type { EventMemory } from '@sluice/wire/sse/frame-splitter'
import type { UpstreamKey } from '../upstreams/key-ring.ts'
import type { WireRequest } from '../upstreams/provider.ts'
import type { Tap, WholeReply } from './dialects/answer-reader.ts'
import type { DialectFacts, JsonRules } from './dialects/dialect-facts.ts'
import type { PassthroughResponses } from './dialects/passthrough.ts'
import type { MediaRequester } from './media-fetcher.ts'
import type { ComparedRequestTexts } from './provider-messages.ts'
import type { CheckTurns } from './check-turns.ts'

// The stages of one request, in order: what arrived (`IncomingCall`), what was read of it (`ParsedRequest`), how
// it may be served (`Plan`), what one channel is sent (`AttemptRequest`), and the request for the upstream
// (`WireRequest` in `upstreams/provider.ts`).

/** A checked request in any dialect, as the relay needs it. */
export interface ParsedRequest {
  readonly model: string
  readonly stream: boolean
  /** The client's maximum of output tokens; undefined if the request has none. */
  readonly maxTokens: number | undefined
  /** Upper bound on the tokens of the prompt. */
  readonly promptBound: number
  /**
   * Maximum tokens of each input that the model reads in a separate context, such as the texts of a request for
   * embeddings. Tokens beyond the context are not read. Absent if the request has no such inputs.
   */
  readonly inputBounds?: readonly number[]
  /**
   * Whether the request only refers to parts of the prompt. These parts may be as large as the model's
   * context.
   */
  readonly namesPrompt?: boolean
  /** The JSON body and the dialect in which it was read; absent for forms. */
  readonly json?: ReadJson
  /** How the client wants the request to be served; absent if it states nothing. */
  readonly requested?: RequestedService
  /** Finds the session of the request; absent if it can have none. */
  readonly session?: SessionFinder
  /** What is charged in addition to text tokens; absent if nothing is. */
  readonly measured?: MeasuredRequest
  /** Facts that only requests of the Responses API have. */
  readonly responses?: ResponsesFacts
  /**
   * `free`: the call has no price and no entry in the usage log, independent of the model's price. `unpaid`: nobody is
   * charged for it, but it has an entry. Absent for calls that are charged.
   */
  readonly charging?: 'free' | 'unpaid'
  /** A request to count tokens, with the content that the gateway keeps in place of references to it; absent if it keeps none. */
  readonly composed?: ScannedObject
  /** Returns the channels that can serve the request; absent if all can. Throws if there are none. */
  channelsFor?(channels: readonly Channel[]): readonly Channel[]
  /**
   * Returns the same request for another model, given by its public name. Absent if only the requested model
   * can serve it.
   */
  forModel?(name: string): ParsedRequest
  /** Names of request fields that were left out before a channel was chosen. */
  readonly dropped?: readonly string[]
  /**
   * Plans the request for these channels, in the order in which they are tried; accounts of one channel may
   * get different requests. If any of the channels speaks another dialect, the conversation is decoded once,
   * during this planning.
   */
  forChannels(
    channels: readonly Channel[],
    model: Model,
  ): readonly ChannelPlan[] | Promise<readonly ChannelPlan[]>
}

/** A JSON body as it was read. */
export interface ReadJson {
  readonly scan: ScannedObject
  readonly dialect: JsonRules
}

/** How a request is to be served. */
export interface RequestedService {
  /** The service tier; absent if the client requested none. */
  readonly serviceTier?: string | undefined
  /** The region; absent if the request names none. */
  readonly region?: string | undefined
  /** Cache lifetimes that the request's cache directives name; absent if it has no such directives. */
  readonly lifetimes?: readonly CacheWriteLifetime[] | undefined
  /** Set for a line of a batch of a provider, whatever tier the client requested. */
  readonly inBatch?: true
  /** Set if the gateway never adds the standard tier, so that the provider may choose one by the settings of its project. */
  readonly leavesTierOpen?: true
}

/** What is charged for a request in addition to text tokens. */
export interface MeasuredRequest {
  readonly bounds: NonTokenBounds
  /**
   * Seconds and characters of the prompt, the minimum number of images, and expected search units. They are
   * charged if the gateway crashes during the call.
   */
  readonly prompt?: Partial<Pick<Usage, MeasuredUnit['count']>>
  /** Search units of the request if its texts have this many tokens; absent if none are charged. */
  readonly searchUnits?: (tokens: number) => number
}

/** Facts about a request of the Responses API. */
export interface ResponsesFacts {
  /**
   * Whether the upstream continues after the client has left, so that its output may not be seen while it is
   * generated.
   */
  readonly isBackground: boolean
  /** Number of tokens of the stored context that the request continues. */
  readonly contextTokens: number
  /** The request's body with the stored context included; absent if the gateway keeps none of that context. */
  readonly composed?: Buffer | undefined
}

/** Upper bounds of units other than tokens, and whether tokens may be audio or images. */
export type NonTokenBounds = Omit<UsageBounds, 'prompt' | 'output' | 'tools'>

/**
 * How one model may serve a request: its channels in order, the prices, and for how much quota is reserved.
 */
export interface Plan {
  /** The client's protocol. */
  readonly dialect: DialectFacts
  readonly request: ParsedRequest
  /** The client's request body. */
  readonly body: Buffer
  /** Texts of the fields of the client's form; undefined if some of them are only on disk. */
  readonly fields: readonly string[] | undefined
  /**
   * Allocates memory for more bytes until the call ends. Throws `overloaded` if none is left for the client.
   */
  readonly takeMemory: (bytes: number) => void
  readonly settings: Settings
  /** The model that the client requested. */
  readonly requestedModel: Model
  /** The requested model or a fallback of it. */
  readonly model: Model
  readonly group: Pick<Group, 'name' | 'budget'>
  readonly rate: ChargeRate
  readonly estimate: Estimate
  /** The channels in the order in which they are tried; never empty. */
  readonly channels: readonly ChannelPlan[]
  /** Why the model is tried, if not because the others have failed. */
  readonly reason?: FallbackReason | undefined
}

/** Limits on the output of a call. They determine how much quota is reserved for the call. */
export interface OutputBudget {
  /** Output tokens for which quota is reserved at first. */
  readonly tokens: number
  /**
   * The maximum of output tokens that is sent to every channel and that the channels are expected to respect;
   * undefined if there is none.
   */
  readonly maximum: number | undefined
  /** Output tokens for which more quota is reserved each time a stream nears the end of its reservation. */
  readonly slice: number
  /** Number of tool uses that fill the prompt with their results, and for which quota is reserved at first. */
  readonly readings: number
  /**
   * Computes the maximum cost of the call in quota units, with this many output tokens and this many uses of
   * tools that fill the prompt.
   */
  readonly quotaOf: (tokens: number, readings: number) => number
}

/** Estimated size and cost of a call. */
export interface Estimate {
  /** Maximum cost of the call in quota units. */
  readonly amount: number
  readonly budget: OutputBudget
  /** Maximum tokens of prompt and output for which quota is reserved at first. */
  readonly heldTokens: number
  /** Expected tokens of the prompt, without parts whose size is unknown. */
  readonly promptTokens: number
  /** Tokens assumed for the parts of the prompt whose size is unknown. */
  readonly unknownTokens: number
}

/** A channel of a plan, and what the channel would be sent. */
export interface ChannelPlan {
  readonly channel: Channel
  /** The maximum of output tokens that will be sent to the channel; undefined if none is sent. */
  readonly outputMaximum: number | undefined
  /** Number of choices requested from the channel. `outputMaximum` applies to each. */
  readonly choices: number
  /**
   * The request for the channel, before the channel's own changes; absent if the channel's model never
   * thinks.
   */
  readonly sent?: SentRequest
  /** Tools that the channel's provider may run itself; absent if there are none. */
  readonly tools?: ChannelTools
  /**
   * Returns the conversation as it is sent, so that its token count can be looked up from an earlier call;
   * undefined if it is not known yet. Absent if the request is not a conversation.
   */
  conversation?(): SentConversation | Promise<SentConversation | undefined>
  /**
   * Whether the request belongs to the provider account of this key. Other keys are tried only if that key no
   * longer exists.
   */
  isOfKey?(key: UpstreamKey): boolean
  /**
   * Creates the request for the channel. Throws the error for the client if that is impossible. `requester`:
   * the client on whose behalf files are fetched.
   */
  prepare(passThrough: boolean, requester: MediaRequester): AttemptRequest | Promise<AttemptRequest>
}

/** A conversation as it is sent to a channel, before the channel's own changes. */
export interface SentConversation {
  readonly dialect: ProtocolName
  readonly scan: ScannedObject
  readonly form: ConversationComparisonRules
  /** The upstream's name for the model. */
  readonly upstreamModel: string
  /** Headers that may change the prompt; names and values alternate. */
  readonly headers: readonly string[]
}

/** The provider's own tools in a request for one channel. */
export interface ChannelTools extends ProviderTools {
  /** The dialect of the channel's request. */
  readonly dialect: ProtocolName
  /** The upstream's name for the model. */
  readonly model: string
}

/** What a channel is sent, with any of its keys, and how its response is read. */
export interface AttemptRequest extends WireRequest {
  readonly method?: 'GET'
  readonly upstreamModel: string
  /**
   * Describes which members of the body are part of the prompt, or returns the prompt's text; absent if no
   * prompt is charged.
   */
  readonly prompt?: PromptRules | (() => string)
  /**
   * How a response that is passed through unchanged is read. If present, `tap` and `reply` are not called.
   */
  readonly passed?: PassthroughResponses
  /** Names of request fields that a conversion left out. */
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
  /** Set if a feature checks the stream: divides the work into turns. */
  readonly turns?: () => CheckTurns
  /** Reads a response that is not a stream. */
  reply(bytes: Buffer): WholeReply
}

/** Destination of one attempt: a channel with one of its keys, and the request that the channel is sent. */
export interface AttemptTarget {
  readonly channel: Channel
  readonly key: UpstreamKey
  /** Dialect of the client. */
  readonly client: ProtocolName
  readonly request: AttemptRequest
  /** The plan for this channel, from which the request was made. */
  readonly plan: ChannelPlan
  /** Texts of the client's request, with which words of the provider are compared. */
  readonly words: ComparedRequestTexts
  /** The features of the call, which may change texts of the provider's errors. */
  readonly features?: ErrorTexts
}

/** Changes texts of a provider's errors before they are sent to the client or recorded. */
export interface ErrorTexts {
  /** Whether any text may be changed. */
  readonly changesErrors: boolean
  /** `isRecorded`: whether the text is for the log and the usage log, and not for the client. */
  errorText(text: string, isRecorded?: boolean): string
}
