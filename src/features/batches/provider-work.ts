import { setTimeout as delay } from 'node:timers/promises'
import { TransportError } from '@sluice/http1'
import type { Caller } from '../../accounts/authentication/caller.ts'
import { LineReserve } from '../../accounts/ledger/batch-hold.ts'
import type { Settings } from '../../domain/settings.ts'
import type { UpstreamClient } from '../../upstreams/upstream-client.ts'
import { LINE_ENDPOINTS, type LineHead } from './batch.ts'
import { BatchPart, type PartFacts } from './batch-part.ts'
import type { BatchRun } from './batch-run.ts'
import type { BatchStore, Unanswered } from './batch-store.ts'
import { type ComposingServices, tierFieldsIn, withoutRemovedFields } from './compose-lines.ts'
import { answerOf, type LineAnswer, type LineCallServices } from './line-call.ts'
import type { FoundLine } from './line-finder.ts'
import { planParts } from './plan-parts.ts'
import { apiOf } from './providers/apis.ts'
import type { Turns } from './turns.ts'
import { BatchConnection, isFullQueue, ProviderRefused } from './providers/connection.ts'
import { type BatchToMake, type ProviderResult, settingsForBatches } from './providers/provider-batches.ts'

/** Milliseconds for which providers are asked for what they have finished, once a node has found that the window is over. */
const GRACE_MS = 2 * 3_600_000
/** Number of results of a batch that are stored, or wait to be, at a time. */
const PARALLEL_RESULTS = 16
/** Maximum number of results without a line, in addition to the number of lines. */
const MAX_IGNORED = 10_000
/** Number of consecutive reports of a provider that a batch or its results do not exist, after which they are lost. */
const MAX_UNKNOWN = 8
/** Names in the errors of lines that a provider cannot batch. */
const NO_WORDS = {
  status: 400,
  body: JSON.stringify({ error: { message: 'no channel can batch this request' } }),
}

/** Services that the work at providers needs. */
export interface ProviderWorkServices extends LineCallServices, ComposingServices {
  readonly relay: LineCallServices['relay'] & ComposingServices['relay']
  readonly settings: () => Settings
  readonly upstreams: UpstreamClient
  readonly store: BatchStore
  /** Bounds the results that all batches of this node store at a time. */
  readonly turns: Turns
  readonly metrics: { add(name: 'batchResultsIgnored', by: number, reason: string): void }
  readonly log: { warn(fields: object, sentence: string): void }
}

/** What the owner of a batch does with the ends of its lines. */
export interface LineEnds {
  settle(line: FoundLine, reserve: LineReserve, answer: LineAnswer): Promise<void>
  settleWithout(line: LineHead, reserve: LineReserve, why: Unanswered): Promise<void>
  /** Ends a line whose body is lost. */
  settleLost(line: LineHead, reserve: LineReserve): Promise<void>
  /** Whether the batch is still that of this node. */
  isHeld(): Promise<boolean>
}

/** The work of this node on those lines of a batch that go to batches of providers. */
export class ProviderWork {
  readonly #services: ProviderWorkServices
  readonly #run: BatchRun
  readonly #ends: LineEnds
  readonly #parts: BatchPart[]
  /** Numbers of the lines that have ended. */
  readonly #ended: Set<number>
  /** The order in which the channels of a model are tried. */
  readonly #orders = new Map<string, readonly string[]>()
  #woken = new AbortController()
  #isStopping = false
  /** When the window was found to be over, by `performance.now()`: no node may have run for days, and clocks are set. */
  #windowOverAt: number | undefined
  /** Resolves when this node works no more on the batch: what is asked then is not waited for. */
  readonly #stopped = Promise.withResolvers<void>()

  constructor(
    services: ProviderWorkServices,
    run: BatchRun,
    ends: LineEnds,
    found: {
      readonly parts: readonly BatchPart[]
      readonly ended: ReadonlySet<number>
    },
  ) {
    this.#services = services
    this.#run = run
    this.#ends = ends
    this.#parts = [...found.parts]
    this.#ended = new Set(found.ended)
  }

  /** Looks at once whether the batch is to be cancelled. */
  wake(): void {
    this.#woken.abort()
    this.#woken = new AbortController()
  }

  /** Asks no provider any more. What is not stored is done again by the node that continues with the batch. */
  stop(): void {
    this.#isStopping = true
    this.#stopped.resolve()
    this.wake()
  }

  /** Works until all lines that go to providers have ended. */
  async work(): Promise<void> {
    while (!this.#isOver) {
      if (this.#run.stopped === undefined) await this.#plan()
      const open = this.#parts.filter(({ isOpen }) => isOpen)
      if (open.length === 0) return
      await Promise.all(open.map((part) => this.#advance(part)))
    }
  }

  /** Whether this node works no more on the batch. */
  get #isOver(): boolean {
    return this.#isStopping || this.#run.isLost
  }

  /** The settings in force, with the prices of the submission. */
  get #sealed(): Settings {
    return this.#run.sealed(this.#services.settings())
  }

  async #plan(): Promise<void> {
    await planParts({
      services: this.#services,
      run: this.#run,
      caller: this.#callerOrThrow(),
      parts: this.#parts,
      ended: this.#ended,
      orders: this.#orders,
      settings: () => settingsForBatches(this.#sealed, this.#run.batch.facts.path),
      isOver: () => this.#isOver || this.#run.stopped !== undefined,
      refuse: (line, error) => this.#refuse(line, error),
      endLost: (line) => this.#endLost(line),
    })
  }

  #callerOrThrow(): Caller {
    const { caller } = this.#run
    if (!caller) throw new Error('the key of a batch is unknown')
    return caller
  }

  /** Ends a line that goes to no provider: with the words of the last one that refused it, if there is one. */
  async #refuse(line: FoundLine, error: LineAnswer | undefined): Promise<void> {
    const last = this.#parts.findLast((part) => part.facts.state === 'refused' && part.has(line.number))
    const reserve = new LineReserve(this.#run.hold, line.amount)
    const answer = last?.facts.refusal
    if (!answer && error) return this.#settle(line, reserve, error)
    if (!last) throw new Error('a line has no channel')
    await this.#end(last, line, answer ?? NO_WORDS)
  }

  async #settle(line: FoundLine, reserve: LineReserve, answer: LineAnswer): Promise<void> {
    await this.#ends.settle(line, reserve, answer)
    this.#ended.add(line.number)
  }

  /** Goes on with a batch at a provider until all its lines have ended, or the provider has refused it. */
  async #advance(part: BatchPart): Promise<void> {
    const { poll, poll_most: pollMost } = this.#services.settings().options.batches
    let waitMs = poll
    let unknown = 0
    while (part.isOpen && !this.#isOver) {
      try {
        const { state } = part.facts
        if (unknown >= MAX_UNKNOWN) await this.#endRest(part)
        else await Promise.race([this.#step(part), this.#stopped.promise])
        unknown = 0
        if (this.#isOver) return
        if (part.facts.state !== state) {
          waitMs = poll
          if (part.facts.state !== 'made') continue
        }
      } catch (error) {
        if (this.#isOver) return
        const hasBatch = part.facts.state === 'made' || part.facts.state === 'ended'
        unknown = error instanceof ProviderRefused && error.isUnknown && hasBatch ? unknown + 1 : 0
        if (error instanceof ProviderRefused) waitMs = Math.max(waitMs, error.retryAfterMs ?? 0)
        else if (!(error instanceof TransportError))
          this.#services.log.warn(
            { err: error, part: part.name },
            'a batch at a provider could not be looked after; tried again',
          )
      }
      if (!part.isOpen || this.#isOver) return
      await this.#wait(waitMs)
      waitMs = Math.min(pollMost, waitMs * 2)
    }
  }

  async #wait(ms: number): Promise<void> {
    const { signal } = this.#woken
    await delay(ms, undefined, { ref: false, signal }).catch(() => {})
  }

  async #step(part: BatchPart): Promise<void> {
    const { state } = part.facts
    const at = this.#connection(part)
    const isStopped = this.#run.stopped !== undefined
    if (this.#isGraceOver()) return this.#endRest(part)
    if (state === 'planned') return isStopped ? this.#endRest(part) : this.#make(part, at)
    if (state === 'asked') return this.#findAgain(part, at)
    if (state === 'made') return this.#look(part, at)
    await this.#readResults(part, at)
  }

  #isGraceOver(): boolean {
    if (Date.now() > this.#run.windowEndMs) this.#windowOverAt ??= performance.now()
    return this.#windowOverAt !== undefined && performance.now() > this.#windowOverAt + GRACE_MS
  }

  #connection({ facts }: BatchPart): BatchConnection {
    const { channel, key, protocol, headers } = facts
    const { upstreams } = this.#services
    const { hold } = this.#run
    return new BatchConnection({ upstreams, hold, channel, key, protocol, headers })
  }

  async #change(part: BatchPart, facts: Partial<PartFacts>): Promise<void> {
    const changed = new BatchPart(part.key, { ...part.facts, ...facts })
    await this.#services.store.savePart(this.#run.batch, changed)
    part.change(facts)
  }

  async #toMake(part: BatchPart, onLost = () => {}): Promise<BatchToMake> {
    const { path, upstreamModel, lines, intentMs } = part.facts
    const { store } = this.#services
    return {
      name: part.name,
      path,
      upstreamModel,
      lines: lines.length,
      intentMs,
      content: await store.partLines(this.#run.batch, part.key, onLost),
      isOfOther: (id) => store.knowsProviderId(id),
      isOwnLine: (id) => part.lineOf(id) !== undefined,
      onUploaded: (file) => this.#change(part, { uploads: [...(part.facts.uploads ?? []), file] }),
      confirm: async () => {
        if (!(await this.#ends.isHeld()))
          throw new TransportError('another node has taken the batch over', false)
      },
    }
  }

  /** Makes the batch. The intent is stored before the request is sent. */
  async #make(part: BatchPart, at: BatchConnection): Promise<void> {
    const api = this.#apiOf(part)
    if (!(await this.#services.store.hasRoom(this.#run.batch.userId))) throw noRoom()
    await this.#change(part, { state: 'asked', intentMs: Date.now() })
    let isLost = false
    try {
      const providerId = await api.make(at, await this.#toMake(part, () => (isLost = true)))
      await this.#change(part, { state: 'made', providerId })
    } catch (error) {
      // What was not sent completely makes no batch.
      if (isLost) return this.#endRest(part, 'content_lost')
      if (!(error instanceof ProviderRefused)) throw error
      if (error.isFinal) return this.#refused(part, error.status, error.body.toString())
      // A provider that has refused has not made anything.
      if (error.status === 429 || isFullQueue(error.body)) await this.#change(part, { state: 'planned' })
      throw error
    }
  }

  #apiOf(part: BatchPart) {
    const api = apiOf(part.facts.channel, part.facts)
    if (!api) throw new Error('the batch API of a channel is unknown')
    return api
  }

  /** Asks a provider whether it has a batch whose making is in doubt. */
  async #findAgain(part: BatchPart, at: BatchConnection): Promise<void> {
    const providerId = await this.#apiOf(part).find(at, await this.#toMake(part))
    if (providerId !== undefined) return this.#change(part, { state: 'made', providerId })
    await this.#change(part, { state: 'planned' })
  }

  async #look(part: BatchPart, at: BatchConnection): Promise<void> {
    const api = this.#apiOf(part)
    const { providerId = '', isCancelled } = part.facts
    if (this.#run.stopped !== undefined && !isCancelled) {
      try {
        await api.cancel(at, providerId)
      } catch (error) {
        // It may have ended in the meantime.
        if (!(error instanceof ProviderRefused) || error.status === 429 || error.status >= 500) throw error
      }
      await this.#change(part, { isCancelled: true })
    }
    const { ended, results, words } = await api.look(at, providerId)
    if (!ended) return
    if (ended === 'failed' && results.length === 0) {
      if (isFullQueue(words ?? '')) {
        await this.#change(part, { state: 'planned', providerId: undefined, round: part.facts.round + 1 })
        throw new ProviderRefused(429, Buffer.from(words ?? ''), undefined)
      }
      return this.#refused(part, 400, words ?? NO_WORDS.body)
    }
    await this.#change(part, { state: 'ended', how: ended, results })
  }

  /** The lines of a batch that the provider does not make go to another channel, or end with its words. */
  async #refused(part: BatchPart, status: number, body: string): Promise<void> {
    await this.#change(part, { state: 'refused', refusal: { status, body } })
    await this.#removeRest(part)
  }

  async #readResults(part: BatchPart, at: BatchConnection): Promise<void> {
    const api = this.#apiOf(part)
    const seen = new Set<number>()
    let ignored = 0
    const running = new Set<Promise<void>>()
    let failure: { readonly error: unknown } | undefined
    try {
      for (const where of part.facts.results ?? [])
        for await (const result of api.results(at, where)) {
          if (this.#isOver || failure || ignored > part.facts.lines.length + MAX_IGNORED) break
          if (!result) {
            ignored += 1
            continue
          }
          const taken = this.#services.turns
            .run(() => this.#take(part, result, seen))
            .then((isOfLine) => (ignored += isOfLine ? 0 : 1))
            .catch((error: unknown) => (failure ??= { error }))
            .then(() => void running.delete(taken))
          running.add(taken)
          if (running.size >= PARALLEL_RESULTS) await Promise.race(running)
        }
    } finally {
      await Promise.all(running)
    }
    if (failure) throw failure.error
    if (!this.#isOver) await this.#endRest(part)
  }

  /** Resolves to false if the result belongs to no line, or its line has one. */
  async #take(part: BatchPart, { id, answer }: ProviderResult, seen: Set<number>): Promise<boolean> {
    const number = part.lineOf(id)
    if (number === undefined || seen.has(number)) {
      this.#services.metrics.add('batchResultsIgnored', 1, number === undefined ? 'unknown' : 'duplicate')
      return false
    }
    seen.add(number)
    // The line has ended when the results were read before, as far as they came.
    if (!this.#ended.has(number)) await this.#endWithResult(part, number, answer)
    return true
  }

  async #endWithResult(part: BatchPart, number: number, answer: ProviderResult['answer']): Promise<void> {
    const { stopped } = this.#run
    const line = await this.#run.lines.head(number)
    if (!line) return
    if (typeof answer === 'string') return this.#endWithout(line, stopped === 'expired' ? 'expired' : answer)
    // The provider keeps it meanwhile, also after the window: what it has finished is charged.
    if (!(await this.#services.store.hasSpace())) {
      this.#windowOverAt &&= performance.now()
      throw noRoom()
    }
    // The answer is converted, and guarded, with the request.
    const body = await this.#run.bodyOf(line)
    if (body) await this.#end(part, { ...line, body }, answer)
    else await this.#endLost(line)
  }

  /** Ends a line with an answer, or an error, of its provider. */
  async #end(
    part: BatchPart,
    line: FoundLine,
    answer: { readonly status: number; readonly body: Buffer | string },
  ): Promise<void> {
    const { relay, store } = this.#services
    const { batch, hold } = this.#run
    const caller = this.#callerOrThrow()
    const suspended = part.facts.hasStates ? await store.lineState(batch, line.number) : undefined
    const reserve = new LineReserve(hold, line.amount)
    const sinceMs = Date.now() - batch.createdMs
    const settings = this.#sealed
    const ended = await answerOf(
      this.#services,
      {
        batch,
        caller,
        line,
        reserve,
        inBatch: 'answer',
        startedMs: batch.createdMs,
        startedAt: performance.now() - sinceMs,
        holdFor: (_, facts) => reserve.holdAnswered(facts),
      },
      (incoming) =>
        relay.later.answer(LINE_ENDPOINTS[batch.facts.path], incoming, caller, settings, {
          routes: part.routes(settings),
          key: { value: part.facts.key },
          suspended,
          answer: { status: answer.status, body: Buffer.from(answer.body), asSent: withoutRemovedFields },
        }),
    )
    if (ended.isShortOfMemory) throw new TransportError('there is no memory for a result', false)
    const dropped = [...new Set([...ended.dropped, ...tierFieldsIn(line.body)])]
    await this.#settle(line, reserve, { ...ended, dropped })
  }

  async #endWithout(line: LineHead, why: Unanswered): Promise<void> {
    await this.#ends.settleWithout(line, new LineReserve(this.#run.hold, line.amount), why)
    this.#ended.add(line.number)
  }

  async #endLost(line: LineHead): Promise<void> {
    await this.#ends.settleLost(line, new LineReserve(this.#run.hold, line.amount))
    this.#ended.add(line.number)
  }

  /** Ends the lines of a batch that have no result. `lost`: why, if the batch was never made. */
  async #endRest(part: BatchPart, lost?: Unanswered): Promise<void> {
    const { stopped } = this.#run
    const { how, isCancelled, lines } = part.facts
    const isOfProvider = how === 'expired' || how === 'cancelled'
    const why =
      stopped === 'expired' || stopped === 'cancelled' ? stopped : isOfProvider ? how : 'result_missing'
    for (const number of lines) {
      if (this.#isOver) return
      if (this.#ended.has(number)) continue
      const line = await this.#run.lines.head(number)
      if (line)
        await this.#endWithout(line, lost ?? (how === 'completed' && !isCancelled ? 'result_missing' : why))
    }
    await this.#change(part, { state: 'done' })
    await this.#removeRest(part)
  }

  /** Removes what a batch needed that is over, here and at the provider. */
  async #removeRest(part: BatchPart): Promise<void> {
    await this.#services.store.removePartLines(this.#run.batch, part.key)
    const api = this.#apiOf(part)
    for (const file of part.facts.uploads ?? [])
      try {
        await api.removeFile?.(this.#connection(part), file)
      } catch (error) {
        this.#services.log.warn({ err: error, file }, 'a file for a batch could not be deleted at a provider')
      }
  }
}

/** An error after which is tried again, in growing intervals. */
function noRoom(): TransportError {
  return new TransportError('there is no room for results', false)
}
