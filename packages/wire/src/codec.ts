import type { CacheDiagnosis } from './cache-diagnosis.ts'
import type { ProtocolName } from './protocols.ts'
import type { Usage } from './usage.ts'
import type { ReplyContext, Conversation, MediaPart } from './conversation.ts'
import type { ReceivedMedia } from './received-media.ts'
import type { CopyableText, FrameWriter } from './frame-writer.ts'
import type { EventMemory } from './sse/frame-splitter.ts'
import type { Capabilities } from './model-capabilities.ts'
import type { Reply, ReplyEvent } from './reply.ts'
import type { ReportedUsage } from './reported-usage.ts'
import type { StatedService } from './service-tier.ts'
import type { ServerRules } from './server-rules.ts'
import type { ReportedToolUses } from './tool-use.ts'
import type { ErrorContent } from './upstream-error.ts'
import type { ScannedObject } from './json/scanned-object.ts'

/**
 * Names of fields that a conversion dropped, sent to the client as `x-gateway-dropped`. The codec takes them
 * from a fixed list, so they never contain text of the client.
 */
export type DroppedFields = Set<string>

/** Values of a new reply that a codec cannot create itself, because it is pure. */
export interface ReplyIdentity {
  /** The time at which the reply was created, in Unix seconds. */
  readonly created: number
  /** Returns the current time in Unix seconds, for replies that state when they were completed; else `created` is used. */
  readonly now?: () => number
  /**
   * A new id for the reply, used if the upstream states none or if its id has another format than the
   * client's protocol.
   */
  readonly id: string
  /**
   * The protocol of the upstream. Encoders use it to state how the usage was counted; undefined if that need
   * not be stated.
   */
  readonly upstream?: ProtocolName
}

/** The model that a request is encoded for. */
export interface UpstreamModel {
  /** The model's name at the upstream. */
  readonly name: string
  readonly capabilities: Capabilities
  readonly server: ServerRules
}

/**
 * Converts between the protocol of an upstream and the neutral form (`Conversation`, `Reply`). Pure and
 * synchronous.
 */
export interface UpstreamCodec {
  /** Whether these media must be fetched first because `encodeRequest` cannot send them as a URL. */
  mustFetch(media: MediaPart): boolean
  /**
   * Encodes a request for the upstream. Media for which `mustFetch` is true must already be inline, and the
   * sampling settings must be acceptable to the model.
   */
  encodeRequest(conversation: Conversation, upstream: UpstreamModel, dropped: DroppedFields): Buffer
  /**
   * The name of the tool whose input is the text of the reply. Undefined for most conversations.
   * `encodeRequest` forces a call of this tool if the model cannot follow a schema otherwise. The client must
   * not see the tool.
   */
  answerTool(conversation: Conversation, capabilities: Capabilities): string | undefined
  /**
   * Decodes a complete reply with at most the requested number of choices. Throws if the bytes are not a
   * reply.
   */
  decodeReply(bytes: Buffer, choices?: number): Reply
  /**
   * Creates a decoder. `memory` records the size of incomplete events. Choices beyond the requested number
   * are ignored.
   */
  streamDecoder(memory?: EventMemory, choices?: number): StreamDecoder
}

/**
 * Converts requests and replies in both directions, for protocols that clients and upstreams use. Pure and
 * synchronous.
 */
export interface Codec extends UpstreamCodec {
  /**
   * Decodes a checked request. Throws `invalid_request` with the path of a value that cannot be converted.
   */
  decodeRequest(scan: ScannedObject, dropped: DroppedFields): Conversation
  /** Encodes a reply. `replyContext` is for protocols whose responses repeat parts of the request. */
  encodeReply(reply: Reply, identity: ReplyIdentity, replyContext?: ReplyContext): Buffer
  streamEncoder(identity: ReplyIdentity, options: StreamOptions): StreamEncoder
}

/** The parts of the request that the encoder of a stream needs. */
export interface StreamOptions {
  readonly includeUsage: boolean
  /** The request, for protocols whose responses repeat parts of it. */
  readonly replyContext?: ReplyContext
  /**
   * Whether the chunks are elements of one JSON array instead of server-sent events. Only Gemini has both.
   */
  readonly jsonArray?: boolean
}

/** Decodes a stream, whose bytes may be split anywhere. */
export interface StreamDecoder {
  /**
   * Set by the caller. If true, `push` may return `CopiedText` events, which are valid only as long as the
   * pushed bytes are.
   */
  copiesTexts?: boolean
  /** Whether an event has arrived that is more than the beginning of an answer; comments do not count. */
  readonly sawEvent: boolean
  /** The usage that the upstream has reported so far. It is final when the stream has ended. */
  readonly usage: ReportedUsage | undefined
  /**
   * What the upstream has stated about the service tier and the region that it used; absent if only `usage`
   * states it.
   */
  readonly served?: StatedService | undefined
  /**
   * What the upstream has stated about hits and misses of the prompt cache. Absent if the protocol has no
   * such statement.
   */
  readonly diagnosis?: CacheDiagnosis | undefined
  /** The audio, images and hidden reasoning received so far. */
  readonly arrived: ReceivedMedia
  /** The uses of the provider's tools so far. Absent if the protocol does not report them. */
  readonly tools?: ReportedToolUses
  /**
   * Returns the events that these bytes complete. Throws `upstream_error` for an event above the maximum
   * size. If there are events before it, the next `push` or `end` throws instead.
   */
  push(chunk: Buffer): ReplyEvent[]
  /**
   * Returns the last events after the upstream has closed the connection. There are none if the stream had
   * already ended.
   */
  end(): ReplyEvent[]
  /** Releases the memory of the decoder. Nothing may be pushed afterwards. */
  release(): void
}

/** Encodes a stream. How events are grouped into calls of `push` does not matter. */
export interface StreamEncoder {
  /**
   * Returns the frames for these events, without those that end the stream. Returns nothing for a `failure`
   * event, whose frame comes from `failureFrame`.
   */
  push(events: readonly ReplyEvent[]): string
  /**
   * Writes a frame that contains the bytes of this text unchanged. Returns false if the event must be given
   * to `push` instead.
   */
  copy(event: CopyableText, out: FrameWriter): boolean
  /**
   * Returns an event that only shows that the reply is still in progress. Returns '' if the protocol has no
   * such event, or if none may be sent yet. `model` is used if the upstream has not named the model. `isNumbered`:
   * whether it has the number that events of its protocol have, if any, and begins the reply where that has not
   * begun; true by default.
   */
  keepAliveFrame(model: string, isNumbered?: boolean): string
  /**
   * Returns the frames that end a complete stream. They are sent after the call was charged. Returns ''
   * before the `end` event. `charged` replaces the usage that the upstream reported.
   */
  finalFrames(charged?: Usage): string
  /** Returns the error frame that ends an interrupted stream. */
  failureFrame(error: ErrorContent): string
}
