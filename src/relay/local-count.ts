import { Worker } from 'node:worker_threads'

/** Characters counted exactly, and all that crosses to the worker of a longer text. */
const EXACT = 256_000
/** Texts that wait at once before it counts as busy. */
const BUSY = 32
/** How long the worker, and its 70 MB of tables, outlives the last count. */
const IDLE_MS = 60_000

/**
 * Counts tokens here, for answers whose upstream does not say what they used. The work is done in a thread of its own,
 * which is started when it is needed: some texts take a tokenizer long.
 */
export class LocalCount {
  #worker: Worker | undefined
  #idle: NodeJS.Timeout | undefined
  #next = 0
  readonly #waiting = new Map<number, { resolve: (tokens: number) => void; reject: (error: Error) => void }>()

  /** So many texts wait to be counted that another would wait long. */
  get isBusy(): boolean {
    return this.#waiting.size >= BUSY
  }

  /** The number of tokens in `text`, by the vocabulary that most current models are near to. */
  count(text: string): Promise<number> {
    if (text === '') return Promise.resolve(0)
    clearTimeout(this.#idle)
    const worker = (this.#worker ??= this.#start())
    const id = this.#next++
    return new Promise<number>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      worker.postMessage({ id, text: text.slice(0, EXACT), length: text.length })
    }).catch(() => Math.ceil(Buffer.byteLength(text) / 4))
  }

  /** Ends the thread; what it was counting is estimated by length. */
  async close(): Promise<void> {
    clearTimeout(this.#idle)
    await this.#worker?.terminate()
  }

  #start(): Worker {
    const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'))
    const worker = new Worker(new URL(`./local-count-worker${extension}`, import.meta.url))
    worker.unref()
    worker.on('message', ({ id, tokens }: { id: number; tokens: number }) => {
      this.#waiting.get(id)?.resolve(tokens)
      this.#waiting.delete(id)
      if (this.#waiting.size === 0) {
        this.#idle = setTimeout(() => void this.#worker?.terminate(), IDLE_MS).unref()
      }
    })
    worker.on('error', () => {})
    worker.on('exit', () => {
      this.#worker = undefined
      for (const { reject } of this.#waiting.values()) reject(new Error('the counting thread ended'))
      this.#waiting.clear()
    })
    return worker
  }
}
