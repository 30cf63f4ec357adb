import type { TokenCounter } from '../../call/token-counter.ts'
import type { ResponseStore } from './response-store.ts'

/** Interval, in milliseconds, at which it is recorded how much of a stream was read. */
export const PROGRESS_INTERVAL_MS = 5_000

/** The part of a response's stream that this process has read so far. */
export interface StreamReadSoFar {
  /** Sequence numbers of the first and of the last event that was read. */
  readonly firstSequence: number
  readonly lastSequence: number
  readonly text: string
  /** Usage that the stream reported at its end. If there is one, the response is charged by it. */
  readonly usage: unknown
}

/** A running stream, and the length of its text when it was last recorded. */
interface RunningStream {
  readonly responseId: string
  readonly stream: StreamReadSoFar
  noted: number
}

/**
 * Records how much of each background response was streamed, to any client and on any node. If the provider
 * reports no usage, the charge is computed from these records.
 */
export class StreamProgress {
  readonly #responses: ResponseStore
  readonly #count: TokenCounter
  readonly #running = new Set<RunningStream>()
  /** Writes of records that have not ended, by the id of the response. */
  readonly #pending = new Map<string, Set<Promise<void>>>()
  readonly #timer: NodeJS.Timeout

  constructor(responses: ResponseStore, count: TokenCounter) {
    this.#responses = responses
    this.#count = count
    this.#timer = setInterval(() => this.#noteAll(), PROGRESS_INTERVAL_MS).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /**
   * Begins to record how much of a response's stream is read. The returned function must be called when the
   * stream has ended.
   */
  begin(responseId: string, stream: StreamReadSoFar): () => void {
    const running: RunningStream = { responseId, stream, noted: 0 }
    this.#running.add(running)
    return () => {
      if (this.#running.delete(running)) void this.#note(running)
    }
  }

  /** Resolves once the part of this response that was streamed by this process has been recorded. */
  async noted(responseId: string): Promise<void> {
    for (const running of this.#running) if (running.responseId === responseId) void this.#note(running)
    const pending = this.#pending.get(responseId)
    if (pending) await Promise.all(pending)
  }

  #noteAll(): void {
    for (const running of this.#running) void this.#note(running)
  }

  #note(running: RunningStream): Promise<void> {
    const { responseId, stream } = running
    const { firstSequence: first, lastSequence: last, text, usage } = stream
    if (usage !== undefined || text.length <= running.noted) return Promise.resolve()
    running.noted = text.length
    const pending = this.#pending.get(responseId) ?? new Set()
    this.#pending.set(responseId, pending)
    const noting = this.#count
      .count(text)
      .then((tokens) => this.#responses.recordStreamedPart(responseId, { first, last, tokens }))
      // If the write fails, the next record includes what this one contained.
      .catch(() => void (running.noted = 0))
      .finally(() => {
        pending.delete(noting)
        if (pending.size === 0) this.#pending.delete(responseId)
      })
    pending.add(noting)
    return noting
  }
}
