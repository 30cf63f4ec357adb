import { promptTokens } from '@sluice/wire/usage'
import type { Caller } from '../../accounts/authentication/caller.ts'
import type { OpenHold } from '../../accounts/ledger/open-hold.ts'
import { LineReserve } from '../../accounts/ledger/batch-hold.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import type { Settings } from '../../domain/settings.ts'
import { GatewayError } from '../../errors.ts'
import { type SealedPrices, withSealedPrices } from './batch-part.ts'
import type { BatchStore } from './batch-store.ts'
import {
  type Batch,
  type BatchEnd,
  type BatchFacts,
  type LineHead,
  type LineOutcome,
  WINDOW_MS,
} from './batch.ts'
import type { LineFinder } from './line-finder.ts'

/** Number of lines of a batch that wait to be tried again, from which on no further ones are begun. */
const MAX_DELAYED = 100

/** A line whose call is to be made. */
export interface WaitingLine {
  readonly line: LineHead
  readonly reserve: LineReserve
  /** Number of calls that were made for it, and of those that got an error of a server. */
  attempts: number
  serverErrors: number
}

/** A batch that this node works on. Its lines are read as they are needed. */
export class BatchRun {
  batch: Batch
  readonly hold: OpenHold
  /** Number of lines whose calls are being made, or that wait to be tried again. */
  underWay = 0
  /** Set when nothing more is sent. */
  stopped: BatchEnd | undefined
  isEnding = false
  /** Number of times that it was looked at. */
  looks = 0
  /** Set when another node has taken the batch over, because this one did not renew its lease in time. */
  isLost = false
  /** Set until the next look if there was no room for the result of a further line. */
  #lacksRoom = false
  /** Whether a lost line was reported. */
  #hasReported = false
  readonly lines: LineFinder
  /** The key and the user, as they were when they were last looked at, with the groups of the submission. */
  caller: Caller | undefined
  /** The work on lines that go to batches of providers; undefined if there is none. */
  provider: { wake(): void; stop(): void } | undefined
  /** Pending while progress is to be stored. */
  saving: Promise<void> | undefined
  /** Timers of lines that are tried again later. */
  readonly #delayed = new Set<NodeJS.Timeout>()
  readonly #store: BatchStore
  #input: AsyncGenerator<LineHead, void, undefined>
  /** Number of the last line that was read. */
  #last = 0
  /** Numbers of the lines that had a result when this node took the batch. */
  readonly #ended: ReadonlySet<number>
  /** Lines that are to be tried again now. */
  readonly #due: WaitingLine[] = []
  #reading: Promise<unknown> = Promise.resolve()
  #isExhausted = false

  readonly #prices: SealedPrices
  #settings: { readonly of: Settings; readonly sealed: Settings } | undefined

  constructor(
    store: BatchStore,
    batch: Batch,
    hold: OpenHold,
    ended: ReadonlySet<number>,
    prices: SealedPrices,
  ) {
    this.#prices = prices
    this.batch = batch
    this.hold = hold
    this.#ended = ended
    this.#store = store
    this.#input = store.inputHeads(batch)
    this.lines = store.lineFinder(batch)
  }

  /** Whether there may be a line whose call can be made now. */
  get mayTake(): boolean {
    if (this.stopped !== undefined || this.isEnding || this.isLost || Date.now() >= this.windowEndMs)
      return false
    if (this.#lacksRoom) return false
    if (this.#due.length > 0) return true
    // Otherwise a limit that stops every line would make all of them wait.
    return !this.#isExhausted && this.#delayed.size < MAX_DELAYED
  }

  /** Whether the batch can end. */
  get isOver(): boolean {
    const hasNone = this.stopped !== undefined || this.isLost || (this.#isExhausted && this.#due.length === 0)
    return hasNone && this.underWay === 0 && !this.isEnding
  }

  /** The settings in force, with the prices of the submission. */
  sealed(of: Settings): Settings {
    if (this.#settings?.of !== of) this.#settings = { of, sealed: withSealedPrices(of, this.#prices) }
    return this.#settings.sealed
  }

  /** The key and the user, whose calls go through the groups of the submission. */
  routed({ token, user }: Caller): Caller {
    const { routing } = this.#prices
    return { token: { ...token, ...routing?.token }, user: { ...user, ...routing?.user } }
  }

  get windowEndMs(): number {
    return this.batch.createdMs + WINDOW_MS
  }

  noteLook(): void {
    this.looks += 1
    this.#lacksRoom = false
  }

  /** Takes the next line; undefined if there is none, or no room for its result. The caller counts it as under way before. */
  take(): Promise<WaitingLine | undefined> {
    const taken = this.#reading.then(() => this.#take())
    this.#reading = taken.catch(() => {})
    return taken
  }

  // The line is found first, because a batch without a further one ends even if there is no room.
  async #take(): Promise<WaitingLine | undefined> {
    const line = await this.#find()
    if (!line) return undefined
    let hasRoom = false
    try {
      hasRoom = await this.#store.hasRoom(this.batch.userId)
    } finally {
      this.#lacksRoom = !hasRoom
      if (!hasRoom) this.#due.unshift(line)
    }
    return hasRoom ? line : undefined
  }

  async #find(): Promise<WaitingLine | undefined> {
    const due = this.#due.shift()
    if (due) return due
    while (!this.#isExhausted) {
      const value = await this.#next()
      if (!value) this.#isExhausted = true
      else if (value.model === undefined && !this.#ended.has(value.number))
        return {
          line: value,
          reserve: new LineReserve(this.hold, value.amount),
          attempts: 0,
          serverErrors: 0,
        }
    }
    return undefined
  }

  // A generator that has thrown ends, as if there were no further lines. After an error, the lines are read anew.
  async #next(): Promise<LineHead | undefined> {
    try {
      for (;;) {
        const { done, value } = await this.#input.next()
        if (done) return undefined
        if (value.number <= this.#last) continue
        this.#last = value.number
        return value
      }
    } catch (error) {
      this.#input = this.#store.inputHeads(this.batch)
      throw error
    }
  }

  /** The body of a line; undefined if it is lost. Another node may have what is missing here, until the window ends. */
  async bodyOf(line: LineHead): Promise<Buffer | undefined> {
    try {
      return await this.lines.body(line)
    } catch (error) {
      const isElsewhere = error instanceof GatewayError && error.code === 'files_not_shared'
      if (isElsewhere && Date.now() >= this.windowEndMs) return undefined
      throw error
    }
  }

  /** Logs that lines are lost, once. */
  reportLost(log: { warn(fields: object, sentence: string): void }, { number: line }: LineHead): void {
    if (!this.#hasReported)
      log.warn(
        { batch: this.batch.id, line },
        'what was kept of lines of a batch is missing or damaged (options.files.store); they end as errors',
      )
    this.#hasReported = true
  }

  /** Lets a line be tried again after some time. */
  delay(line: WaitingLine, ms: number, onDue: () => void): void {
    this.underWay += 1
    const timer = setTimeout(() => {
      this.#delayed.delete(timer)
      this.underWay -= 1
      this.#due.push(line)
      onDue()
    }, ms).unref()
    this.#delayed.add(timer)
  }

  /** Lines that wait to be tried again are not tried any more. */
  dropDelayed(): void {
    for (const timer of this.#delayed) clearTimeout(timer)
    this.underWay -= this.#delayed.size
    this.#delayed.clear()
  }

  async close(): Promise<void> {
    await this.#reading
    await this.#input.return()
  }

  /** Counts a line that has ended. */
  count(outcome: LineOutcome, row: SettledCall | undefined): void {
    this.change(countedFacts(this.batch.facts, outcome, row))
  }

  change(facts: Partial<BatchFacts>): void {
    this.batch = { ...this.batch, facts: { ...this.batch.facts, ...facts } }
  }
}

/** The facts of a batch after one more of its lines has ended. */
export function countedFacts(
  { counts, usage }: Pick<BatchFacts, 'counts' | 'usage'>,
  outcome: LineOutcome,
  row: SettledCall | undefined,
): Pick<BatchFacts, 'counts' | 'usage'> {
  const tokens = outcome === 'completed' ? row?.usage : undefined
  return {
    counts: { ...counts, [outcome]: counts[outcome] + 1 },
    usage: tokens
      ? {
          input: usage.input + promptTokens(tokens),
          cached: usage.cached + tokens.cacheRead,
          output: usage.output + tokens.output,
          reasoning: usage.reasoning + tokens.reasoning,
        }
      : usage,
  }
}
