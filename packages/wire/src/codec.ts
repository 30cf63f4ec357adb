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

/** Values of a new reply that a pure encoder cannot create itself. */
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

/** Conversion between the shared form and a dialect of upstreams. Pure and synchronous. */
export interface UpstreamCodec {
  /** Reports whether `encodeRequest` cannot pass these media as a URL, so that they must be fetched first. */
  mustFetch(media: MediaPart): boolean
  /**
   * Encodes a request for the upstream. Media that need it must already be inline, and the sampling settings
   * accepted by the model.
   */
  encodeRequest(conversation: Conversation, upstream: UpstreamModel, dropped: Dropped): Buffer
  /**
   * Name of the tool whose input is the text of the reply; undefined for most conversations. `encodeRequest`
   * forces such a tool on a model that cannot follow a schema otherwise; the client must not see it.
   */
  answerTool(conversation: Conversation, capabilities: Capabilities): string | undefined
  /** Decodes a whole reply with as many choices as were requested. Throws if the bytes are not a reply. */
  decodeReply(bytes: Buffer, choices?: number): Reply
  /**
   * Creates a decoder. `memory` accounts for incomplete events. Choices beyond the requested number are
   * ignored.
   */
  streamDecoder(memory?: EventMemory, choices?: number): StreamDecoder
}

/** Conversion in both directions of a dialect that clients speak too. Pure and synchronous. */
export interface Codec extends UpstreamCodec {
  /**
   * Decodes a checked request. Throws `invalid_request` with the path of a value that cannot be converted.
   */
  decodeRequest(scan: ScannedObject, dropped: Dropped): Conversation
  /** Encodes a reply. `asked` is for dialects whose responses repeat parts of the request. */
  encodeReply(reply: Reply, identity: ReplyIdentity, replyContext?: ReplyContext): Buffer
  streamEncoder(identity: ReplyIdentity, options: StreamOptions): StreamEncoder
}

/** Parts of the request that a stream's encoder needs. */
export interface StreamOptions {
  readonly includeUsage: boolean
  /** The request, for dialects whose responses repeat parts of it. */
  readonly replyContext?: ReplyContext
  /** Whether the chunks are the elements of one JSON array instead of events (Gemini has both forms). */
  readonly jsonArray?: boolean
}

/** Decoder of a stream. Its bytes may be split anywhere. */
export interface StreamDecoder {
  /** Whether `push` may return events that refer to the pushed bytes (`CopiedText`). */
  copiesTexts?: boolean
  /** Usage that the upstream has reported so far; final once the stream has ended. */
  readonly usage: ReportedUsage | undefined
  /** What the upstream has stated about how it serves; absent if only `usage` states it. */
  readonly served?: Served | undefined
  /** What it states about the prompt cache; absent if its dialect has no such statement. */
  readonly diagnosis?: Diagnosis | undefined
  /** Audio, images and hidden reasoning so far. */
  readonly arrived: ArrivedMedia
  /** Uses of the provider's tools so far; absent if the dialect does not report them. */
  readonly tools?: SeenTools
  /**
   * Returns the events that these bytes complete. Throws `upstream_error` for an event above the maximum
   * size; if there are events before it, the next `push` or `end` throws instead.
   */
  push(chunk: Buffer): ReplyEvent[]
  /** Returns the last events after the upstream has closed; none if the stream had ended properly. */
  end(): ReplyEvent[]
  /** Releases its memory. Nothing may be pushed afterwards. */
  release(): void
}

/** Encoder of a stream. The grouping of events into pushes does not matter. */
export interface StreamEncoder {
  /**
   * Returns the frames for these events except the final ones. A `failure` event produces none; see
   * `failureFrame`.
   */
  push(events: readonly ReplyEvent[]): string
  /** Writes a frame with the bytes of this text unchanged. Returns false if `push` must write it instead. */
  copy(event: CopiedText, out: FrameWriter): boolean
  /**
   * Returns an event that only shows that the reply is still in progress; '' if the dialect has none, or if
   * none may be sent yet. `model` is the name to use if the upstream has not named the model.
   */
  keepAliveFrame(model: string): string
  /**
   * Returns the frames that end a complete stream, to be sent after it was charged; '' before the `end`
   * event. `charged` replaces the usage that the upstream reported.
   */
  finalFrames(charged?: Usage): string
  /** Returns the error frame that ends a broken stream. */
  failureFrame(error: ErrorContent): string
}
