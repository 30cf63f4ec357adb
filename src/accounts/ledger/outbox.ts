import { type AccountName, accountsOfCall } from '../../store/bank.ts'
import type { NodeFile, OutboxEntry } from '../../store/node-file.ts'

/** Maximum number of settled calls in one report to the bank. */
const REPORT_ROWS = 500

/**
 * Settled calls of this node that the bank (the database that lends quota) has not counted. Entries on locked
 * accounts are skipped.
 */
export class Outbox {
  readonly #file: Pick<NodeFile, 'write'>
  /** Set while the file may contain settled calls that can be reported to the bank. */
  #mayHaveEntries = true
  /**
   * Number of calls settled since the last read; and whether there may be new entries since then that can be
   * reported.
   */
  #settled = 0
  #hasNews = false
  #hasMore = false
  /** Accounts that another database session has locked in the bank; entries that charge them have to wait. */
  #locked: ReadonlySet<AccountName> = new Set()
  /** Places in the node's file of the entries that the bank has counted but that are not removed yet. */
  readonly #counted = new Set<number>()

  constructor(file: Pick<NodeFile, 'write'>) {
    this.#file = file
  }

  /** Whether the file may contain settled calls that can be reported to the bank. */
  get mayHaveEntries(): boolean {
    return this.#mayHaveEntries
  }

  /** Whether the file may have further settled calls after those that were last read. */
  get hasMore(): boolean {
    return this.#hasMore
  }

  /** Whether there are enough settled calls to report them before the usual time. */
  get isFull(): boolean {
    return this.#hasMore || this.#settled >= REPORT_ROWS
  }

  /** Whether settled calls may be waiting because accounts that they charge are locked in the bank. */
  get hasLocked(): boolean {
    return this.#locked.size > 0
  }

  /** Records that a call was settled; returns true if there are enough entries to report now. */
  onSettled(): boolean {
    this.#mayHaveEntries = true
    this.#hasNews = true
    this.#settled += 1
    return this.#settled >= REPORT_ROWS
  }

  /** Reads the oldest settled calls that can be reported to the bank. */
  async read(): Promise<readonly OutboxEntry[]> {
    if (!this.#mayHaveEntries) return []
    this.#settled = 0
    this.#hasNews = false
    this.#mayHaveEntries = false
    try {
      const entries = await this.#file.write('outbox', { limit: REPORT_ROWS, except: [...this.#locked] })
      this.#hasMore = entries.length === REPORT_ROWS
      // Settled calls stay in the file until the bank has counted them.
      if (entries.length > 0) this.#mayHaveEntries = true
      return entries
    } catch (error) {
      this.#mayHaveEntries = true
      throw error
    }
  }

  /** Reads all entries: those that an earlier run left, including those on locked accounts. */
  readAll(): Promise<readonly OutboxEntry[]> {
    return this.#file.write('outbox', { limit: Number.MAX_SAFE_INTEGER, except: [] })
  }

  /**
   * Processes the bank's answer to a report of these entries. `counted`: the entries that the bank has
   * counted. `fresh`: those that were not already counted in an earlier answer; an entry whose removal failed
   * is reported twice.
   */
  applyAnswer(
    entries: readonly OutboxEntry[],
    locked: readonly AccountName[],
  ): { readonly counted: readonly OutboxEntry[]; readonly fresh: readonly OutboxEntry[] } {
    const nowLocked = new Set(locked)
    if ([...this.#locked].some((account) => !nowLocked.has(account))) {
      this.#mayHaveEntries = true
      this.#hasNews = true
    }
    this.#locked = nowLocked
    const counted = entries.filter(
      (entry) => !accountsOfCall(entry).some((account) => nowLocked.has(account)),
    )
    const fresh = counted.filter(({ place }) => !this.#counted.has(place))
    for (const { place } of fresh) this.#counted.add(place)
    return { counted, fresh }
  }

  /** Removes settled calls that the bank has counted from the file. */
  async remove(counted: readonly OutboxEntry[]): Promise<void> {
    const places = counted.map(({ place }) => place)
    if (places.length > 0) await this.#file.write('reported', { places })
    for (const place of places) this.#counted.delete(place)
    if (!this.#hasMore && !this.#hasNews) this.#mayHaveEntries = false
  }
}
