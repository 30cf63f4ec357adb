import type { Usage } from '../domain/usage.ts'
import type { Asked, Conversation, MediaPart } from './conversation.ts'
import type { EventBudget } from './sse/event-budget.ts'
import type { Capabilities } from './model-capabilities.ts'
import type { Reply, ReplyEvent } from './reply.ts'
import type { ReportedUsage } from './reported-usage.ts'
import type { ScannedObject } from './json/scanned-object.ts'

/**
 * Fields that a conversion left out, by names from a closed list of the codec's own; sent as
 * `x-gateway-dropped`.
 */
export type Dropped = Set<string>

/** What an encoder cannot know by itself: codecs are pure. */
export interface ReplyIdentity {
  /** Unix seconds. */
  readonly created: number
  /** For wires whose ids must have a form of their own. */
  readonly id: string
}

/** The model that a request is written for. */
export interface UpstreamModel {
  /** The name that the upstream knows. */
  readonly name: string
  readonly capabilities: Capabilities
}

/** Both directions of a protocol, for the road between two different ones. Pure and synchronous. */
export interface Codec {
  /** Reads a request that was checked; throws `invalid_request` naming the path where it cannot go on. */
  decodeRequest(scan: ScannedObject, dropped: Dropped): Conversation
  /**
   * Whether `encodeRequest` cannot take these media as they are: what they stand for has to be fetched
   * before.
   */
  mustFetch(media: MediaPart): boolean
  /**
   * The request as the upstream gets it; media are inline by now where the wire needs that, and sampling is
   * what the model accepts.
   */
  encodeRequest(conversation: Conversation, upstream: UpstreamModel, dropped: Dropped): Buffer
  /**
   * The tool whose input is the text of the answer: `encodeRequest` forces it on a model that has no other
   * way of keeping to a schema, and the caller must not see it. Undefined for other conversations.
   */
  answerTool(conversation: Conversation, capabilities: Capabilities): string | undefined
  /** Reads a whole reply; throws where it is none. */
  decodeReply(bytes: Buffer): Reply
  /** `asked` is the request that is answered, for wires whose responses depend on it. */
  encodeReply(reply: Reply, identity: ReplyIdentity, asked?: Asked): Buffer
  /** Events that are not whole yet take of the budget; without one, a stream has a budget of its own. */
  streamDecoder(budget?: EventBudget): StreamDecoder
  streamEncoder(identity: ReplyIdentity, options: StreamOptions): StreamEncoder
}

/** What a stream's encoder has to know of the request. */
export interface StreamOptions {
  readonly includeUsage: boolean
  /** The request that is answered, for wires whose responses depend on it. */
  readonly asked?: Asked
}

/** Reads a stream. Bytes may be cut anywhere. */
export interface StreamDecoder {
  /** Usage as the upstream told it up to now, final once the stream has ended. */
  readonly usage: ReportedUsage | undefined
  /**
   * The events that these bytes complete. Where there are none, throws `upstream_error` if one event is
   * larger than the cap, and `overloaded` if the budget is used up; else the next push, or the end, does.
   */
  push(chunk: Buffer): ReplyEvent[]
  /** What is left to say when the upstream ended its connection: nothing, if it had said its last word. */
  end(): ReplyEvent[]
  /** Gives back what it took of the budget: nothing more will be pushed. */
  release(): void
}

/** Writes a stream: events in, in whatever pieces. */
export interface StreamEncoder {
  /**
   * The frames for these events, but for the last of a stream; nothing for a `failure`, which `failure` has
   * the words for.
   */
  push(events: readonly ReplyEvent[]): string
  /**
   * The frames that end a complete stream, to be sent once it is charged; '' before the `end` event.
   * `charged` is the usage to tell, in place of what the upstream said.
   */
  finalFrames(charged?: Usage): string
  /** The frame that ends a stream that broke off, in this protocol's own words. */
  failureFrame(error: { readonly type: string; readonly code: string; readonly message: string }): string
}
