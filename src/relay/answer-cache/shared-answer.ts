import { Response } from '@sluice/http1'
import type { AnswerHead, KeptAnswer } from '../../domain/kept-answer.ts'
import { ResizableAllocation } from '../../limits/request-memory.ts'
import { NO_SINK } from '../answers/answer-recorder.ts'
import { AnswerUnderWay } from '../answers/answer-under-way.ts'
import type { AnswerKeeping } from './answer-keeping.ts'
import type { AnswerFacts } from './answer-facts.ts'
import { isSameBody, type WantedBody } from './answer-bodies.ts'
import type { AnswerConversions, AnswerToRead } from './answer-conversions.ts'

/** Where an answer comes from: it is kept, or the call is under way. */
export type AnswerSource = { readonly kept: KeptAnswer; readonly facts: AnswerFacts } | 'call'

type AnswerUnderWayInputs = Omit<ConstructorParameters<typeof AnswerUnderWay>[0], 'staysWithoutClients'>

/** One answer for equal calls of this process: of the first one, which looks for it and asks, and of all that come meanwhile. */
export class SharedAnswer {
  readonly answer: AnswerUnderWay
  readonly keeping: AnswerKeeping
  /** What the client of the call gets; known once the source is. */
  given: WantedBody
  /** Resolves once the first call knows where the answer comes from. Never rejects. */
  readonly source: Promise<AnswerSource>
  /** Resolves at the end of the call; to undefined if its answer is of no use to others. */
  readonly facts: Promise<AnswerFacts | undefined>
  readonly #inputs: AnswerUnderWayInputs
  readonly #conversions: Pick<AnswerConversions, 'bodyFor'>
  /** The body in the forms that were wanted so far, with memory of the first call's client. */
  readonly #bodies = new Map<string, Promise<Buffer | undefined>>()
  readonly #memoryOfBodies: ResizableAllocation
  readonly #isFrom: (source: AnswerSource) => void
  readonly #isKnown: (facts: AnswerFacts | undefined) => void
  /** The first call, and those that wait for it. */
  #users = 1

  /** `given`: what the client of the first call gets. */
  constructor(
    inputs: AnswerUnderWayInputs & { readonly conversions: Pick<AnswerConversions, 'bodyFor'> },
    keeping: AnswerKeeping,
    given: WantedBody,
  ) {
    const source = Promise.withResolvers<AnswerSource>()
    const facts = Promise.withResolvers<AnswerFacts | undefined>()
    this.answer = new AnswerUnderWay({ ...inputs, staysWithoutClients: () => false })
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

  /** A further call begins to use the answer. */
  enter(): void {
    this.#users += 1
  }

  /** A call no longer needs the answer. */
  leave(): void {
    this.#users -= 1
    if (this.#users > 0) return
    this.answer.release()
    this.#bodies.clear()
    this.#memoryOfBodies.release()
  }

  /** Replays a kept answer. */
  replay({ status, headers }: AnswerHead, pieces: readonly Buffer[]): void {
    const { recorder } = this.answer
    recorder.writeHead(status, headers)
    for (const piece of pieces) recorder.write(piece)
    recorder.end()
  }

  /** Tells the others where the answer comes from. */
  comesFrom(source: AnswerSource): void {
    this.#isFrom(source)
  }

  /** Tells the others what the call was, once it is over. */
  endedAs(facts: AnswerFacts | undefined): void {
    this.#isKnown(facts)
  }

  /**
   * Waits for the end in the name of a client that cannot be sent the bytes as they come. Resolves to whether the client
   * is still there, and the answer too; rejects with the error of the call.
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
   * The whole answer in the form that a client wants, in pieces; undefined if there is none, or if it cannot be put
   * together.
   */
  async bodyFor(facts: AnswerFacts, wanted: WantedBody): Promise<readonly Buffer[] | undefined> {
    const end = await this.answer.end
    if (end.kind !== 'complete' || !end.pieces) return undefined
    const { pieces } = end
    if (isSameBody({ keeping: this.keeping, ...facts }, wanted)) return pieces
    const body = await (this.keeping.hasOwnIds
      ? this.converted(facts, wanted, pieces)
      : this.#convertedOnce(facts, wanted, pieces))
    return body && [body]
  }

  /** The answer of these pieces in the form that a client wants; undefined if it cannot be put together. */
  converted(facts: AnswerFacts, wanted: WantedBody, pieces: readonly Buffer[]): Promise<Buffer | undefined> {
    return this.#conversions.bodyFor(this.toRead(facts, pieces), wanted, this.#inputs.owner)
  }

  /** The answer of these pieces, as it is read. */
  toRead({ form, includeUsage, usage }: AnswerFacts, pieces: readonly Buffer[]): AnswerToRead {
    return { keeping: this.keeping, form, includeUsage, usage, pieces }
  }

  #convertedOnce(
    facts: AnswerFacts,
    wanted: WantedBody,
    pieces: readonly Buffer[],
  ): Promise<Buffer | undefined> {
    const form = `${wanted.form} ${wanted.includeUsage}`
    const known = this.#bodies.get(form)
    if (known) return known
    const body = this.converted(facts, wanted, pieces)
    this.#bodies.set(form, body)
    void body.then((made) => {
      // Without memory for it, the next client has it made again.
      if (this.#users === 0 || !made || !this.#memoryOfBodies.take(made.length)) this.#bodies.delete(form)
    })
    return body
  }
}
