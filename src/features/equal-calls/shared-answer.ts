import { Response } from '@sluice/http1'
import type { Settlement } from '../../domain/records/usage.ts'
import { type RequestMemory, ResizableAllocation } from '../../limits/request-memory.ts'
import type { WaysToAnswer } from '../../call/answer-request.ts'
import { type AnswerHead, DISCARDING_CONNECTION, NO_TRAITS } from '../../call/answers/answer-recorder.ts'
import { RunningAnswer } from '../../call/answers/running-answer.ts'
import type { IncomingCall } from '../../call/incoming-call.ts'
import type { AnswerStorageRules } from '../../call/dialects/answer-storage-rules.ts'
import type { AnswerFacts } from './answer-facts.ts'
import { canReuseAnswerBody, type RequestedBodyForm } from './answer-bodies.ts'
import type { AnswerConversions, AnswerToRead } from './answer-conversions.ts'
import { CallUnderWay, type EqualCall } from './equal-calls.ts'
import type { KeepingCall, KeptAnswer } from './kept-answers.ts'
import type { SharableCall } from './sharable-call.ts'

/** Answers up to this number of bytes are kept and shared. */
const MAX_BYTES = 33_554_432

/** A sharable call that has arrived. */
export interface CachedCall extends SharableCall, EqualCall {
  readonly ways: WaysToAnswer<AskedCall>
}

/** A call that is made: the answer that its equals share, or `bypass` if its answer cannot be shared. */
export type AskedCall = SharedAnswer | 'bypass'

/** A kept answer with its facts. */
export interface CachedAnswer {
  readonly kept: KeptAnswer
  readonly facts: AnswerFacts
}

/** The answer that equal calls share, in each form that their clients want. */
export class SharedAnswer extends CallUnderWay<CachedCall, CachedAnswer, AnswerFacts> {
  /** How the call ended, and the model whose plan served it; undefined before its charge is known. */
  made: { readonly settlement: Settlement; readonly model: string } | undefined
  /** The call that is made, and what keeps its answer; undefined if no call is made. */
  recorded: IncomingCall | undefined
  keeping: KeepingCall | undefined
  readonly #conversions: Pick<AnswerConversions, 'bodyFor'>
  /**
   * The whole body in the forms that clients have wanted so far. Its memory counts in the share of the first
   * call's client.
   */
  readonly #bodies = new Map<string, Promise<Buffer | undefined>>()
  readonly #memoryOfBodies: ResizableAllocation

  constructor(call: CachedCall, memory: RequestMemory, conversions: Pick<AnswerConversions, 'bodyFor'>) {
    const { owner } = call
    super(call, new RunningAnswer({ memory, owner, maxBytes: MAX_BYTES, staysWithoutClients: () => false }))
    this.#conversions = conversions
    this.#memoryOfBodies = new ResizableAllocation(memory, owner)
  }

  protected override release(): void {
    super.release()
    this.#bodies.clear()
    this.#memoryOfBodies.release()
  }

  /** Writes a kept answer, as if it came from an upstream. */
  replay({ status, headers }: AnswerHead, pieces: readonly Buffer[]): void {
    const { recorder } = this.answer
    recorder.writeHead(status, headers)
    for (const piece of pieces) recorder.write(piece)
    recorder.end()
  }

  /**
   * Waits for the end of the call for a client that needs the answer in another form. Resolves to false if
   * the client has left or the answer is no longer in memory; rejects with the error of the call.
   */
  async waitFor(response: Response): Promise<boolean> {
    if (response.isAborted) return false
    const waiting = new Response(DISCARDING_CONNECTION, NO_TRAITS)
    const attached = this.answer.attach(waiting)
    if (!attached) return false
    const unwatch = response.onClosed(() => waiting.onConnectionEnd('aborted'))
    try {
      await attached
    } finally {
      unwatch()
      waiting.onConnectionEnd('finished')
    }
    return !response.isAborted
  }

  /**
   * The whole answer in the form that a client wants, in pieces; undefined if it is incomplete, not in memory or
   * cannot be converted.
   */
  async bodyFor(facts: AnswerFacts, wanted: RequestedBodyForm): Promise<readonly Buffer[] | undefined> {
    const end = await this.answer.end
    if (end.kind !== 'complete' || !end.pieces) return undefined
    const { pieces } = end
    if (this.mayBeReused(facts, wanted)) return pieces
    const body = await (this.#rules.hasOwnIds
      ? this.converted(facts, wanted, pieces)
      : this.#convertedOnce(facts, wanted, pieces))
    return body && [body]
  }

  /**
   * Converts the answer made of these pieces to the form that a client wants; undefined if that is
   * impossible.
   */
  converted(
    facts: AnswerFacts,
    wanted: RequestedBodyForm,
    pieces: readonly Buffer[],
  ): Promise<Buffer | undefined> {
    return this.#conversions.bodyFor(this.toRead(facts, pieces), wanted, this.call.owner)
  }

  /** The answer made of these pieces, in the form in which `AnswerConversions` converts or checks it. */
  toRead({ form, includeUsage, usage }: AnswerFacts, pieces: readonly Buffer[]): AnswerToRead {
    return { keeping: this.#rules, form, includeUsage, usage, pieces }
  }

  /** Whether a client that wants one form can be sent an answer that was given in another, unchanged. */
  mayBeReused(given: RequestedBodyForm, wanted: RequestedBodyForm): boolean {
    return canReuseAnswerBody({ keeping: this.#rules, ...given }, wanted)
  }

  get #rules(): AnswerStorageRules {
    return this.call.rules
  }

  #convertedOnce(
    facts: AnswerFacts,
    wanted: RequestedBodyForm,
    pieces: readonly Buffer[],
  ): Promise<Buffer | undefined> {
    const form = `${wanted.form} ${wanted.includeUsage}`
    const known = this.#bodies.get(form)
    if (known) return known
    const body = this.converted(facts, wanted, pieces)
    this.#bodies.set(form, body)
    void body.then((made) => {
      // If there is no memory for the body, it is converted again for the next client.
      if (!this.isUsed || !made || !this.#memoryOfBodies.take(made.length)) this.#bodies.delete(form)
    })
    return body
  }
}
