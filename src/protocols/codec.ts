import type { ProtocolName } from '../domain/protocols.ts'
import type { Usage } from '../domain/usage.ts'
import type { Asked, Conversation, MediaPart } from './conversation.ts'
import type { ArrivedMedia } from './arrived-media.ts'
import type { CopiedText } from './copied-text.ts'
import type { FrameWriter } from './frame-writer.ts'
import type { EventMemory } from './sse/event-memory.ts'
import type { Capabilities } from './model-capabilities.ts'
import type { Reply, ReplyEvent } from './reply.ts'
import type { ReportedUsage } from './reported-usage.ts'
import type { SeenTools } from './tool-tally.ts'
import type { ErrorParts } from './upstream-error.ts'
import type { ScannedObject } from './json/scanned-object.ts'

/**
 * Names of fields that a conversion left out, from a closed list of the codec's own; sent as
 * `x-gateway-dropped`.
 */
export type Dropped = Set<string>

/** Values for a new reply that a pure encoder cannot create itself. */
export interface ReplyIdentity {
  /** Creation time in Unix seconds. */
  readonly created: number
  /** Id for dialects whose ids have a form of their own. */
  readonly id: string
  /** Dialect of the upstream; undefined where it does not matter. */
  readonly upstream?: ProtocolName
}

/** Model that a request is written for. */
export interface UpstreamModel {
  /** Name that the upstream knows. */
  readonly name: string
  readonly capabilities: Capabilities
}

/** Conversion to and from a dialect that upstreams speak. Pure and synchronous. */
export interface UpstreamCodec {
  /** Whether `encodeRequest` cannot take the media as a URL, so that they must be fetched before. */
  mustFetch(media: MediaPart): boolean
  /** Encodes a request for the upstream; its media are inline where needed, and its sampling is accepted. */
  encodeRequest(conversation: Conversation, upstream: UpstreamModel, dropped: Dropped): Buffer
  /**
   * Tool whose input is the text of the reply: `encodeRequest` forces it on a model that cannot follow a
   * schema otherwise, and the client must not see it. Undefined for other conversations.
   */
  answerTool(conversation: Conversation, capabilities: Capabilities): string | undefined
  /** Decodes a whole reply, with as many choices as were asked for; throws where the bytes are none. */
  decodeReply(bytes: Buffer, choices?: number): Reply
  /**
   * Creates a decoder. `memory` is that of incomplete events. Choices beyond those that were asked for are
   * ignored.
   */
  streamDecoder(memory?: EventMemory, choices?: number): StreamDecoder
}

/** Both directions of the conversion of a dialect that clients speak, too. Pure and synchronous. */
export interface Codec extends UpstreamCodec {
  /** Decodes a checked request; throws `invalid_request` naming the path that cannot be converted. */
  decodeRequest(scan: ScannedObject, dropped: Dropped): Conversation
  /** Encodes a reply to `asked`, for dialects whose responses repeat parts of the request. */
  encodeReply(reply: Reply, identity: ReplyIdentity, asked?: Asked): Buffer
  streamEncoder(identity: ReplyIdentity, options: StreamOptions): StreamEncoder
}

/** Parts of the request that a stream's encoder needs. */
export interface StreamOptions {
  readonly includeUsage: boolean
  /** Request, for dialects whose responses repeat parts of it. */
  readonly asked?: Asked
  /** Whether the chunks are the elements of one JSON array, in a dialect that has both forms. */
  readonly jsonArray?: boolean
}

/** Decoder of a stream, whose bytes may be split anywhere. */
export interface StreamDecoder {
  /**
   * Whether `push` may return events that refer to the pushed bytes (`CopiedText`); absent if it never does.
   */
  copiesTexts?: boolean
  /** Usage that the upstream reported so far; final once the stream has ended. */
  readonly usage: ReportedUsage | undefined
  /** Sound, pictures and hidden reasoning so far. */
  readonly arrived: ArrivedMedia
  /** Uses of the provider's tools so far; absent where the dialect has none. */
  readonly tools?: SeenTools
  /**
   * Returns the events that these bytes complete. If there are none, throws `upstream_error` for an event
   * above the cap; else the next `push` or `end` throws.
   */
  push(chunk: Buffer): ReplyEvent[]
  /** Returns the last events when the upstream closed; none if the stream had ended properly. */
  end(): ReplyEvent[]
  /** Gives back its memory; nothing may be pushed afterwards. */
  release(): void
}

/** Encoder of a stream, from events in any grouping. */
export interface StreamEncoder {
  /**
   * Returns the frames for these events, except the final ones; nothing for a `failure` (see `failureFrame`).
   */
  push(events: readonly ReplyEvent[]): string
  /**
   * Writes the frame for this text with the text as it came; false where `push` must write it.
   */
  copy(event: CopiedText, out: FrameWriter): boolean
  /**
   * Returns an event that only says that the answer goes on; '' where the dialect has none, or none may come
   * yet. `model`: the name to state where the upstream has not stated one.
   */
  keepAliveFrame(model: string): string
  /**
   * Returns the frames that end a complete stream, to be sent once it is charged; '' before the `end` event.
   * `charged` replaces the usage that the upstream reported.
   */
  finalFrames(charged?: Usage): string
  /** Returns the error frame that ends a broken stream. */
  failureFrame(error: ErrorParts): string
}
