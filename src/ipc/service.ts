import type { Transferable } from 'node:worker_threads'
import { type ErrorForm, PLAIN_ERRORS } from './error-form.ts'
import type { Handlers, MessageFromHelper, MessageToHelper } from './serve.ts'

/**
 * Pause in milliseconds before another attempt to start a helper. The pause doubles each time, up to the
 * maximum.
 */
const MIN_PAUSE_MS = 100
const MAX_PAUSE_MS = 5_000
/** Maximum milliseconds in which a helper loads its code, if a request has a time limit. */
const MAX_LOADING_MS = 60_000

/** A thread or process: the part of a `Worker` that a service uses. */
export interface Helper {
  on(event: 'message', listener: (message: MessageFromHelper) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'exit', listener: (code: number | null) => void): unknown
  postMessage(message: MessageToHelper, transfer?: readonly Transferable[]): void
  ref(): void
  unref(): void
  /** Resolves when the helper has ended. */
  terminate(): Promise<unknown>
}

/** Receives reports of a helper that could not be started, and of one that has started. */
export interface StartWatch {
  failed(name: string, reason: unknown): void
  started(name: string): void
}

/** What a service is made of. */
export interface ServiceOptions {
  /** Name of the helper in errors and in the log. */
  readonly name: string
  /** Starts the helper, with `startThread` or `startProcess`. */
  readonly start: (name: string) => Helper
  /** Whether this process stays alive while a request is pending. */
  readonly keepsAlive?: boolean
  /**
   * Whether the helper is never started again, because later requests depend on earlier ones. If it has ended,
   * they fail.
   */
  readonly isStateful?: boolean
  /** Milliseconds without a request after which the helper is ended. */
  readonly idleMs?: number
  /** How errors are sent; by default with message and stack. */
  readonly errors?: ErrorForm
  /**
   * If given, a helper that could not be started is started again after a pause, and requests fail until then.
   * Otherwise each request tries it.
   */
  readonly watch?: StartWatch
  /** Calls a function after some milliseconds, without keeping the process alive. */
  readonly setTimer?: (run: () => void, ms: number) => Disposable
}

/** Why a request was not answered: `late` if its time was over. */
type EndReason = 'not started' | 'ended' | 'late' | 'closed'

/** The helper could not be started, or has ended before it answered. */
export class ServiceEnded extends Error {
  readonly reason: EndReason

  constructor(name: string, reason: EndReason, cause?: unknown) {
    const detail = cause instanceof Error ? `: ${cause.message}` : ''
    const what = {
      'not started': 'is not running',
      ended: 'has ended',
      late: 'took too long',
      closed: 'is closed',
    }
    super(`the helper "${name}" ${what[reason]}${detail}`, { cause })
    this.name = 'ServiceEnded'
    this.reason = reason
  }
}

interface PendingRequest {
  readonly resolve: (result: never) => void
  readonly reject: (error: Error) => void
  timer: Disposable | undefined
}

/** One life of the helper. */
interface Run {
  readonly helper: Helper
  readonly pending: Map<number, PendingRequest>
  readonly ready: PromiseWithResolvers<void>
  lastId: number
  isReady: boolean
  idle: Disposable | undefined
  /** Why it was ended here; undefined while it runs, and if it ended by itself. */
  endReason: EndReason | undefined
}

/**
 * Sends requests to a thread or process, whose code calls `serve`. The helper is started by the first request,
 * and by the next one if it has ended, unless it is stateful. Requests arrive in their order. `Requests` has a
 * function for each, from its argument to its result.
 */
export class Service<Requests extends Handlers<Requests>> {
  readonly #options: ServiceOptions
  readonly #setTimer: NonNullable<ServiceOptions['setTimer']>
  #run: Run | undefined
  #isClosed = false
  /** Why a stateful helper has ended. */
  #lastEnd: ServiceEnded | undefined
  #pauseMs = 0
  /** Timer until the next attempt to start the helper. */
  #retry: Disposable | undefined

  constructor(options: ServiceOptions) {
    this.#options = options
    this.#setTimer = options.setTimer ?? ((run, ms) => setTimeout(run, ms).unref())
  }

  /** Whether there is a helper, which may still be loading its code. */
  get isRunning(): boolean {
    return this.#run !== undefined
  }

  /** Resolves when the helper has loaded its code, or has ended; at once if there is none. */
  get ready(): Promise<void> {
    return this.#run?.ready.promise ?? Promise.resolve()
  }

  /** Starts the helper, so that the first request need not wait for that. If it runs, its idle time begins again. */
  start(): void {
    if (this.#run?.pending.size === 0) this.#endWhenIdle(this.#run)
    try {
      this.#run ??= this.#started()
    } catch {
      // The first request fails, or the start is tried again.
    }
  }

  /**
   * Sends a request. Rejects with the error of its handler, or with `ServiceEnded`. The helper is ended if it
   * has not answered within `timeoutMs`, in which up to a minute to load its code does not count. Buffers in
   * `transfer` are moved to a thread instead of copied.
   */
  request<Name extends keyof Requests & string>(
    name: Name,
    argument: Parameters<Requests[Name]>[0],
    {
      transfer = [],
      timeoutMs,
    }: { readonly transfer?: readonly Transferable[]; readonly timeoutMs?: number } = {},
  ): Promise<Awaited<ReturnType<Requests[Name]>>> {
    return new Promise((resolve, reject) => {
      const run = (this.#run ??= this.#started())
      const id = run.lastId + 1
      run.helper.postMessage({ id, name, argument }, transfer)
      run.lastId = id
      const pending: PendingRequest = { resolve, reject, timer: undefined }
      run.pending.set(id, pending)
      if (timeoutMs !== undefined) this.#limit(run, id, pending, timeoutMs)
      run.idle?.[Symbol.dispose]()
      if (this.#options.keepsAlive === true) run.helper.ref()
    })
  }

  #limit(run: Run, id: number, pending: PendingRequest, timeoutMs: number): void {
    const endIn = (ms: number): void => {
      pending.timer?.[Symbol.dispose]()
      pending.timer = this.#setTimer(() => void this.#terminate(run, 'late'), ms)
    }
    if (run.isReady) return endIn(timeoutMs)
    endIn(MAX_LOADING_MS + timeoutMs)
    void run.ready.promise.then(() => {
      if (run.pending.has(id)) endIn(timeoutMs)
    })
  }

  /** Ends the helper, with which pending requests fail. The next request starts another. */
  async end(): Promise<void> {
    if (this.#run) await this.#terminate(this.#run, 'ended')
  }

  /** Ends the helper, with which pending requests fail. All later ones fail too. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#retry?.[Symbol.dispose]()
    if (this.#run) await this.#terminate(this.#run, 'closed')
  }

  async #terminate(run: Run, reason: EndReason): Promise<void> {
    run.endReason ??= reason
    if (this.#run === run) this.#run = undefined
    await run.helper.terminate()
  }

  #started(): Run {
    const { name, start } = this.#options
    if (this.#isClosed) throw new ServiceEnded(name, 'closed')
    if (this.#lastEnd) throw this.#lastEnd
    if (this.#retry) throw new ServiceEnded(name, 'not started')
    let helper: Helper
    try {
      helper = start(name)
    } catch (error) {
      this.#startAgainLater(error)
      throw new ServiceEnded(name, 'not started', error)
    }
    const run: Run = {
      helper,
      pending: new Map(),
      ready: Promise.withResolvers(),
      lastId: 0,
      isReady: false,
      idle: undefined,
      endReason: undefined,
    }
    let cause: unknown
    helper.on('message', (message) => this.#onMessage(run, message))
    helper.on('error', (error) => (cause = error))
    helper.on('exit', (code) => this.#onExit(run, cause ?? new Error(`exit code ${code}`)))
    this.#endWhenIdle(run)
    return run
  }

  #onMessage(run: Run, message: MessageFromHelper): void {
    if (message === 'ready') {
      run.isReady = true
      run.ready.resolve()
      this.#pauseMs = 0
      this.#options.watch?.started(this.#options.name)
      return
    }
    const pending = run.pending.get(message.id)
    run.pending.delete(message.id)
    pending?.timer?.[Symbol.dispose]()
    if (run.pending.size === 0) this.#endWhenIdle(run)
    if ('result' in message) pending?.resolve(message.result as never)
    else pending?.reject((this.#options.errors ?? PLAIN_ERRORS).unpack(message.error))
  }

  #onExit(run: Run, cause: unknown): void {
    if (this.#run === run) this.#run = undefined
    run.idle?.[Symbol.dispose]()
    run.ready.resolve()
    const { name } = this.#options
    const error = run.endReason
      ? new ServiceEnded(name, run.endReason)
      : new ServiceEnded(name, 'ended', cause)
    if (this.#options.isStateful === true) this.#lastEnd = error
    for (const { reject, timer } of run.pending.values()) {
      timer?.[Symbol.dispose]()
      reject(error)
    }
    run.pending.clear()
    if (!run.isReady && !run.endReason) this.#startAgainLater(error)
  }

  #endWhenIdle(run: Run): void {
    run.helper.unref()
    run.idle?.[Symbol.dispose]()
    const { idleMs } = this.#options
    if (idleMs !== undefined) run.idle = this.#setTimer(() => void this.#terminate(run, 'ended'), idleMs)
  }

  #startAgainLater(reason: unknown): void {
    const { name, watch } = this.#options
    if (!watch || this.#isClosed) return
    watch.failed(name, reason)
    this.#pauseMs = Math.min(2 * this.#pauseMs || MIN_PAUSE_MS, MAX_PAUSE_MS)
    this.#retry = this.#setTimer(() => {
      this.#retry = undefined
      this.start()
    }, this.#pauseMs)
  }
}
