import { errorInAnswer } from '@sluice/wire/answer-error'
import { parseRecord } from '@sluice/wire/json/record'
import { ChunkList } from '@sluice/wire/sse/chunk-list'
import { isMediaType } from '../upstreams/media-type.ts'
import { type AnswerForm, answerOfEvents, eventsOfAnswer, formOfBytes, hasOtherForm } from './answer-form.ts'
import type { Call } from './call.ts'
import type { ResponseEnding } from './dialects/answer-reader.ts'
import { type Failure, failureInAnswer, failureWithoutResponse } from './failure.ts'
import { type ChargeBasis, chargeBasisOfStream } from './price-usage.ts'
import type { AttemptTarget } from './request-stages.ts'
import type { ResponseHandler } from './response-handler.ts'
import type { UpstreamFlow } from './upstream-flow.ts'
import { chargeBasisOfBeginning } from './whole-response.ts'

const EVENTS = 'text/event-stream'
const JSON_TYPE = 'application/json'

/** Maximum bytes of an answer that are collected in order to change its form. */
const MAX_BYTES = 64 * 1024 * 1024

/**
 * Passes a successful response on to its handler in the form that was requested. Its form is what its first bytes
 * are, whatever its content type says. If that is not what was requested, it is collected and changed.
 */
export class AnswerInAnyForm {
  readonly #call: Call
  readonly #target: AttemptTarget
  readonly #handler: ResponseHandler
  readonly #upstream: UpstreamFlow
  readonly #contentType: string
  /** Bytes that wait for the form to be known, or for the rest of the answer. */
  #held: ChunkList | undefined
  /** Set while the answer is collected. */
  #collected: AnswerForm | undefined
  /** Whether bytes go directly to the handler, or are ignored because it has failed. */
  #isPassed = false
  #isOver = false

  constructor(
    call: Call,
    target: AttemptTarget,
    handler: ResponseHandler,
    upstream: UpstreamFlow,
    contentType: string,
  ) {
    this.#call = call
    this.#target = target
    this.#handler = handler
    this.#upstream = upstream
    this.#contentType = contentType
  }

  onData(chunk: Buffer): void {
    if (this.#isPassed) return this.#handler.onData(chunk)
    if (this.#isOver) return
    if (this.#collected) return this.#collect(chunk)
    const bytes = this.#held ? Buffer.concat([this.#held.take(), chunk]) : chunk
    const form = formOfBytes(bytes, false, this.#mayBeSound)
    if (form === undefined) (this.#held ??= new ChunkList()).add(Buffer.from(bytes))
    else this.#begin(form, bytes)
  }

  onEnd(): void {
    if (this.#isOver) return
    if (!this.#isPassed && !this.#collected) {
      const bytes = this.#held?.take() ?? Buffer.alloc(0)
      this.#begin(formOfBytes(bytes, true, this.#mayBeSound) ?? 'other', bytes)
    }
    if (this.#collected) this.#change(this.#collected)
    else if (this.#isPassed) this.#handler.onEnd()
  }

  #begin(form: AnswerForm, bytes: Buffer): void {
    const contentType = this.#typeOf(form)
    if (this.#isOtherForm(form, contentType)) {
      this.#beginCollecting(form, bytes)
    } else if (contentType !== undefined && this.#handler.accepts(contentType)) {
      this.#isPassed = true
      this.#handler.onSuccess(isMediaType(contentType) ? contentType : this.#isStream ? EVENTS : JSON_TYPE)
      if (bytes.length > 0) this.#handler.onData(bytes)
    } else if (form === 'json') {
      this.#beginCollecting(form, bytes)
    } else this.#fail(failureWithoutResponse('unexpected content type'))
  }

  /** Whether the answer has another form than was requested, from which that one can be made. */
  #isOtherForm(form: AnswerForm, contentType = ''): boolean {
    const { request } = this.#target
    const isOther = this.#isStream ? form === 'json' : form === 'events' && contentType.startsWith(EVENTS)
    return isOther && hasOtherForm(request)
  }

  // The content type that the bytes have. Images and audio are of many types, and words may look like any form.
  #typeOf(form: AnswerForm): string | undefined {
    const stated = this.#contentType
    const { request } = this.#target
    const statesEvents = /^text\/event-stream\b/i.test(stated)
    if (request.passed) {
      if (request.passed.isText && !this.#isStream && /^(?:text\/plain\b|$)/i.test(stated)) return stated
      if (form === 'json') return /^application\/(?:[\w.-]+\+)?json\b/i.test(stated) ? stated : JSON_TYPE
      if (form === 'page' && stated.startsWith('text/')) return undefined
      const isEvents = form === 'events' && (this.#isStream || hasOtherForm(request))
      return isEvents && !statesEvents ? EVENTS : stated
    }
    if (form === 'page') return undefined
    if (form === 'events') return statesEvents ? stated : EVENTS
    if (form === 'json') return statesEvents || !/\bjson\b/i.test(stated) ? JSON_TYPE : stated
    return this.#isStream ? EVENTS : stated
  }

  get #mayBeSound(): boolean {
    return this.#target.request.passed !== undefined && !/\bjson\b/i.test(this.#contentType)
  }

  get #isStream(): boolean {
    return this.#call.plan.request.stream
  }

  #beginCollecting(form: AnswerForm, bytes: Buffer): void {
    this.#collected = form
    this.#handler.collected = (ending) => this.#basisSoFar(form, ending)
    // The attempt may end without this answer: its upstream broke off, its client left, or it was stopped.
    void Promise.allSettled([this.#handler.end]).then(() => this.#held && this.#drop())
    this.#collect(bytes)
  }

  #collect(chunk: Buffer): void {
    const held = (this.#held ??= new ChunkList())
    held.add(Buffer.from(chunk))
    if (held.length > MAX_BYTES) return this.#fail(failureWithoutResponse('answer too large'))
    this.#handler.holdBack(held.length)
  }

  #drop(): void {
    this.#isOver = true
    this.#held = undefined
    this.#handler.holdBack(0)
  }

  // Images and transcripts are charged as if no answer had begun.
  #basisSoFar(form: AnswerForm, ending: ResponseEnding): ChargeBasis | undefined {
    const { request } = this.#target
    if (!this.#held || request.passed) return undefined
    const bytes = this.#held.take()
    this.#drop()
    if (form === 'json') return chargeBasisOfBeginning(bytes, (json) => request.reply(json).facts, ending)
    const tap = request.tap(() => 0, { resize() {} })
    // Nobody gets what it forwards, so nothing is checked.
    tap.clientLeft?.()
    try {
      tap.push(bytes)
    } catch {
      // What came before an event that is too large counts.
    }
    tap.release()
    return chargeBasisOfStream(tap, ending, false, false)
  }

  #change(form: AnswerForm): void {
    const bytes = this.#held?.take() ?? Buffer.alloc(0)
    this.#drop()
    const { request } = this.#target
    const changed = this.#isStream && form === 'json' ? eventsOfAnswer(request, bytes) : undefined
    const made = changed ?? (form === 'events' ? answerOfEvents(request, bytes) : undefined)
    const contentType = form === 'json' ? EVENTS : JSON_TYPE
    if (!made || !this.#handler.accepts(contentType))
      return this.#handler.onFailure(this.#failureOf(form, bytes))
    this.#handler.onSuccess(contentType)
    this.#handler.onData(made)
    this.#handler.onEnd()
  }

  #failureOf(form: AnswerForm, bytes: Buffer): Failure {
    if (form === 'events') return failureWithoutResponse('stream ended early')
    const error = errorInAnswer(parseRecord(bytes.toString()), false)
    return error
      ? failureInAnswer(this.#target, error, 'error with status 200')
      : failureWithoutResponse('no answer of its protocol')
  }

  #fail(failure: Failure): void {
    this.#drop()
    this.#upstream.cancel()
    this.#handler.onFailure(failure)
  }
}
