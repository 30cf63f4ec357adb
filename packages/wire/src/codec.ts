import type { Diagnosis } from './diagnosis.ts'
import type { ProtocolName } from './protocols.ts'
import type { Usage } from './usage.ts'
import type { ReplyContext, Conversation, MediaPart } from './conversation.ts'
import type { ArrivedMedia } from './received-media.ts'
import type { CopiedText, FrameWriter } from './frame-writer.ts'
import type { EventMemory } from './sse/frame-splitter.ts'
import type { Capabilities } from './model-capabilities.ts'
import type { Reply, ReplyEvent } from './reply.ts'
import type { ReportedUsage } from './reported-usage.ts'
import type { Served } from './service-tier.ts'
import type { SeenTools } from './tool-use.ts'
import type { ErrorContent } from './upstream-error.ts'
import type { ScannedObject } from './json/scanned-object.ts'

/**
 * Names of fields that a conversion left out, sent as `x-gateway-dropped`. The codec takes them from a fixed
 * list, so that they never contain a client's text.
 */
export type Dropped = Set<string>

/** Values of a reply that the encoder does not create itself, because it is a pure function. */
export interface ReplyIdentity {
  /** Creation time in Unix seconds. */
  readonly created: number
  /** Id for dialects whose ids have a format of their own. */
  readonly id: string
  /** Dialect of the upstream; undefined if it does not matter. */
  readonly upstream?: ProtocolName
}

/** The model for which a request is encoded. */
export interface UpstreamModel {
  /** The model's name at the upstream. */
  readonly name: string
  readonly capabilities: Capabilities
}

/**
 * Converts between conversations and a dialect of upstreams. All methods are synchronous and without side
 * effects.
 */
export interface UpstreamCodec {
  /** Reports whether `encodeRequest` cannot pass these media as a URL, so that they must be fetched first. */
  mustFetch(media: MediaPart): boolean
  /**
   * Encodes a request for the upstream. Media for which `mustFetch` is true must already be inline, and the
   * sampling settings must be acceptable to the model.
   */
  encodeRequest(conversation: Conversation, upstream: UpstreamModel, dropped: Dropped): Buffer
  /**
   * Name of the tool whose input is the text of the reply; undefined for most conversations. `encodeRequest`
   * forces this tool on a model that cannot follow a schema in another way; the client must not see it.
   */
  answerTool(conversation: Conversation, capabilities: Capabilities): string | undefined
  /** Decodes a whole reply with up to `choices` choices. Throws if the bytes are not a reply. */
  decodeReply(bytes: Buffer, choices?: number): Reply
  /**
   * Creates a decoder. `memory` limits the bytes of incomplete events. Choices beyond `choices` are ignored.
   */
  streamDecoder(memory?: EventMemory, choices?: number): StreamDecoder
}

/**
 * Converts in both directions, for a dialect that clients use too. All methods are synchronous and without
 * side effects.
 */
export interface Codec extends UpstreamCodec {
  /**
   * Decodes a checked request. Throws `invalid_request` with the path of a value that cannot be converted.
   */
  decodeRequest(scan: ScannedObject, dropped: Dropped): Conversation
  /** Encodes a reply. `replyContext` is for dialects whose responses repeat parts of the request. */
  encodeReply(reply: Reply, identity: ReplyIdentity, replyContext?: ReplyContext): Buffer
  streamEncoder(identity: ReplyIdentity, options: StreamOptions): StreamEncoder
}

/** The parts of the request that the encoder of a stream needs. */
export interface StreamOptions {
  readonly includeUsage: boolean
  /** The request, for dialects whose responses repeat parts of it. */
  readonly replyContext?: ReplyContext
  /** Whether the chunks are the elements of one JSON array instead of events; Gemini has both forms. */
  readonly jsonArray?: boolean
}

/** Decodes a stream, whose bytes may be split at any position. */
export interface StreamDecoder {
  /** Whether `push` may return events that refer to the pushed bytes (`CopiedText`). */
  copiesTexts?: boolean
  /** Usage that the upstream has reported so far; final when the stream has ended. */
  readonly usage: ReportedUsage | undefined
  /** What the upstream has stated about tier and region of the service; absent if only `usage` states it. */
  readonly served?: Served | undefined
  /** What the upstream states about the prompt cache; absent if its dialect has no such statement. */
  readonly diagnosis?: Diagnosis | undefined
  /** Audio, images and hidden reasoning so far. */
  readonly arrived: ArrivedMedia
  /** Uses of the provider's tools so far; absent if the dialect does not report uses. */
  readonly tools?: SeenTools
  /**
   * Returns the events that these bytes complete. Throws `upstream_error` for an event above the maximum
   * size. If there are complete events before it, they are returned, and the next `push` or `end` throws.
   */
  push(chunk: Buffer): ReplyEvent[]
  /**
   * Returns the last events after the upstream has closed the stream; empty if the stream had ended properly.
   */
  end(): ReplyEvent[]
  /** Releases its memory. Nothing may be pushed afterwards. */
  release(): void
}

/** Encodes a stream. How events are grouped into calls of `push` does not matter. */
export interface StreamEncoder {
  /**
   * Returns the frames for these events, without those that end the stream. A `failure` event has no frame
   * here; see `failureFrame`.
   */
  push(events: readonly ReplyEvent[]): string
  /**
   * Writes a frame that contains the bytes of this text unchanged. Returns false if the event must be given
   * to `push` instead.
   */
  copy(event: CopiedText, out: FrameWriter): boolean
  /**
   * Returns an event that only shows that the reply is still in progress; '' if the dialect has no such
   * event, or if it may not be sent yet. `model` is the name to use if the upstream has not named the model.
   */
  keepAliveFrame(model: string): string
  /**
   * Returns the frames that end a complete stream, which are sent after the call was charged; '' before the
   * `end` event. `charged` replaces the usage that the upstream reported.
   */
  finalFrames(charged?: Usage): string
  /** Returns the error frame that ends a broken stream. */
  failureFrame(error: ErrorContent): string
}
