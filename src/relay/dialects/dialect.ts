import type { Channel, ProtocolName } from '../../domain/channel.ts'
import type { Model } from '../../domain/settings.ts'
import type { Usage } from '../../domain/usage.ts'
import type { ReplyFacts } from '../../protocols/reply-facts.ts'
import type { ReportedUsage } from '../../protocols/reported-usage.ts'
import type { ScannedObject } from '../../protocols/json/scanned-object.ts'
import type { StreamError, TapEnd, TapStep } from '../../protocols/sse/stream-tap.ts'
import type { Headers } from '../../server/header-names.ts'
import type { MediaRequester } from '../media.ts'

/** What relaying needs to know of a request, whatever protocol it came in. */
export interface RelayedRequest {
  readonly model: string
  readonly stream: boolean
  /** Output tokens that the caller names as the most; undefined where none is named. */
  readonly maxTokens: number | undefined
  /** At least as many tokens as the prompt can have. */
  readonly promptBound: number
  /** The provider may search the web for it. */
  readonly webSearch: boolean
  /**
   * It costs nothing, whatever the model costs, and is not recorded: neither in the usage log nor in its
   * sums.
   */
  readonly isFree?: boolean
  /** Upstreams need not offer what it asks for: a 404 then says nothing of the model. */
  readonly mayBeUnserved?: boolean
  /**
   * The request as this channel gets it, for this model; throws what the caller is to be told where it
   * cannot go there. `asker`: on whose behalf files are fetched, if any must be.
   */
  prepare(channel: Channel, model: Model, passThrough: boolean, asker: MediaRequester): Prepared | Promise<Prepared>
  /** The output tokens that the channel will be told as the most; undefined where it is told none. */
  outputMaximum(channel: Channel, model: Model): number | undefined
  /** How many answers the channel will be asked for, each of up to that maximum. */
  answers(channel: Channel): number
}

/** A request ready for a channel, and how its answer comes back. */
export interface Prepared {
  /** Below the channel's base URL. */
  readonly path: string
  /** Beside those of the channel, names and values in turn. */
  readonly headers: readonly string[]
  readonly body: Buffer
  /** The model's name as the upstream knows it. */
  readonly upstreamModel: string
  /** Fields that a conversion left out. */
  readonly dropped: readonly string[]
  /**
   * The stream's first event tells the tokens of the prompt, which its upstream may not have told by then.
   */
  readonly beginsWithPrompt?: boolean
  /**
   * The tap that watches, or converts, the answer's stream. `promptTokens` is asked where the first event
   * needs them.
   */
  tap(promptTokens: () => number): Tap
  /** What a whole answer says, and the bytes that the caller gets for it. */
  reply(bytes: Buffer): PreparedReply
}

/** A whole answer on its way to the caller. */
export interface PreparedReply {
  readonly facts: ReplyFacts
  /** To be asked for where the facts are valid; `charged` is the usage that the call was charged for. */
  body(charged: Usage): Buffer
}

/** What a stream goes through on its way to the caller. */
export interface Tap {
  /** The last valid usage. */
  readonly usage: ReportedUsage | undefined
  readonly error: StreamError | undefined
  /**
   * The error's frame as it came, where the caller's protocol is the upstream's; else it has to be put in
   * words.
   */
  readonly errorFrame: Buffer | undefined
  /** An event came, be it one that is not forwarded; comments are none. */
  readonly sawEvent: boolean
  /** A part of an event went on, and its end is to come. */
  readonly isMidEvent: boolean
  /** UTF-8 bytes of generated text, and the frames that had any. */
  readonly emittedBytes: number
  readonly contentFrames: number
  /** The generated text so far, for counting. */
  readonly text: string
  push(chunk: Buffer): TapStep
  end(): Pick<TapEnd, 'complete'>
  /** The bytes that end a complete stream, once it is charged: `charged` is the usage to tell. */
  last(charged: Usage): Buffer
  /** Gives back memory that is shared with other streams: nothing more comes. */
  release(): void
}

/** A protocol as callers speak it. */
export interface Dialect {
  readonly name: ProtocolName
  /** Checks a request; throws `invalid_request` naming the field. */
  read(scan: ScannedObject, headers: Headers): RelayedRequest
  /** What a tokenizer counts where the upstream reported nothing. */
  promptText(body: Buffer): { readonly text: string; readonly extraTokens: number }
  /** The frame that ends a stream which broke off. */
  errorFrame(error: { readonly type: string; readonly code: string; readonly message: string }): Buffer
}
