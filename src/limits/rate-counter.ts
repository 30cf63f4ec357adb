import { hash, randomUUID } from 'node:crypto'
import { flatCopy } from '../domain/flat-copy.ts'
import { type LimitDecision, SlidingWindow } from './sliding-window.ts'

/**
 * One count of a rate limit: a subject (such as a user or an address) may use at most `max` units within
 * `windowMs`.
 */
export interface CountedLimit {
  /** Name of the limit and of what it counts: `key requests`. */
  readonly name: string
  readonly subject: string | number
  readonly max: number
  readonly windowMs: number
}

/**
 * Counts what is used of rate limits. Answers synchronously if this node can decide alone; otherwise with a
 * promise that resolves within 50 ms and never rejects. `nowMs` is the time of its clock, for those who ask several times in
 * a row.
 */
export interface RateCounter {
  /** Monotonic clock, in milliseconds. */
  readonly nowMs: () => number
  /** Uses one unit if one is free. */
  take(counted: CountedLimit, nowMs?: number): LimitDecision | Promise<LimitDecision>
  /** Checks whether a unit is free without using it; asks the other nodes if necessary. */
  check(counted: CountedLimit, nowMs?: number): LimitDecision | Promise<LimitDecision>
  /**
   * Checks with what this node knows, without asking others. If nothing is known about a subject, it is
   * allowed.
   */
  peek(counted: CountedLimit, nowMs?: number): LimitDecision
  /** Counts units that were used, even if the limit is exceeded. */
  add(counted: CountedLimit, amount: number, nowMs?: number): void
}

/** Counter for a node without others: in memory, exact, and always synchronous. */
export class LocalRateCounter implements RateCounter {
  readonly #tables = new Map<string, SubjectTable<WindowEntry>>()
  readonly nowMs: () => number

  /** `nowMs` returns milliseconds of a monotonic clock. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.nowMs = nowMs
  }

  take(counted: CountedLimit, nowMs = this.nowMs()): LimitDecision {
    return this.#window(counted, nowMs).take(nowMs, 1, counted.max, counted.windowMs)
  }

  check(counted: CountedLimit, nowMs?: number): LimitDecision {
    return this.peek(counted, nowMs)
  }

  peek({ name, subject, max, windowMs }: CountedLimit, nowMs?: number): LimitDecision {
    const entry = this.#tables.get(name)?.get(subject)
    if (!entry) return { allowed: max > 0, remaining: max, resetMs: 0, waitMs: 0 }
    return entry.window.peek(nowMs ?? this.nowMs(), 1, max, windowMs)
  }

  add(counted: CountedLimit, amount: number, nowMs = this.nowMs()): void {
    this.#window(counted, nowMs).add(nowMs, amount, counted.windowMs)
  }

  #window({ name, subject, windowMs }: CountedLimit, nowMs: number): SlidingWindow {
    let table = this.#tables.get(name)
    if (!table) this.#tables.set(name, (table = new SubjectTable(() => new WindowEntry())))
    const entry = table.getOrCreate(subject, nowMs)
    entry.windowMs = windowMs
    return entry.window
  }
}

class WindowEntry {
  readonly window = new SlidingWindow()
  windowMs = 0

  isIdle(nowMs: number): boolean {
    return this.window.sum(nowMs, this.windowMs) === 0
  }
}

/** Maximum number of entries per limit. With more subjects, several share an entry. */
const MAX_ENTRIES = 50_000
/** Number of additional entries that are shared by subjects for which the table has no room. */
const SHARED_ENTRIES = 1_024
/** Number of entries that are checked for eviction whenever a subject is added to a full table. */
const EVICTION_SCAN = 16

const SALT = randomUUID()

/** An entry that can be evicted from the table. */
interface Evictable {
  /** Whether the entry can be evicted without losing a count. */
  isIdle(nowMs: number): boolean
}

/**
 * Entries of the subjects of one limit; their number is limited. Only idle entries are evicted. While the
 * table is full, new subjects share entries, so that a flood of new subjects cannot reset the count of an old
 * one.
 */
export class SubjectTable<Entry extends Evictable> {
  readonly #entries = new Map<string | number, Entry>()
  /** Position of the search for an idle entry, which checks a few entries per new subject. */
  #cursor: Iterator<[string | number, Entry]> | undefined
  readonly #create: (subject: string | number) => Entry
  readonly #max: number
  readonly #shared: number

  constructor(create: (subject: string | number) => Entry, max = MAX_ENTRIES, shared = SHARED_ENTRIES) {
    this.#create = create
    this.#max = max
    this.#shared = shared
  }

  /** Number of entries, including shared ones. */
  get size(): number {
    return this.#entries.size
  }

  /** The entry of a subject; undefined if there is none. */
  get(subject: string | number): Entry | undefined {
    return (
      this.#entries.get(subject) ?? (this.#isFull ? this.#entries.get(this.#sharedKey(subject)) : undefined)
    )
  }

  /** The entry of a subject; it is created if necessary. */
  getOrCreate(subject: string | number, nowMs: number): Entry {
    const existing = this.#entries.get(subject)
    if (existing) return existing
    if (this.#isFull && !this.#evictOne(nowMs)) return this.#createFor(this.#sharedKey(subject))
    return this.#createFor(subject)
  }

  values(): Iterable<Entry> {
    return this.#entries.values()
  }

  get #isFull(): boolean {
    return this.#entries.size >= this.#max
  }

  #createFor(subject: string | number): Entry {
    let entry = this.#entries.get(subject)
    if (!entry) {
      // An address may be a part of a long header.
      const kept = typeof subject === 'string' ? flatCopy(subject) : subject
      this.#entries.set(kept, (entry = this.#create(kept)))
    }
    return entry
  }

  #evictOne(nowMs: number): boolean {
    for (let scanned = 0; scanned < EVICTION_SCAN; scanned++) {
      this.#cursor ??= this.#entries.entries()
      const { done, value } = this.#cursor.next()
      if (done) this.#cursor = undefined
      else if (value[1].isIdle(nowMs)) {
        this.#entries.delete(value[0])
        if (!this.#isFull) return true
      }
    }
    return false
  }

  // The subject is hashed with a secret salt, so that no client can choose with whom it shares an entry.
  #sharedKey(subject: string | number): string {
    const digest = hash('sha256', `${SALT} ${subject}`, 'buffer')
    return `shared ${digest.readUInt32LE() % this.#shared}`
  }
}
