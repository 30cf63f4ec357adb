import type { EarlyHead, Response, ResponseHeaders } from '@sluice/http1'
import type { PoolShareOwner } from '../../limits/fair-pool.ts'
import { type RequestMemory, ResizableAllocation } from '../../limits/request-memory.ts'
import { type AnswerHead, AnswerRecorder } from './answer-recorder.ts'

/**
 * Milliseconds for which data sent to a client may remain unread before the client is disconnected. The time
 * is shorter than the maximum for which a relayed call waits for its client.
 */
const MAX_UNREAD_MS = 50_000
/** Memory that a piece takes in addition to its bytes, in bytes. */
const PIECE_OVERHEAD = 128
/**
 * Bytes by which the slowest client may be behind, once the beginning of the answer has been dropped. They are
 * not counted as memory of a client.
 */
const MAX_BEHIND = 65_536

/** How an answer ended. */
export type AnswerEnd =
  /** `pieces` is undefined if not all of the answer is in memory. */
  | {
      readonly kind: 'complete'
      readonly head: AnswerHead
      readonly pieces: readonly Buffer[] | undefined
      readonly bytes: number
    }
  /** The answer broke off, or all its clients left. */
  | { readonly kind: 'broken' }
  /** The call failed before it gave an answer. */
  | { readonly kind: 'failed'; readonly error: unknown }

/** What a running answer needs of its call. */
export interface RunningAnswerInputs {
  readonly memory: RequestMemory
  /** The client in whose share of memory the answer is kept. */
  readonly owner: PoolShareOwner
  /** Maximum size at which an answer is kept in memory completely. */
  readonly maxBytes: number
  /**
   * Called when the last client has left. Returns whether the call continues; otherwise it ends like a call
   * whose only client left.
   */
  readonly staysWithoutClients: () => boolean
}

/** A client of an answer. */
interface AttachedClient {
  readonly response: Response
  readonly extra: ResponseHeaders
  readonly mayBegin: () => boolean
  /** Number of pieces that were sent to the client. */
  sent: number
  /** Timer that runs while the client has not read what was sent. */
  stalled: NodeJS.Timeout | undefined
  readonly resolve: (isServed: boolean) => void
  readonly reject: (error: unknown) => void
}

/**
 * The answer of a running call, kept in memory from its beginning, for any number of clients. The memory is
 * taken from one client's share. When that is used up, the beginning is dropped: attached clients get the
 * rest as they read it, and no further client can attach.
 */
export class RunningAnswer {
  /** The response to which the call writes. */
  readonly recorder: Response
  readonly end: Promise<AnswerEnd>
  readonly #inputs: RunningAnswerInputs
  readonly #allocation: ResizableAllocation
  readonly #clients = new Set<AttachedClient>()
  readonly #resolveEnd: (end: AnswerEnd) => void
  #head: AnswerHead | undefined
  #pieces: Buffer[] = []
  /** Number of pieces at the beginning that are no longer in memory. */
  #dropped = 0
  #heldBytes = 0
  #takenBytes = 0
  #bytes = 0
  #isWhole = true
  /** Number of clients that were sent everything, and have not read it yet. */
  #reading = 0
  /** Finishes the response of the call; set once the answer is complete. */
  #finished: (() => void) | undefined
  #state: AnswerEnd['kind'] | 'under way' = 'under way'

  constructor(inputs: RunningAnswerInputs) {
    this.#inputs = inputs
    this.#allocation = new ResizableAllocation(inputs.memory, inputs.owner)
    const { promise, resolve } = Promise.withResolvers<AnswerEnd>()
    this.end = promise
    this.#resolveEnd = resolve
    this.recorder = new AnswerRecorder({
      begin: (head) => (this.#head = head),
      write: (piece) => this.#add(piece),
      complete: (finished) => this.#complete(finished),
      breakOff: () => this.#breakOff(),
      needsUpstream: () => {
        for (const { response } of this.#clients) response.needsUpstream()
      },
      keepAlive: (bytes, head) => this.#keepAlive(bytes, head),
    })
  }

  /** Number of clients that are getting the answer. */
  get clients(): number {
    return this.#clients.size
  }

  /** Whether the answer is over, complete or not. */
  get hasEnded(): boolean {
    return this.#state !== 'under way'
  }

  /** Whether the answer ended before it was complete. */
  get isLost(): boolean {
    return this.#state === 'broken' || this.#state === 'failed'
  }

  /** Whether the whole answer is in memory, so that further clients can attach. */
  get isWhole(): boolean {
    return this.#isWhole
  }

  /**
   * Sends the answer to a client from its beginning, as it arrives. Resolves to true when the client's
   * response has ended, and to false if the answer broke off before the client was sent anything, so that the
   * client can be given another. Rejects with the error of the call if there is no answer. Returns undefined
   * if the beginning is no longer in memory. `extra`: headers that replace those of the answer. `mayBegin`: called before
   * the client is sent anything of the answer; false if the client must not get it, as if the answer broke off.
   */
  attach(
    response: Response,
    extra: ResponseHeaders = {},
    mayBegin: () => boolean = () => true,
  ): Promise<boolean> | undefined {
    if (!this.#isWhole || this.isLost) return undefined
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    const client: AttachedClient = { response, extra, mayBegin, sent: 0, stalled: undefined, resolve, reject }
    this.#clients.add(client)
    if (response.isAborted) this.#left(client)
    else {
      response.onClosed(() => this.#left(client))
      this.#sendTo(client)
    }
    return promise
  }

  /**
   * Ends the call with an error, which its clients get. `response` is that of the client that made the call: what
   * observes the call's answer, such as the content log, goes on with the error that is sent there.
   */
  fail(error: unknown, response: Response): void {
    if (!this.#over('failed', { kind: 'failed', error })) return
    response.observer = this.recorder.observer
    const end = (): void => this.recorder.onConnectionEnd('finished')
    if (response.isAborted) end()
    else response.onClosed(end)
    for (const client of this.#clients) {
      this.#clients.delete(client)
      clearTimeout(client.stalled)
      client.reject(error)
    }
    this.#giveWay()
  }

  /**
   * Drops pieces that no attached client still needs, and frees their memory. No further client can attach.
   */
  release(): void {
    this.#giveWay()
  }

  #add(piece: Buffer): boolean {
    if (this.#state !== 'under way') return true
    if (piece.length > 0) {
      this.#bytes += piece.length
      this.#heldBytes += piece.length + PIECE_OVERHEAD
      this.#pieces.push(piece)
      if (this.#isWhole) this.#hold(piece.length + PIECE_OVERHEAD)
      for (const client of this.#clients) this.#sendTo(client)
      if (!this.#isWhole) this.#drop()
    }
    return this.#isWhole || this.#heldBytes <= MAX_BEHIND
  }

  // A client that has not got all pieces is skipped: it may be in the middle of an event, and has data to read.
  #keepAlive(bytes: Buffer, head: EarlyHead): void {
    const length = this.#dropped + this.#pieces.length
    for (const { response, extra, sent, stalled } of this.#clients)
      if (sent === length && stalled === undefined)
        response.keepAlive(bytes, { ...head, headers: { ...head.headers, ...extra } })
  }

  #hold(bytes: number): void {
    if (this.#bytes <= this.#inputs.maxBytes && this.#allocation.take(bytes)) this.#takenBytes += bytes
    else this.#isWhole = false
  }

  #giveWay(): void {
    this.#isWhole = false
    this.#drop()
  }

  /** Drops the pieces that have been sent to all clients. */
  #drop(): void {
    let least = this.#dropped + this.#pieces.length
    for (const { sent } of this.#clients) if (sent < least) least = sent
    for (const piece of this.#pieces.splice(0, least - this.#dropped))
      this.#heldBytes -= piece.length + PIECE_OVERHEAD
    this.#dropped = least
    const surplus = this.#takenBytes - this.#heldBytes
    if (surplus <= 0) return
    this.#takenBytes -= surplus
    this.#allocation.give(surplus)
  }

  #complete(finished: () => void): void {
    const { head } = this
    const pieces = this.#isWhole ? [...this.#pieces] : undefined
    if (!this.#over('complete', { kind: 'complete', head, pieces, bytes: this.#bytes })) return
    this.#finished = finished
    for (const client of this.#clients) this.#sendTo(client)
    if (!this.#isWhole) this.#drop()
    this.#finishOnceRead()
  }

  #breakOff(): void {
    if (!this.#over('broken', { kind: 'broken' })) return
    for (const client of this.#clients) {
      this.#clients.delete(client)
      clearTimeout(client.stalled)
      if (client.sent > 0) client.response.destroy()
      client.resolve(client.sent > 0)
    }
    this.#giveWay()
  }

  #over(state: AnswerEnd['kind'], end: AnswerEnd): boolean {
    if (this.#state !== 'under way') return false
    this.#state = state
    this.#resolveEnd(end)
    return true
  }

  private get head(): AnswerHead {
    return this.#head ?? { status: 200, headers: {} }
  }

  #sendTo(client: AttachedClient): void {
    const { response } = client
    const length = this.#dropped + this.#pieces.length
    const isComplete = this.#state === 'complete'
    if (client.sent === 0 && (length > 0 || isComplete) && !client.mayBegin()) {
      this.#clients.delete(client)
      return client.resolve(false)
    }
    while (client.stalled === undefined && client.sent < length) {
      const piece = this.#pieces[client.sent - this.#dropped] as Buffer
      client.sent += 1
      this.#sendHead(client)
      if (isComplete && client.sent === length) return this.#sent(client, piece)
      if (!response.write(piece)) this.#awaitClient(client)
    }
    if (isComplete && client.sent === length) this.#sent(client, undefined)
  }

  #sendHead({ response, extra }: AttachedClient): void {
    if (response.headersSent) return
    const { status, headers } = this.head
    response.writeHead(status, { ...headers, ...extra })
  }

  #sent(client: AttachedClient, last: Buffer | undefined): void {
    this.#sendHead(client)
    // The call no longer waits for this client, even if it still has to read what was sent.
    this.#clients.delete(client)
    clearTimeout(client.stalled)
    client.response.end(last)
    if (!client.response.isFinished && !client.response.isAborted) {
      this.#reading += 1
      client.response.onClosed(() => {
        this.#reading -= 1
        this.#finishOnceRead()
      })
    }
    client.resolve(true)
  }

  /** Lets the call give back the memory of its answer once all clients have read the answer. */
  #finishOnceRead(): void {
    if (this.#clients.size === 0 && this.#reading === 0) this.#finished?.()
  }

  #awaitClient(client: AttachedClient): void {
    client.stalled = setTimeout(() => client.response.destroyUnread(), MAX_UNREAD_MS).unref()
    client.response.whenDrained(() => {
      // The answer may have failed, and then its pieces are gone before its client.
      if (!this.#clients.has(client)) return
      clearTimeout(client.stalled)
      client.stalled = undefined
      this.#sendTo(client)
      if (!this.#isWhole) this.#moveOn()
    })
  }

  #left(client: AttachedClient): void {
    if (!this.#clients.delete(client)) return
    clearTimeout(client.stalled)
    client.resolve(true)
    if (!this.#isWhole) this.#moveOn()
    this.#finishOnceRead()
    if (this.#clients.size > 0 || this.#state !== 'under way' || this.#inputs.staysWithoutClients()) return
    this.recorder.onConnectionEnd('aborted')
    this.#breakOff()
  }

  /** Lets the call write on after its slowest client has read something or has left. */
  #moveOn(): void {
    this.#drop()
    if (this.#heldBytes <= MAX_BEHIND) this.recorder.onDrain()
  }
}
