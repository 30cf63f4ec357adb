import type { OutgoingBody } from '@sluice/http1'
import type { ContentPolicy } from '../domain/content-log.ts'
import { GrowingBytes } from './growing-bytes.ts'
import type { ContentBytes } from './parts.ts'

/** A call whose content is kept. */
export interface CapturedCall extends ContentPolicy {
  readonly id: string
  readonly userId: number
  readonly tokenId: number
  /** Unix milliseconds. */
  readonly startedMs: number
}

/** Why a call's content is not kept. */
export type DropReason = 'full' | 'failed'

/** The queue behind captures: counts what they hold, and takes what is complete. */
export interface CaptureQueue {
  /** Takes memory for a call; false if its share, or the whole, is used up. */
  take(call: CapturedCall, bytes: number): boolean
  give(call: CapturedCall, bytes: number): void
  /** Adds the content of a call, whose memory is already taken. */
  add(call: CapturedCall, content: ContentBytes, bytes: number): void
  dropped(reason: DropReason): void
}

/**
 * Content of one call while it runs. Nothing here waits or throws: where no memory is left, the content of the
 * call is dropped, and counted. `docs/api.md: Content log`.
 */
export class ContentCapture {
  readonly #call: CapturedCall
  readonly #queue: CaptureQueue
  readonly #requestReceived: Buffer
  #requestSent: Buffer | undefined
  #answerReceived = new GrowingBytes()
  /** The answer as sent, from the byte on at which it differs from the one received. */
  #answerSent: GrowingBytes | undefined
  /** Bytes of the answer as sent that equal the one received. */
  #equalBytes = 0
  #taken = 0
  #isOver = false
  #isRelayed = false
  #isClosed = false
  /** Called once with what is kept of the call; with undefined if it is dropped. */
  onOver: ((content: ContentBytes | undefined) => void) | undefined
  readonly #take = (bytes: number): boolean => {
    if (!this.#queue.take(this.#call, bytes)) return false
    this.#taken += bytes
    return true
  }

  constructor(call: CapturedCall, queue: CaptureQueue, requestReceived: Buffer) {
    this.#call = call
    this.#queue = queue
    this.#requestReceived = requestReceived
  }

  /** Begins an attempt: what an earlier one received was not delivered. */
  beginAttempt(): void {
    if (this.#isOver) return
    this.#requestSent = undefined
    this.#queue.give(this.#call, this.#answerReceived.capacity)
    this.#taken -= this.#answerReceived.capacity
    this.#answerReceived = new GrowingBytes()
  }

  /** Notes a request as it is sent. A further one after an answer is added to the former. */
  readonly onBody = (body: Buffer | OutgoingBody): void => {
    if (this.#isOver || !Buffer.isBuffer(body)) return
    const before = this.#answerReceived.length > 0 ? this.#requestSent : undefined
    this.#requestSent = before ? Buffer.concat([before, body]) : body
  }

  /** Notes bytes of the upstream's answer. */
  answerReceived(chunk: Buffer): void {
    if (!this.#isOver && !this.#answerReceived.add(chunk, this.#take)) this.#drop('full')
  }

  /** Notes bytes of the answer to the client. */
  answerSent(piece: Buffer): void {
    if (this.#isOver) return
    if (!this.#answerSent) {
      if (this.#answerReceived.hasAt(this.#equalBytes, piece)) {
        this.#equalBytes += piece.length
        return
      }
      this.#answerSent = new GrowingBytes()
      const equal = this.#answerReceived.bytes.subarray(0, this.#equalBytes)
      if (!this.#answerSent.add(equal, this.#take)) return this.#drop('full')
    }
    if (!this.#answerSent.add(piece, this.#take)) this.#drop('full')
  }

  /** Notes that the relay has settled the call. */
  relayed(): void {
    this.#isRelayed = true
    this.#finish()
  }

  /** Notes that the answer was sent, or that the client left. */
  closed(): void {
    this.#isClosed = true
    this.#finish()
  }

  #finish(): void {
    if (this.#isOver || !this.#isRelayed || !this.#isClosed) return
    const received = this.#requestReceived
    const sent = this.#requestSent
    const isSame = !sent || sent === received || sent.equals(received)
    if (!this.#take(1 + received.length + (isSame ? 0 : sent.length))) return this.#drop('full')
    this.#isOver = true
    const answer = this.#answerReceived.bytes
    const answered = this.#answerSent?.bytes ?? answer.subarray(0, this.#equalBytes)
    const isDelivered = !this.#answerSent && this.#equalBytes === answer.length
    const content: ContentBytes = {
      request_received: received,
      ...(!isSame && { request_sent: sent }),
      ...(answer.length > 0 && { answer_received: answer }),
      ...(!isDelivered && { answer_sent: answered }),
    }
    this.#queue.add(this.#call, content, this.#taken)
    this.onOver?.(content)
  }

  #drop(reason: DropReason): void {
    this.#isOver = true
    this.#queue.give(this.#call, this.#taken)
    this.#taken = 0
    this.#requestSent = undefined
    this.#answerReceived = new GrowingBytes()
    this.#answerSent = undefined
    this.#queue.dropped(reason)
    this.onOver?.(undefined)
  }
}
