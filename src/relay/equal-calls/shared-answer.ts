import { Response } from '@sluice/http1'
import { ResizableAllocation } from '../../limits/request-memory.ts'
import { type AnswerHead, DISCARDING_CONNECTION } from '../answers/answer-recorder.ts'
import type { KeptAnswer } from './kept-answers.ts'
import { RunningAnswer, type RunningAnswerInputs } from '../answers/running-answer.ts'
import type { AnswerStorageRules } from './answer-storage-rules.ts'
import type { AnswerFacts } from './answer-facts.ts'
import { canReuseAnswerBody, type RequestedBodyForm } from './answer-bodies.ts'
import type { AnswerConversions, AnswerToRead } from './answer-conversions.ts'

/** Where an answer comes from: the store, or a running call. */
export type AnswerSource = { readonly kept: KeptAnswer; readonly facts: AnswerFacts } | 'call'

type SharedAnswerInputs = Omit<RunningAnswerInputs, 'staysWithoutClients'>

/**
 * The answer that equal calls share. The first call looks for it in the store or asks an
 * upstream; the calls that arrive meanwhile wait for it.
 */
export class SharedAnswer {
  readonly answer: RunningAnswer
  readonly keeping: AnswerStorageRules
  /** The form in which the answer is produced: the one that the client of the first call wants. */
  readonly given: RequestedBodyForm
  /** Resolves once the first call knows where the answer comes from. Never rejects. */
  readonly source: Promise<AnswerSource>
  /** Resolves at the end of the call; to undefined if its answer cannot be given to other calls. */
  readonly facts: Promise<AnswerFacts | undefined>
  readonly #inputs: SharedAnswerInputs
  readonly #conversions: Pick<AnswerConversions, 'bodyFor'>
  /**
   * The whole body in the forms that clients have wanted so far. Its memory counts in the share of the first
   * call's client.
   */
  readonly #bodies = new Map<string, Promise<Buffer | undefined>>()
  readonly #memoryOfBodies: ResizableAllocation
  readonly #isFrom: (source: AnswerSource) => void
  readonly #isKnown: (facts: AnswerFacts | undefined) => void
  /** Number of calls that use the answer: the first one, and those that wait. */
  #users = 1

  constructor(
    inputs: SharedAnswerInputs & { readonly conversions: Pick<AnswerConversions, 'bodyFor'> },
    keeping: AnswerStorageRules,
    given: RequestedBodyForm,
  ) {
    const source = Promise.withResolvers<AnswerSource>()
    const facts = Promise.withResolvers<AnswerFacts | undefined>()
    this.answer = new RunningAnswer({ ...inputs, staysWithoutClients: () => false })
    this.#inputs = inputs
    this.#conversions = inputs.conversions
    this.#memoryOfBodies = new ResizableAllocation(inputs.memory, inputs.owner)
    this.given = given
    this.keeping = keeping
    this.source = source.promise
    this.facts = facts.promise
    this.#isFrom = source.resolve
    this.#isKnown = facts.resolve
  }

  /** Counts another call that uses the answer. */
  enter(): void {
    this.#users += 1
  }

  /** Ends the use of the answer by one call. */
  leave(): void {
    this.#users -= 1
    if (this.#users > 0) return
    this.answer.release()
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

  /** Informs the waiting calls where the answer comes from. */
  comesFrom(source: AnswerSource): void {
    this.#isFrom(source)
  }

  /** Informs the waiting calls of the answer's facts, once its call is over. */
  endedAs(facts: AnswerFacts | undefined): void {
    this.#isKnown(facts)
  }

  /**
   * Waits for the end of the call for a client that needs the answer in another form. Resolves to false if
   * the client has left or the answer is no longer in memory; rejects with the error of the call.
   */
  async waitFor(response: Response): Promise<boolean> {
    const waiting = new Response(DISCARDING_CONNECTION, {
      method: 'POST',
      version: '1.1',
      keepAlive: false,
      headers: {},
    })
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
    if (canReuseAnswerBody({ keeping: this.keeping, ...facts }, wanted)) return pieces
    const body = await (this.keeping.hasOwnIds
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
    return this.#conversions.bodyFor(this.toRead(facts, pieces), wanted, this.#inputs.owner)
  }

  /** The answer made of these pieces, in the form in which `AnswerConversions` converts or checks it. */
  toRead({ form, includeUsage, usage }: AnswerFacts, pieces: readonly Buffer[]): AnswerToRead {
    return { keeping: this.keeping, form, includeUsage, usage, pieces }
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
      if (this.#users === 0 || !made || !this.#memoryOfBodies.take(made.length)) this.#bodies.delete(form)
    })
    return body
  }
}
