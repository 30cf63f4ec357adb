import { GatewayError } from '../../errors.ts'
import type { PoolShareOwner } from '../../limits/fair-pool.ts'
import type { AnswerEnd, RunningAnswer } from '../../call/answers/running-answer.ts'
import { UpstreamRefusal } from '../../call/failure.ts'
import type { IncomingCall } from '../../call/incoming-call.ts'

/** A call that may share its answer with others. */
export interface EqualCall {
  /** HMAC that is the same for calls which share an answer. */
  readonly lookup: string
  readonly incoming: IncomingCall
  /** The client in whose share of memory the answer is kept. */
  readonly owner: PoolShareOwner
  /**
   * How often the call waits for another one that gives it no answer. After that, it gets the upstream's error, or asks the
   * upstream itself while no other call waits for it.
   */
  readonly maxMisses: number
}

/**
 * Where the answer of a call comes from: a call to be made, or the store. Undefined if that is not decided, so that the
 * calls which wait begin again.
 */
export type AnswerSource<Kept extends object> = 'make' | Kept | undefined

/** Result of waiting for another call that gave no answer. */
export interface MissedAnswer {
  /** The error with which the other call failed, if it did. */
  readonly error?: unknown
}

/** A complete answer. */
export type CompleteAnswer = Extract<AnswerEnd, { kind: 'complete' }>

/** The first of equal calls, for whose answer the others wait. */
export class CallUnderWay<Call extends EqualCall, Kept extends object, Facts> {
  readonly call: Call
  readonly answer: RunningAnswer
  readonly source = Promise.withResolvers<AnswerSource<Kept>>()
  /** Resolves when the call has ended; to undefined if its answer cannot be given to other calls. */
  readonly facts = Promise.withResolvers<Facts | undefined>()
  /** Resolves when it is decided whether the answer is kept. */
  readonly over = Promise.withResolvers<void>()
  /** Set if later calls must not get the answer, although the call is still running. */
  isRemoved = false
  #users = 0

  constructor(call: Call, answer: RunningAnswer) {
    this.call = call
    this.answer = answer
  }

  /** Keeps the answer in memory until `work` is done. */
  async use<T>(work: () => Promise<T>): Promise<T> {
    this.#users += 1
    try {
      return await work()
    } finally {
      this.#users -= 1
      if (!this.isUsed) this.release()
    }
  }

  /**
   * Whether equal calls may wait for the answer. One that was lost is given to no call, although its call may go on: what
   * the clients have left may be read to its end for the charge.
   */
  get isShared(): boolean {
    return !this.isRemoved && !this.answer.isLost
  }

  protected get isUsed(): boolean {
    return this.#users > 0
  }

  protected release(): void {
    this.answer.release()
  }
}

/** What differs between idempotency keys and the answer cache. `docs/decisions/equal-calls.md`. */
export interface EqualCallsPolicy<
  Call extends EqualCall,
  Kept extends object,
  Facts,
  UnderWay extends CallUnderWay<Call, Kept, Facts>,
> {
  begin(call: Call): UnderWay
  /** Decides whether this process makes the call. Rejects with the error for its client. */
  claim(first: UnderWay): Promise<AnswerSource<Kept>>
  /** Called before a call waits for an equal one. Throws if it may not. */
  beforeWaiting(first: UnderWay, call: Call): void
  /** Gives a call the answer of the first, as it arrives or at its end. */
  attach(first: UnderWay, call: Call): Promise<MissedAnswer | undefined>
  /** Gives a call a kept answer. Resolves to false if that is not possible any more. */
  replay(kept: Kept, first: UnderWay, call: Call): Promise<boolean>
  /** Makes the call, whose response records the answer. */
  make(first: UnderWay, recorded: IncomingCall): Promise<void>
  /** Facts of a complete answer; undefined if no other call may get it. */
  factsOf(first: UnderWay, recorded: IncomingCall): Facts | undefined
  /** Keeps an answer, if it can be kept, and ends the claim. */
  keep(first: UnderWay, facts: Facts, answer: CompleteAnswer): Promise<void>
  /** Ends the claim of a call whose answer is not kept, so that it can be made again. */
  release(first: UnderWay): Promise<void>
  /** Called once the call is over. */
  over(first: UnderWay): void
}

/**
 * Gives equal calls one answer. The first claims the call; those that come meanwhile wait for it; its answer is
 * recorded, and kept or forgotten; a kept answer is replayed. `docs/decisions/equal-calls.md`.
 */
export class EqualCalls<
  Call extends EqualCall,
  Kept extends object,
  Facts,
  UnderWay extends CallUnderWay<Call, Kept, Facts>,
> {
  readonly #policy: EqualCallsPolicy<Call, Kept, Facts, UnderWay>
  readonly #underWay = new Map<string, UnderWay>()

  constructor(policy: EqualCallsPolicy<Call, Kept, Facts, UnderWay>) {
    this.#policy = policy
  }

  /** Lookups of the calls under way. */
  get lookups(): string[] {
    return [...this.#underWay.keys()]
  }

  /** Answers a call. Rejects with the error for its client. */
  async answer(call: Call): Promise<void> {
    const { lookup, maxMisses, incoming } = call
    for (let misses = 1; misses <= maxMisses; misses += 1) {
      const known = this.#underWay.get(lookup)
      const missed = await (known?.isShared ? this.#follow(known, call) : this.#lead(call))
      if (!missed || incoming.response.isAborted) return
      if (misses === maxMisses && isOfUpstream(missed.error)) throw missed.error
    }
    await this.#run(this.#policy.begin(call), () => 'make')
  }

  #follow(first: UnderWay, call: Call): Promise<MissedAnswer | undefined> {
    return first.use(async () => {
      this.#policy.beforeWaiting(first, call)
      const source = await first.source.promise
      if (source === undefined) return {}
      if (source !== 'make') return (await this.#policy.replay(source, first, call)) ? undefined : {}
      const { answer } = first
      if (answer.isLost) return {}
      // An answer that ended with an error is not given to other calls.
      const isUseless = answer.hasEnded && (await first.facts.promise) === undefined
      const missed = isUseless ? {} : await this.#policy.attach(first, call)
      if (missed && !answer.isLost) await first.over.promise
      return missed
    })
  }

  #lead(call: Call): Promise<MissedAnswer | undefined> {
    const first = this.#policy.begin(call)
    this.#underWay.set(call.lookup, first)
    return this.#run(first, () => this.#policy.claim(first))
  }

  async #run(
    first: UnderWay,
    claim: () => Promise<AnswerSource<Kept>> | 'make',
  ): Promise<MissedAnswer | undefined> {
    const { response } = first.call.incoming
    let delivered: Promise<boolean> | undefined
    const isAnswered = await first.use(async () => {
      try {
        const source = await claim()
        first.source.resolve(source)
        if (source !== 'make')
          return source !== undefined && (await this.#policy.replay(source, first, first.call))
        // The error of the answer is ignored, because `#make` throws the same error.
        delivered = first.answer.attach(response)?.catch(() => true)
        await this.#make(first)
        return true
      } finally {
        this.#over(first)
      }
    })
    if ((await delivered) === false) response.destroy()
    return isAnswered ? undefined : {}
  }

  async #make(first: UnderWay): Promise<void> {
    const {
      answer,
      call: { incoming, lookup },
    } = first
    const recorded: IncomingCall = { ...incoming, response: answer.recorder }
    let failure: { readonly error: unknown } | undefined
    try {
      await this.#policy.make(first, recorded)
      answer.recorder.destroy()
    } catch (error) {
      failure = { error }
      answer.fail(error, incoming.response)
    }
    if (recorded.isTraced) incoming.isTraced = true
    if (recorded.hasFailed !== undefined) incoming.hasFailed = recorded.hasFailed
    const end = await answer.end
    const facts = !failure && end.kind === 'complete' ? this.#policy.factsOf(first, recorded) : undefined
    if (facts === undefined || end.kind !== 'complete') await this.#policy.release(first)
    else {
      first.facts.resolve(facts)
      // Until the answer is stored, later calls get it from memory.
      if (!first.isRemoved) this.#underWay.set(lookup, first)
      await this.#policy.keep(first, facts, end)
    }
    if (failure) throw failure.error
  }

  #over(first: UnderWay): void {
    const { lookup } = first.call
    if (this.#underWay.get(lookup) === first) this.#underWay.delete(lookup)
    this.#policy.over(first)
    // Only now do the calls that wait begin again: they must not find this one.
    first.source.resolve(undefined)
    first.facts.resolve(undefined)
    first.over.resolve()
  }
}

/** Whether an upstream caused the error, so that other equal calls are likely to get it too. */
function isOfUpstream(error: unknown): boolean {
  return (
    error instanceof UpstreamRefusal || (error instanceof GatewayError && error.code === 'upstream_error')
  )
}
