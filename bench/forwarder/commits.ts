import { Worker } from 'node:worker_threads'

/**
 * Writes rows of calls to the disk, each before the response ends: in a separate thread, one commit at a
 * time, with everything that arrived during the previous one.
 */
export class Commits {
  readonly #thread: Worker
  #waiting: { readonly tokens: number; readonly callback: () => void }[] = []
  #underWay: readonly (() => void)[] = []

  /** Opens the database at `path`. */
  constructor(path: string) {
    this.#thread = new Worker(new URL('./commit-thread.ts', import.meta.url), { workerData: path })
    this.#thread.on('message', () => {
      const written = this.#underWay
      this.#underWay = []
      this.#send()
      for (const callback of written) callback()
    })
  }

  /** Calls back once the tokens of a call are on the disk. */
  add(tokens: number, callback: () => void): void {
    this.#waiting.push({ tokens, callback })
    this.#send()
  }

  #send(): void {
    if (this.#underWay.length > 0 || this.#waiting.length === 0) return
    this.#underWay = this.#waiting.map(({ callback }) => callback)
    this.#thread.postMessage(this.#waiting.map(({ tokens }) => tokens))
    this.#waiting = []
  }
}
