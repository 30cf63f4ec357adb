import type { Fields } from '../fields.ts'
import { seededRandom, shuffle } from '../random.ts'
import type { Behaviour } from './behaviour.ts'
import { type BilledTokens, NO_TOKENS, sumOf } from './invoice.ts'
import type { StoredContent } from './stored-contents.ts'

/** The window of a batch in milliseconds, after which it expires. */
export const WINDOW_MS = 24 * 3_600_000

/** The phases of a batch, in the words of OpenAI; the other APIs have words for some of them. */
export type Phase =
  | 'validating'
  | 'in_progress'
  | 'finalizing'
  | 'completed'
  | 'failed'
  | 'expired'
  | 'cancelling'
  | 'cancelled'

/** A line that was answered, and the position of its result in the file. */
export interface AnsweredLine {
  readonly customId: string
  readonly model: string
  readonly at: number
  readonly bytes: number
  readonly isError: boolean
  readonly billed: BilledTokens
}

/** A reason why a batch fails. */
export interface BatchError {
  readonly code: string
  readonly message: string
  readonly line: number | null
  readonly param: string | null
}

/** The lines of a batch, after they were read. */
export interface ReadLines {
  readonly lines: readonly AnsweredLine[]
  readonly errors: readonly BatchError[]
  /** The behaviour, with what the lines have changed of it. */
  readonly behaviour: Behaviour
  readonly results: StoredContent
  readonly readyMs: number
}

/** What a client states about a batch that it makes. */
export interface MadeBatch {
  readonly id: string
  readonly account: string
  readonly createdMs: number
  /** Path of the endpoint that answers its lines. */
  readonly endpoint: string
  /** What the API states about it: the file, metadata or a name. */
  readonly stated: Fields
  readonly tokens: number
  /** Whether nothing is left of it when it expires. */
  readonly losesExpired?: true
}

/** A result in the file of a batch: of a line that was answered or not, or of none. */
export interface BatchResult {
  readonly kind: 'answered' | 'unknown' | 'expired' | 'cancelled'
  readonly line: AnsweredLine
}

/** Whether the result is an answer, and not an error. */
export function isGood({ kind, line }: BatchResult): boolean {
  return (kind === 'answered' || kind === 'unknown') && !line.isError
}

/** A batch of a provider. Its phase follows from the time alone. */
export class SimulatedBatch {
  readonly made: MadeBatch
  readonly #now: () => number
  #behaviour: Behaviour
  #read: ReadLines | undefined
  /** The lines in the order in which they are done. */
  #ordered: readonly AnsweredLine[] = []
  #cancelMs: number | undefined

  constructor(made: MadeBatch, behaviour: Behaviour, now: () => number) {
    this.made = made
    this.#behaviour = behaviour
    this.#now = now
  }

  /** Ends the validation. */
  setLines(read: ReadLines): void {
    this.#read = read
    this.#behaviour = read.behaviour
    const { lines, behaviour } = read
    this.#ordered = behaviour.shuffled ? shuffle(seededRandom(this.made.id), lines) : lines
  }

  get cancelMs(): number | undefined {
    return this.#cancelMs
  }

  get errors(): readonly BatchError[] {
    return this.#read?.errors ?? []
  }

  get results(): StoredContent | undefined {
    return this.#read?.results
  }

  get expiresMs(): number {
    return this.made.createdMs + WINDOW_MS
  }

  /** Whether it has ended. */
  get isOver(): boolean {
    return this.endedMs !== undefined
  }

  get phase(): Phase {
    const now = this.#now()
    const ended = this.endedMs
    if (ended !== undefined) {
      if (this.#fails) return 'failed'
      return this.#cancelMs !== undefined ? 'cancelled' : this.#expires ? 'expired' : 'completed'
    }
    if (this.#cancelMs !== undefined) return 'cancelling'
    const started = this.startedMs
    if (started === undefined || now < started) return 'validating'
    return now < this.#ranMs(started) ? 'in_progress' : 'finalizing'
  }

  /** When its lines were read; undefined before. */
  get startedMs(): number | undefined {
    if (!this.#read) return undefined
    const started = Math.max(this.made.createdMs + this.#behaviour.validating_ms, this.#read.readyMs)
    return this.#now() < started ? undefined : started
  }

  /** When all lines were done; undefined before, and if the batch ends in another way. */
  get finalizingMs(): number | undefined {
    const started = this.startedMs
    if (started === undefined || this.#fails || this.#expires || this.#cancelMs !== undefined)
      return undefined
    const ran = this.#ranMs(started)
    return this.#now() < ran ? undefined : ran
  }

  /** When it ended; undefined before. */
  get endedMs(): number | undefined {
    const started = this.startedMs
    if (started === undefined) return undefined
    const ended = this.#endMs(started)
    return this.#now() < ended ? undefined : ended
  }

  /** Cancels it. Returns whether it had not ended. */
  cancel(): boolean {
    if (this.isOver) return false
    this.#cancelMs ??= this.#now()
    return true
  }

  /** All lines, in their order; empty before they were read. */
  get lines(): readonly AnsweredLine[] {
    return this.#read?.lines ?? []
  }

  /** The lines that are done, in the order in which they were. */
  get done(): readonly AnsweredLine[] {
    const started = this.startedMs
    if (started === undefined || this.#fails) return []
    return this.#ordered.slice(0, this.#doneCount(started))
  }

  /** The results in the files of a batch that has ended, in their order. */
  *resultsInOrder(): Generator<BatchResult, void, undefined> {
    const { missing, duplicates, unknown } = this.#behaviour
    const done = this.done
    const [first] = done
    for (const line of done.slice(missing)) yield { kind: 'answered', line }
    if (first) for (let at = 0; at < unknown; at += 1) yield { kind: 'unknown', line: first }
    for (const line of done.slice(missing, missing + duplicates)) yield { kind: 'answered', line }
    const { phase } = this
    if (phase !== 'expired' && phase !== 'cancelled') return
    for (const line of this.#ordered.slice(done.length)) yield { kind: phase, line }
  }

  /** What is billed: lines that are done, but not those with errors, nor those whose results are missing. */
  *billedLines(): Generator<AnsweredLine, void, undefined> {
    if (!this.isOver) return
    for (const line of this.done.slice(this.#behaviour.missing)) if (!line.isError) yield line
  }

  get billed(): BilledTokens {
    let sum = NO_TOKENS
    for (const { billed } of this.billedLines()) sum = sumOf(sum, billed)
    return sum
  }

  get #fails(): boolean {
    return this.errors.length > 0
  }

  get #expires(): boolean {
    const started = this.startedMs
    if (started === undefined || this.#cancelMs !== undefined) return false
    return this.#behaviour.end === 'expired' || this.#ranMs(started) >= this.expiresMs
  }

  #ranMs(started: number): number {
    return Math.min(started + this.#behaviour.running_ms, Math.max(started, this.expiresMs))
  }

  #endMs(started: number): number {
    if (this.#fails) return started
    if (this.#cancelMs !== undefined) return Math.max(started, this.#cancelMs) + this.#behaviour.cancelling_ms
    return this.#ranMs(started) + (this.#expires ? 0 : this.#behaviour.finalizing_ms)
  }

  #doneCount(started: number): number {
    const { running_ms: runs, done } = this.#behaviour
    const all = this.lines.length
    const untilMs = Math.min(this.#now(), this.#cancelMs ?? Infinity)
    const inTime = runs === 0 ? all : Math.floor(all * Math.min(1, Math.max(0, untilMs - started) / runs))
    if (this.#cancelMs === undefined && !this.#expires) return inTime
    if (this.#expires && this.made.losesExpired && this.isOver) return 0
    if (done >= 0) return Math.min(all, this.isOver ? done : Math.min(done, inTime))
    // A line is left, else there would be nothing to expire.
    return this.#expires && this.#behaviour.end === 'expired' ? Math.min(inTime, Math.floor(all / 2)) : inTime
  }
}
