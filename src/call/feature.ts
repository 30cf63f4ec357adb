import type { ResponseHeaders, UpstreamResponseHead } from '@sluice/http1'
import type { Conversation } from '@sluice/wire/conversation'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { Shape } from '@sluice/wire/shape/define-shape'
import type { ProtocolName, ServedProtocol } from '@sluice/wire/protocols'
import type { MediaPart } from '@sluice/wire/conversation'
import type { Usage } from '@sluice/wire/usage'
import type { ChargedBalances } from '../accounts/ledger/charged-balances.ts'
import type { Caller } from '../accounts/authentication/caller.ts'
import type { Endpoint } from '../domain/endpoints.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { Settlement } from '../domain/records/usage.ts'
import type { Settings } from '../domain/settings.ts'
import type { GatewayError } from '../errors.ts'
import type { UpstreamKey } from '../upstreams/key-ring.ts'
import type {
  AdmittedRequest,
  AnswerInCalls,
  AnswerRead,
  KnownState,
  RepeatWatcher,
  WaysToAnswer,
} from './answer-request.ts'
import type { Body, FormBody } from './body-reader.ts'
import type { RunningCall } from './running-call.ts'
import type { DecodedConversation } from './dialects/decoded-conversation.ts'
import type { RequestReaderContext } from './dialects/dialect.ts'
import type { DialectFacts } from './dialects/dialect-facts.ts'
import type { IncomingCall } from './incoming-call.ts'
import type { ReferringRequest, ResolvedReferences } from './dialects/references.ts'
import type { Plans } from './plan.ts'
import type { ChargeBasis } from './price-usage.ts'
import type { MediaPlace } from './media-fetcher.ts'
import type {
  AttemptRequest,
  AttemptTarget,
  ChannelPlan,
  ErrorTexts,
  ParsedRequest,
  Plan,
  ReadJson,
} from './request-stages.ts'
import type { CallSession } from './session.ts'

/**
 * A feature of the gateway. The relay calls its functions at the moments of a call, in the order in which they are declared.
 * For a whole answer except images and audio, `head` comes after `settled`, so that a header can state something about the answer.
 * `docs/architecture.md: Features`.
 */
export interface CallFeature<State = undefined> {
  /**
   * Whether the feature may take part in calls of an endpoint, or a function that decides that for an API key. The results
   * are cached until the settings or the key change. If absent, the feature may take part in all calls.
   */
  concerns?(settings: Settings, endpoint: Endpoint): boolean | ConcernsKey
  /**
   * Called when only the API key of a request is known. Returns a function that is called when the head of the response is
   * written, and returns headers. `protocol` is undefined if several protocols share the path.
   */
  headers?(
    incoming: IncomingCall,
    caller: Caller,
    protocol: ServedProtocol | undefined,
  ): MakeHeaders | undefined
  /** Called when the request is refused. The response waits until the promise resolves. */
  refused?(incoming: IncomingCall, caller: Caller): Promise<void>
  /**
   * Called when the body of a request was read, but not parsed. Returns a function that answers the request, or calls `next`;
   * undefined if the feature does not answer it.
   */
  read?(incoming: IncomingCall, settings: Settings): AnswerRead | undefined
  /**
   * Called when a request was scanned, but not checked. Returns a function that answers it by several calls; undefined if
   * one call answers it. Only the first feature with this moment is called.
   */
  divide?(request: ReadJson, settings: Settings): AnswerInCalls | undefined
  /**
   * Called when a request was checked that may refer to earlier answers. Rejects with the error for the client. Only the
   * first feature with this moment is called.
   */
  refer?(request: ReferringRequest, reader: RequestReaderContext): Promise<ResolvedReferences>
  /**
   * Answers a request that was checked. An answer that the feature gives itself it counts by `CallLimits.countModel`. If it
   * makes the call, it passes its state for the call, and `begin` is not called. It may change the request before.
   */
  answer?(request: AdmittedRequest, incoming: IncomingCall, ways: WaysToAnswer<State>): Promise<void>
  /** Called when an earlier answer is read again. Returns what checks it; undefined if the feature does not. */
  kept?(answer: KeptAnswer): KeptAnswerCheck | undefined
  /**
   * Called when a request is made that is answered later, maybe by another process. Returns what the feature has to know
   * then. Only the first feature with this moment is called.
   */
  suspended?(state: State): string
  /** Called when that answer has come, with what `suspended` returned. Returns the feature's state for the call. */
  resumed?(suspended: string, call: ResumedCall): State
  /** Called when a request gets the answer of another call. May return callbacks. */
  repeated?(request: AdmittedRequest, incoming: IncomingCall): RepeatWatcher | undefined
  /**
   * Called when the conversation of a request was decoded, which is converted to the dialects `spoken`. Returns undefined
   * if the feature leaves it as it is. Only the first feature with this moment is called.
   */
  decoded?(
    conversation: Conversation,
    spoken: ReadonlySet<ProtocolName>,
    reader: RequestReaderContext,
  ): Promise<DecodedConversation> | undefined
  /**
   * Called when the plans of a call are known. Returns the feature's state for the call; undefined if the feature does not
   * take part. If absent, the feature takes part in every call without a state, or has `answer`.
   */
  begin?(call: PlannedCall): State | undefined
  /** Returns the plans with the feature's changes, before quota is reserved for them. */
  plan?(state: State, plans: Plans): Plans | Promise<Plans>
  /** Called when quota is reserved for the call. */
  admitted?(state: State, call: RunningCall): void
  /**
   * Returns the keys of a channel that may be tried, in order. If the list is empty, the channel is tried after others of its
   * priority, with all keys.
   */
  keys?(
    state: State,
    plan: Plan,
    candidate: ChannelPlan,
    upstreamModel: string,
    keys: readonly UpstreamKey[],
  ): readonly UpstreamKey[]
  /** Called before a channel is tried. Resolves to the error for the client if the channel must not be tried. */
  tried?(
    state: State,
    call: RunningCall,
    plan: Plan,
    candidate: ChannelPlan,
  ): Promise<GatewayError | undefined> | undefined
  /** Called when a file was fetched for the request to a channel. Resolves to the file to send. */
  fetched?(state: State, call: RunningCall, file: MediaPart, place: MediaPlace): Promise<MediaPart>
  /** Changes the request for a channel before the channel's changes are applied. */
  adapt?(state: State, call: RunningCall, request: AttemptRequest, channel: Channel): AttemptRequest
  /**
   * Changes the request for a channel after the channel's changes were applied. Throws or rejects with the error for the
   * client if the channel cannot serve the call.
   */
  adapted?(
    state: State,
    call: RunningCall,
    request: AttemptRequest,
    channel: Channel,
  ): AttemptRequest | Promise<AttemptRequest>
  /** Called before a request is sent to a channel with one of its keys. May return callbacks for the attempt. */
  attempted?(state: State, call: RunningCall, target: AttemptTarget): AttemptWatcher | void
  /**
   * Called with what a tool has answered, before it is charged and sent. `shape` describes it like a request, in which
   * results of tools stand. Resolves to what may be sent; undefined if nothing may.
   */
  result?(
    state: State,
    call: RunningCall,
    answer: ScannedObject,
    shape: Shape,
  ): Promise<ScannedObject | undefined>
  /**
   * Called when the head of the answer is written, but not for errors. Adds headers. Answers from the cache have only those
   * of `src/features/equal-calls/hit-headers.ts`.
   */
  head?(state: State, call: RunningCall, headers: Record<string, string>): void
  /**
   * Called once a second while a stream is relayed. Returns whether the feature sends keep-alives, so that the stream does
   * not have to.
   */
  relaying?(state: State, call: RunningCall, nowMs: number, stream: RelayedStream): boolean
  /** Changes a text of a channel's error before it is sent to the client or recorded. */
  errorText?(state: State, text: string, isRecorded: boolean): string
  /** Called when all channels have failed, before the error is sent to the client. */
  failed?(state: State, call: RunningCall, error: Error): void
  /**
   * Called when an answer is complete, or its client left it or a guard ended it, and its usage is known. The call is charged
   * after the promise, if any, has resolved.
   */
  answered?(state: State, call: RunningCall, answer: AnsweredCall): Promise<void> | undefined
  /** Called when the row of the call is made, also without an answer. Returns columns. */
  row?(state: State): FeatureColumns
  /** Called when the charge of the call is known. */
  settled?(state: State, call: RunningCall, end: SettledCall): void
  /** Called when the call sends no further requests upstream. */
  closed?(state: State, call: RunningCall): void
  /** Called when the gateway stops. */
  close?(): void
}

/** Whether a feature may take part in calls of an API key. */
export type ConcernsKey = (caller: Caller) => boolean

/** Makes headers when the head of a response is written. */
export type MakeHeaders = () => ResponseHeaders | undefined

/** Callbacks of a feature during one attempt. */
export interface AttemptWatcher {
  /** Called with the head of the response. */
  head?(head: UpstreamResponseHead): void
  /** Called when bytes of an answer or an error have arrived from the channel. */
  received?(chunk: Buffer): void
  /** Called when the attempt is over. */
  over?(): void
}

/** The keys of a channel in the order in which they are tried. */
export interface OrderedKeys {
  readonly keys: readonly UpstreamKey[]
  /** Whether a feature has excluded all of them. Such a channel comes after others of its priority. */
  readonly isSpent: boolean
}

/** A call before quota is reserved for it. */
export interface PlannedCall {
  readonly incoming: IncomingCall
  readonly caller: Caller
  readonly settings: Settings
  readonly dialect: DialectFacts
  readonly request: ParsedRequest
  /** The body as the client sent it; undefined if the request has none. */
  readonly received: Body | FormBody | undefined
  readonly session: CallSession | undefined
  readonly plans: Plans
  readonly payer: ChargedBalances
  /** Quota units to hold, for the most expensive plan. */
  readonly amount: number
}

/** A stream that is being relayed. */
export interface RelayedStream {
  /** Number of writes to the client so far. */
  readonly writes: number
  /** Whether the last write ended an event, and the client has read what was sent. */
  readonly isBetweenEvents: boolean
  /** Returns the dialect's keep-alive event, without a number; undefined if it has none. */
  keepAlive(): Buffer | undefined
}

/** Columns of a call's row in the usage log that features fill in. */
export type FeatureColumns = Partial<Pick<Settlement, 'cache_break' | 'cache_verdict' | 'guards' | 'note'>>

/** An answer whose usage is known. */
export interface AnsweredCall {
  readonly target: AttemptTarget
  readonly usage: Usage
  /**
   * The charged usage, without an implausible total, and `text()`, the text of the answer; undefined if the usage was
   * measured.
   */
  readonly basis: ChargeBasis | undefined
  /** Whether the provider reported the usage, and it is plausible. */
  readonly isReported: boolean
  readonly row: { -readonly [Name in keyof FeatureColumns]: FeatureColumns[Name] }
}

/** How a call was settled. */
export interface SettledCall {
  /** Undefined if no channel answered. */
  readonly target: AttemptTarget | undefined
  readonly settlement: Settlement
  /** The charged usage; undefined if nothing was delivered, or if the usage was measured. */
  readonly basis: ChargeBasis | undefined
  /** Set if the content of the call is exported after it. */
  awaitsContent?: boolean
}

/** An earlier answer that its user reads again. */
export interface KeptAnswer {
  readonly incoming: IncomingCall
  readonly caller: Caller
  readonly settings: Settings
  readonly id: string
  readonly model: string
  readonly group: string
}

/** A call whose request was made earlier. */
export type ResumedCall = Pick<PlannedCall, 'incoming' | 'caller' | 'settings'>

/** Checks an earlier answer. */
export interface KeptAnswerCheck {
  /** Whether the answer may be changed or withheld, so that no part of it can be read alone. */
  readonly concernsAnswer: boolean
  /** Resolves to the answer as it may be sent, and further headers; undefined if the client has left. */
  check(
    body: Buffer,
  ): Promise<{ readonly body: Buffer; readonly headers: Readonly<Record<string, string>> } | undefined>
  /** Changes a text of the provider's error, which comes instead of the answer. */
  errorText: ErrorTexts['errorText']
  /** Called before a call that streams the answer again. Returns the feature's state for the call. */
  begin(): KnownState
  /** Called after that call. */
  ended(): void
}
