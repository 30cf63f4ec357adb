import { Response } from '@sluice/http1'
import type { AnswerHead, KeptAnswer } from '../../domain/kept-answer.ts'
import { NO_SINK } from '../answers/answer-recorder.ts'
import { AnswerUnderWay } from '../answers/answer-under-way.ts'
import type { AnswerKeeping } from './answer-keeping.ts'
import type { AnswerFacts } from './answer-facts.ts'
import { bodyFor, type GivenBody, isSameBody, type WantedBody } from './answer-bodies.ts'

/** Where an answer comes from: the store, or a running call. */
export type AnswerSource = { readonly kept: KeptAnswer; readonly facts: AnswerFacts } | 'call'

type AnswerUnderWayInputs = Omit<ConstructorParameters<typeof AnswerUnderWay>[0], 'staysWithoutClients'>

/**
 * The answer that equal calls of this process share. The first call looks for it in the store or asks an
 * upstream; the calls that arrive meanwhile wait for it.
 */
export class SharedAnswer {
  readonly answer: AnswerUnderWay
  readonly keeping: AnswerKeeping
  /** The form in which the answer is produced; final once `source` is resolved. */
  given: WantedBody
  /** Resolves once the first call knows where the answer comes from. Never rejects. */
  readonly source: Promise<AnswerSource>
  /** Resolves at the end of the call; to undefined if its answer cannot be given to other calls. */
  readonly facts: Promise<AnswerFacts | undefined>
  /** The whole body in the forms that clients have wanted so far. */
  readonly #bodies = new Map<string, Buffer | undefined>()
  readonly #isFrom: (source: AnswerSource) => void
  readonly #isKnown: (facts: AnswerFacts | undefined) => void
  /** Number of calls that use the answer: the first one, and those that wait. */
  #users = 1

  /** `given`: the form that the client of the first call wants. */
  constructor(inputs: AnswerUnderWayInputs, keeping: AnswerKeeping, given: WantedBody) {
    const source = Promise.withResolvers<AnswerSource>()
    const facts = Promise.withResolvers<AnswerFacts | undefined>()
    this.answer = new AnswerUnderWay({ ...inputs, staysWithoutClients: () => false })
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

  /** Ends the use by one call. */
  leave(): void {
    this.#users -= 1
    if (this.#users === 0) this.answer.release()
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
    const waiting = new Response(NO_SINK, { method: 'POST', version: '1.1', keepAlive: false, headers: {} })
    const attached = this.answer.attach(waiting)
    if (!attached) return false
    const unwatch = response.onClosed(() => waiting.onConnectionEnd('aborted'))
    try {
      await attached
    } finally {
      unwatch()
    }
    return !response.isAborted
  }

  /**
   * The whole answer in the form that a client wants; undefined if it is incomplete, not in memory or cannot
   * be converted.
   */
  async bodyFor(facts: AnswerFacts, wanted: WantedBody): Promise<Buffer | undefined> {
    const end = await this.answer.end
    if (end.kind !== 'complete' || !end.pieces) return undefined
    const { pieces } = end
    const make = (): Buffer | undefined => this.converted(facts, wanted, pieces)
    if (this.keeping.hasOwnIds) return make()
    if (isSameBody({ keeping: this.keeping, ...facts }, wanted)) return joined(pieces)
    const form = `${wanted.form} ${wanted.includeUsage}`
    if (!this.#bodies.has(form)) this.#bodies.set(form, make())
    return this.#bodies.get(form)
  }

  /**
   * Converts the answer made of these pieces to the form that a client wants; undefined if that is
   * impossible.
   */
  converted(facts: AnswerFacts, wanted: WantedBody, pieces: readonly Buffer[]): Buffer | undefined {
    return bodyFor(this.#given(facts, pieces), wanted)
  }

  #given({ form, includeUsage, usage }: AnswerFacts, pieces: readonly Buffer[]): GivenBody {
    return { keeping: this.keeping, form, includeUsage, bytes: joined(pieces), usage }
  }
}

function joined(pieces: readonly Buffer[]): Buffer {
  const [only] = pieces
  return pieces.length === 1 && only ? only : Buffer.concat(pieces)
}
