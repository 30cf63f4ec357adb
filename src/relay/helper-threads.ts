import type { Worker } from 'node:worker_threads'
import type { Logger } from 'pino'

/**
 * Pause in milliseconds before another attempt to start a thread. The pause doubles each time, up to the
 * maximum.
 */
const MIN_PAUSE_MS = 100
const MAX_PAUSE_MS = 5_000

interface MissingThread {
  readonly pauseMs: number
  /** Timer until the next attempt to start the thread; undefined during an attempt. */
  timer: NodeJS.Timeout | undefined
}

/**
 * Starts helper threads. If a thread cannot be started, for example because the system allows no more, the
 * start is tried again after a pause. Until then, the results that the thread would compute are estimated.
 */
export class HelperThreads {
  readonly #log: Pick<Logger, 'error' | 'info'>
  readonly #missing = new Map<string, MissingThread>()
  #isClosed = false

  constructor(log: Pick<Logger, 'error' | 'info'>) {
    this.#log = log
  }

  /** Whether every needed thread could be started. */
  get areComplete(): boolean {
    return this.#missing.size === 0
  }

  /**
   * Starts a thread. Returns undefined if that fails; `retry` is then called after the pause and must start
   * the thread again.
   */
  start(name: string, make: () => Worker, retry: () => void): Worker | undefined {
    if (this.#missing.get(name)?.timer) return undefined
    try {
      const thread = make()
      const onEnd = (code: number): void => this.#failed(name, `it ended with code ${code}`, retry)
      thread.once('exit', onEnd)
      thread.once('online', () => {
        thread.off('exit', onEnd)
        if (this.#missing.delete(name))
          this.#log.info({ thread: name }, 'a helper thread could be started again')
      })
      return thread
    } catch (error) {
      this.#failed(name, error, retry)
      return undefined
    }
  }

  /** Prevents further attempts to start threads. */
  close(): void {
    this.#isClosed = true
    for (const { timer } of this.#missing.values()) clearTimeout(timer)
  }

  #failed(name: string, reason: unknown, retry: () => void): void {
    if (this.#isClosed) return
    const before = this.#missing.get(name)
    const pauseMs = before ? Math.min(2 * before.pauseMs, MAX_PAUSE_MS) : MIN_PAUSE_MS
    this.#log.error({ thread: name, err: reason }, 'a helper thread cannot be started: it is tried again')
    const missing: MissingThread = { pauseMs, timer: undefined }
    missing.timer = setTimeout(() => {
      missing.timer = undefined
      retry()
    }, pauseMs).unref()
    this.#missing.set(name, missing)
  }
}
