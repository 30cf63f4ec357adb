import { Service, type StartWatch } from '../ipc/service.ts'
import { startThread } from '../ipc/start-thread.ts'

/** Number of waiting and running texts from which the counter counts as busy. */
const BUSY_TEXTS = 32
/** Maximum characters of short texts that are sent to the thread together. */
const MAX_BATCH_LENGTH = 16_384
/** Idle time, in milliseconds, after which the worker thread with its 36 MB is ended. */
const IDLE_MS = 60_000

/** The requests of the thread. */
export interface TokenCountRequests {
  /** The number of tokens of each text. */
  count(texts: readonly CountedText[]): readonly number[]
}

interface Waiting {
  readonly text: string
  readonly resolve: (tokens: number) => void
}

/**
 * Counts tokens, for responses whose upstream does not report them. It uses a thread of its own, which is
 * started when needed, because some texts take long. Batches are small, so that texts for charges need not
 * wait long for others.
 */
export class TokenCounter {
  readonly #offset: number
  readonly #service: Service<TokenCountRequests>
  /** Texts that the thread is counting now. */
  #current: readonly Waiting[] = []
  #isIdle = true
  /**
   * Texts that are counted for charges, and to check that a call stays within its reserved amount. While one
   * of them waits, no other text is counted.
   */
  readonly #highPriority: Waiting[] = []
  readonly #lowPriority: Waiting[] = []

  /** `offset`, a random number from 0 to 1, determines which pieces of very long texts are counted. */
  constructor(offset: number, watch: StartWatch) {
    this.#offset = offset
    this.#service = new Service({
      name: 'tokenizer',
      start: (name) => startThread('./token-counter-worker', import.meta.url, { name }),
      idleMs: IDLE_MS,
      watch,
    })
  }

  /** Whether another text would have to wait long until it is counted. */
  get isBusy(): boolean {
    return this.#highPriority.length + this.#lowPriority.length + this.#current.length >= BUSY_TEXTS
  }

  /** Resolves when the thread has loaded its vocabulary, or has ended. */
  get loading(): Promise<void> {
    return this.#service.ready
  }

  /** Starts the thread, so that the first texts need not wait for its vocabulary. Resolves like `loading`. */
  load(): Promise<void> {
    this.#service.start()
    return this.loading
  }

  /** Counts the tokens in `text`, with a vocabulary that is close to those of most current models. */
  count(text: string): Promise<number> {
    return this.#enqueue(text, this.#highPriority)
  }

  /** Counts tokens for purposes other than a charge; starts only while no text for a charge is waiting. */
  countLowPriority(text: string): Promise<number> {
    return this.#enqueue(text, this.#lowPriority)
  }

  /** Ends the thread. Texts that are being counted are estimated by their length. */
  close(): Promise<void> {
    return this.#service.close()
  }

  // A message to the thread costs more than counting a short text, so texts of one turn of the event loop are
  // sent together.
  #enqueue(text: string, queue: Waiting[]): Promise<number> {
    if (text === '') return Promise.resolve(0)
    return new Promise((resolve) => {
      queue.push({ text, resolve })
      if (!this.#isIdle) return
      this.#isIdle = false
      setImmediate(() => void this.#countAll())
    })
  }

  async #countAll(): Promise<void> {
    for (let batch = this.#nextBatch(); batch.length > 0; batch = this.#nextBatch()) {
      this.#current = batch
      const texts = batch.map(({ text }) => cutTextToCount(text, this.#offset))
      const tokens = await this.#service.request('count', texts).catch(() => batch.map(estimateTokens))
      this.#current = []
      for (const [index, { resolve }] of batch.entries()) resolve(tokens[index] ?? 0)
    }
    this.#isIdle = true
  }

  #nextBatch(): Waiting[] {
    const batch: Waiting[] = []
    let charactersLeft = MAX_BATCH_LENGTH
    for (const queue of [this.#highPriority, this.#lowPriority]) {
      for (
        let next = queue[0];
        next && (batch.length === 0 || next.text.length <= charactersLeft);
        next = queue[0]
      ) {
        batch.push(next)
        charactersLeft -= next.text.length
        queue.shift()
      }
    }
    return batch
  }
}

/** Estimates the tokens of a text by its length, because no thread has counted them. */
function estimateTokens({ text }: Waiting): number {
  return Math.ceil(Buffer.byteLength(text) / 4)
}

/**
 * Length of a piece in characters. Pieces are short because the time to count a run of one letter grows with
 * its square.
 */
export const PIECE_LENGTH = 2_000
/** Maximum number of pieces that are counted of one text. They have 256,000 characters in total. */
const MAX_PIECES = 128
/**
 * Fractional part of the golden ratio. Its multiples modulo 1 are spread evenly, so they choose pieces from
 * all over a text.
 */
const GOLDEN = (Math.sqrt(5) - 1) / 2

/** The pieces of a text that are counted, and how their count is scaled to the whole text. */
export interface CountedText {
  readonly pieces: readonly string[]
  /** Characters of the whole text per character of the pieces; 1 if the pieces are the whole text. */
  readonly factor: number
}

/**
 * Cuts a text into pieces to count. Of a text above 256,000 characters, only pieces spread evenly over it are
 * taken. `offset`, from 0 to 1, decides which; authors of texts must not be able to guess it. A text that
 * grows keeps most of its pieces, whose counts are then already known.
 */
export function cutTextToCount(text: string, offset: number): CountedText {
  const all = Math.ceil(text.length / PIECE_LENGTH)
  const pieces: string[] = []
  let length = 0
  for (let index = 0; index < all; index++) {
    if (all > MAX_PIECES && ((index + 1) * GOLDEN + offset) % 1 >= MAX_PIECES / all) continue
    const piece = text.slice(index * PIECE_LENGTH, (index + 1) * PIECE_LENGTH)
    pieces.push(piece)
    length += piece.length
  }
  return { pieces, factor: length === 0 ? 0 : text.length / length }
}
