import type { MediaAnswerKind } from '@sluice/wire/media-texts'
import type { ReplyFacts } from '@sluice/wire/reply-facts'
import { ChunkList } from '@sluice/wire/sse/chunk-list'
import type { StreamError } from '@sluice/wire/sse/stream-tap'
import { NO_USAGE, type Usage } from '@sluice/wire/usage'
import { WithheldChunk } from '../withhold-end.ts'
import type {
  ChargedUsage,
  PassthroughOutput,
  PassthroughResponses,
  Passthrough,
  MeasuredCall,
} from '../passthrough.ts'

/** Reads a response with vectors while it arrives. */
interface VectorsReply {
  /** Whether what has arrived looks like a response with vectors. */
  readonly hasBegun: boolean
  /** The response so far, without its vectors. */
  readonly outline: string
  /** Facts of the response after it has ended. */
  readonly facts: ReplyFacts | undefined
  /** Reads a chunk of the upstream's response. Returns the bytes that can now be sent to the client. */
  push(chunk: Buffer): Buffer
  /** Ends the response. Returns the bytes that were still held back. */
  end(): Buffer
}

/** Passes a response with vectors in the client's own dialect through to the client. */
export class EmbeddingsPassthrough implements Passthrough {
  readonly #reply: VectorsReply
  readonly #held = new BufferedStart()
  #facts: ReplyFacts | undefined
  #hasBegun = false
  #last: Buffer | undefined

  constructor(reply: VectorsReply) {
    this.#reply = reply
  }

  get hasBegun(): boolean {
    return this.#hasBegun
  }

  get hasContent(): boolean {
    return this.#hasBegun
  }

  get error(): StreamError | undefined {
    return this.#facts?.error && { ...this.#facts.error, afterContent: false }
  }

  push(chunk: Buffer): PassthroughOutput {
    const forward = this.#held.push(this.#reply.push(chunk))
    this.#hasBegun ||= this.#held.isLarge && this.#reply.hasBegun
    return { forward, isOver: false }
  }

  end(): boolean {
    this.#last = this.#reply.end()
    this.#facts = this.#reply.facts
    return this.#facts?.valid === true
  }

  rest(): Buffer {
    return Buffer.concat([this.#held.rest(), ...(this.#last ? [this.#last] : [])])
  }

  measure(call: MeasuredCall, isComplete: boolean): Promise<ChargedUsage> {
    return measureEmbeddings(call, isComplete ? this.#facts?.usage : undefined)
  }
}

/** Maximum size in bytes of a response that is held back until it is complete. */
const MAX_HELD_BYTES = 1_048_576

/**
 * Holds back a small response completely, so that another upstream can be tried if it is incomplete. Of a
 * large response, only the end is held back; without it, clients do not accept the response as complete.
 */
export class BufferedStart {
  readonly #start = new ChunkList()
  readonly #end = new WithheldChunk()
  #isLarge = false

  /** Whether the response is too large to be held back, so that its bytes are forwarded. */
  get isLarge(): boolean {
    return this.#isLarge
  }

  /** Adds bytes of the response. Returns those that can be forwarded now. */
  push(bytes: Buffer): Buffer | undefined {
    if (this.#isLarge) return this.#end.push(bytes)
    this.#start.add(bytes)
    if (this.#start.length <= MAX_HELD_BYTES) return undefined
    this.#isLarge = true
    return this.#end.push(this.#start.take())
  }

  /** Returns the bytes that are held back. */
  rest(): Buffer {
    return this.#isLarge ? this.#end.rest() : this.#start.take()
  }
}

/**
 * Passes responses with vectors through; `begin` creates the reader of each. `about` is their kind if they have members of
 * the upstream; those that the gateway writes itself have no texts.
 */
export function embeddingsResponses(
  about: MediaAnswerKind | undefined,
  begin: () => Passthrough,
  measureUnanswered: PassthroughResponses['measureUnanswered'] = (call) => measureEmbeddings(call, undefined),
): PassthroughResponses {
  return {
    about,
    accept: 'application/json',
    begin: (contentType) => (/^text\/(?:event-stream|html)\b/i.test(contentType) ? undefined : begin()),
    measureUnanswered,
  }
}

/**
 * Resolves to the usage to charge: the reported tokens; if none were reported, the counted tokens of the
 * prompt. Nothing is counted if only calls have a price.
 */
export function measureEmbeddings(call: MeasuredCall, reported: Usage | undefined): Promise<ChargedUsage> {
  if (reported) return Promise.resolve({ usage: reported, isEstimate: false })
  return measureByCounting(call, NO_USAGE, () => call.countChargedPrompt())
}

/** Adds the tokens that `count` returns to those reported, unless the price does not depend on tokens. */
export async function measureByCounting(
  { plan: { rate } }: MeasuredCall,
  reported: Usage,
  count: () => Promise<number>,
): Promise<ChargedUsage> {
  if (!rate.perToken && !rate.free) return { usage: reported, isEstimate: false }
  return { usage: { ...reported, input: reported.input + (await count()) }, isEstimate: true }
}
