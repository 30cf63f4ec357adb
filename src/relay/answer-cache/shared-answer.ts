import { Response } from '@sluice/http1'
import type { AnswerHead, KeptAnswer } from '../../domain/kept-answer.ts'
import { NO_SINK } from '../answers/answer-recorder.ts'
import { AnswerUnderWay } from '../answers/answer-under-way.ts'
import type { AnswerKeeping } from './answer-keeping.ts'
import type { AnswerFacts } from './answer-facts.ts'
import { bodyFor, type GivenBody, isSameBody, type WantedBody } from './answer-bodies.ts'

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
  /** The body in the forms that were wanted so far. */
  readonly #bodies = new Map<string, Buffer | undefined>()
  readonly #isFrom: (source: AnswerSource) => void
  readonly #isKnown: (facts: AnswerFacts | undefined) => void
  /** The first call, and those that wait for it. */
  #users = 1

  /** `given`: what the client of the first call gets. */
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

  /** A further call begins to use the answer. */
  enter(): void {
    this.#users += 1
  }

  /** A call no longer needs the answer. */
  leave(): void {
    this.#users -= 1
    if (this.#users === 0) this.answer.release()
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

  /** The whole answer in the form that a client wants; undefined if there is none. */
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

  /** The answer of these pieces in the form that a client wants; undefined if it cannot be put together. */
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
