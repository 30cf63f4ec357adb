import type { FramePiece } from '../frame-template.ts'
import { eventOf } from '../sse.ts'
import { StreamTap, type Verdict } from '../stream-tap.ts'
import { type ChunkFacts, readChunk } from './chunk.ts'

/** How `ChatTap` is made. */
export interface TapOptions {
  /** The gateway asked for usage on its own account: the chunk that brings it is not forwarded. */
  readonly swallowUsage: boolean
  readonly maxEventBytes?: number
}

/** A native chat stream; its last word is [DONE]. Swallows the usage chunk that the gateway asked for. */
export class ChatTap extends StreamTap {
  readonly #swallowUsage: boolean
  /** By choice. */
  readonly #finished = new Map<number, boolean>()

  constructor(options: TapOptions) {
    super(options.maxEventBytes)
    this.#swallowUsage = options.swallowUsage
  }

  /** Every choice that was seen has a finish reason. */
  get sawFinish(): boolean {
    return this.#finished.size > 0 && [...this.#finished.values()].every(Boolean)
  }

  protected read(data: string, frame: string): Verdict {
    if (this.isLastWord(data)) {
      this.done = true
      return 'end'
    }
    const facts = readChunk(data)
    const saysNothing = facts === undefined || facts.choices.length === 0
    if (facts?.isError || (saysNothing && eventOf(frame) === 'error')) {
      this.error = { data, afterContent: this.contentFrames > 0 }
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

  protected isLastWord(data: string): boolean {
    return data.trim() === '[DONE]'
  }

  #take(facts: ChunkFacts): Verdict {
    if (facts.usage) this.usage = facts.usage
    if (facts.isUsageChunk && this.#swallowUsage) return 'swallow'
    for (const { index, pieces, finished } of facts.choices) {
      this.#finished.set(index, finished || this.#finished.get(index) === true)
      for (const piece of pieces) this.emit(index, piece)
    }
    return 'forward'
  }
}
