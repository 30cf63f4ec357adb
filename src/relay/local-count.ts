import { Worker } from 'node:worker_threads'

/** Characters counted exactly, and all that crosses to the worker of a longer text. */
const EXACT = 256_000
/** Texts that wait at once before it counts as busy. */
const BUSY = 32
/** How long the worker, and its 70 MB of tables, outlives the last count. */
const IDLE_MS = 60_000

interface Waiting {
  readonly text: string
  readonly resolve: (tokens: number) => void
  readonly reject: (error: Error) => void
}

/**
 * Counts tokens here, for answers whose upstream does not say what they used. The work is done in a thread of its own,
 * which is started when it is needed: some texts take a tokenizer long. One text is counted at a time, so that those
 * that money depends on need not wait for the others.
 */
export class LocalCount {
  #worker: Worker | undefined
  #idle: NodeJS.Timeout | undefined
  /** The text that the worker counts. */
  #current: Waiting | undefined
  /** For charges, and for checks of holds: while one of these waits, no other is begun. */
  readonly #urgent: Waiting[] = []
  readonly #patient: Waiting[] = []

  /** The queue is so long that another text would wait long. */
  get isBusy(): boolean {
    return this.#urgent.length + this.#patient.length + (this.#current ? 1 : 0) >= BUSY
  }

  /** The number of tokens in `text`, by the vocabulary that most current models are near to. */
  count(text: string): Promise<number> {
    return this.#counted(text, this.#urgent)
  }

  /** The same for what is only told to callers: counted when nothing that is charged waits. */
  countPatiently(text: string): Promise<number> {
    return this.#counted(text, this.#patient)
  }

  /** Ends the thread; what it was counting is estimated by length. */
  async close(): Promise<void> {
    clearTimeout(this.#idle)
    await this.#worker?.terminate()
  }

  #counted(text: string, queue: Waiting[]): Promise<number> {
    if (text === '') return Promise.resolve(0)
    clearTimeout(this.#idle)
    return new Promise<number>((resolve, reject) => {
      queue.push({ text, resolve, reject })
      if (!this.#current) this.#next()
    }).catch(() => Math.ceil(Buffer.byteLength(text) / 4))
  }

  #next(): void {
    const next = (this.#current = this.#urgent.shift() ?? this.#patient.shift())
    if (next) {
      const { text } = next
      this.#worker ??= this.#start()
      this.#worker.postMessage({ text: text.slice(0, EXACT), length: text.length })
    } else this.#idle = setTimeout(() => void this.#worker?.terminate(), IDLE_MS).unref()
  }

  #start(): Worker {
    const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'))
    const worker = new Worker(new URL(`./local-count-worker${extension}`, import.meta.url))
    worker.unref()
    worker.on('message', (tokens: number) => {
      this.#current?.resolve(tokens)
      this.#next()
    })
    worker.on('error', () => {})
    worker.on('exit', () => {
      this.#worker = undefined
      const waiting = [this.#current, ...this.#urgent.splice(0), ...this.#patient.splice(0)]
      this.#current = undefined
      for (const each of waiting) each?.reject(new Error('the counting thread ended'))
    })
    return worker
  }
}
