import type { Usage } from '../../domain/usage.ts'
import type { Verdict } from '../sse/frame-loop.ts'
import type { FramePiece } from '../sse/frame-template.ts'
import { laterUsage } from '../reported-usage.ts'
import { ToolTally } from '../tool-tally.ts'
import { isErrorEvent } from '../sse/frame-splitter.ts'
import { StreamTap } from '../sse/stream-tap.ts'
import type { ErrorParts } from '../upstream-error.ts'
import { noteArrived } from './arrived.ts'
import { chatErrorFrame } from './errors.ts'
import { CITED_SEARCH } from './cited-pages.ts'
import { type ChunkFacts, readChunk } from './chunk.ts'
import { countsOut } from './usage-out.ts'

/** Options of `ChatTap`. */
export interface TapOptions {
  /** Whether the gateway asked for usage on its own account, so that its chunk is not forwarded. */
  readonly swallowUsage: boolean
  /**
   * Whether the client asked for usage: if the upstream sends none, a chunk with the charged usage is added.
   */
  readonly addUsage?: boolean
}

/**
 * Tap of a native chat stream, whose terminator is [DONE]. Swallows the usage chunk that the gateway asked
 * for.
 */
export class ChatTap extends StreamTap {
  readonly #swallowUsage: boolean
  override readonly tools = new ToolTally()
  /** Whether no usage was forwarded to a client that asked for it. */
  #lacksUsage: boolean
  /** Fields that all chunks of the stream share. */
  #common:
    | { readonly id: unknown; readonly object: unknown; readonly created: unknown; readonly model: unknown }
    | undefined
  /** Whether a choice has finished, by choice. */
  readonly #finished = new Map<number, boolean>()

  constructor(options: TapOptions) {
    super()
    this.#swallowUsage = options.swallowUsage
    this.#lacksUsage = options.addUsage === true
  }

  /** Whether every choice that was seen has a finish reason. */
  get sawFinish(): boolean {
    return this.#finished.size > 0 && [...this.#finished.values()].every(Boolean)
  }

  override finalBytes(charged: Usage): Buffer {
    const ending = super.finalBytes(charged)
    if (!this.#lacksUsage) return ending
    const { id, object = 'chat.completion.chunk', created, model } = this.#common ?? {}
    const chunk = { id, object, created, model, choices: [], usage: countsOut(charged) }
    return Buffer.concat([Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`), ending])
  }

  failureFrame(error: ErrorParts): Buffer {
    return chatErrorFrame(error)
  }

  protected read(data: string, frame: string): Verdict {
    if (this.isTerminator(data)) {
      this.done = true
      return 'end'
    }
    const facts = readChunk(data)
    if (facts?.isError || isErrorEvent(frame)) {
      this.error = { data, afterContent: this.contentFrames > 0 }
      // Text beside the error counts, because it is forwarded too.
      if (facts) this.#take(facts)
      return 'end'
    }
    return facts ? this.#take(facts) : 'forward'
  }

  protected pieceOf(data: string): FramePiece | undefined {
    const facts = readChunk(data)
    const choice = facts?.choices[0]
    const text = choice?.pieces[0]
    if (!facts || !choice || text === undefined || facts.choices.length > 1 || choice.pieces.length > 1)
      return undefined
    return facts.usage || facts.isError ? undefined : { index: choice.index, text }
  }

  protected isTerminator(data: string): boolean {
    return data.trim() === '[DONE]'
  }

  #take(facts: ChunkFacts): Verdict {
    this.usage = laterUsage(this.usage, facts.usage)
    if (this.#lacksUsage) this.#remember(facts)
    if (facts.isUsageChunk && this.#swallowUsage) return 'swallow'
    for (const delta of facts.deltas) noteArrived(delta, this.arrived, this.elidedBytes)
    for (const { index, pieces, finished, cites } of facts.choices) {
      if (cites) this.tools.note('cited', CITED_SEARCH)
      this.#finished.set(index, finished || this.#finished.get(index) === true)
      for (const piece of pieces) this.emit(index, piece)
    }
    return 'forward'
  }

  #remember({ chunk: { id, object, created, model }, hasUsageObject }: ChunkFacts): void {
    this.#common ??= { id, object, created, model }
    if (hasUsageObject) this.#lacksUsage = false
  }
}
