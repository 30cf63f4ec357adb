import type { Logger } from 'pino'
import type { OpenedLedger } from './open-ledger.ts'
import type { StorageHealth } from '../accounts/ledger/ledger-writer.ts'

/** Milliseconds between attempts to write while the database cannot be written. */
const PROBE_MS = 1_000
/** Minimum milliseconds between two lines in the log. */
const LOG_MS = 60_000

/** What a storage watch needs. */
interface StorageWatchDependencies {
  readonly storage: StorageHealth
  /** Tries to write to the database; resolves to whether that succeeded. */
  readonly probe: () => Promise<boolean>
  readonly log: Pick<Logger, 'error' | 'info'>
  /** A monotonic clock in milliseconds. */
  readonly nowMs: () => number
}

/**
 * Watches a database that cannot be written: tries again until it can, and informs the operator once a
 * minute. `docs/operations.md: Health`.
 */
export class StorageWatch {
  readonly #dependencies: StorageWatchDependencies
  #loggedMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(dependencies: StorageWatchDependencies) {
    this.#dependencies = dependencies
    dependencies.storage.onChange = () => this.#changed()
    if (!dependencies.storage.isOk) this.#changed()
  }

  /** Logs an error of the database, unless one was logged in the last minute. */
  report(error: Error): void {
    const { log, nowMs } = this.#dependencies
    if (nowMs() - this.#loggedMs < LOG_MS) return
    this.#loggedMs = nowMs()
    log.error({ err: error }, 'the storage cannot be used; tried again every second')
  }

  close(): void {
    this.#dependencies.storage.onChange = () => {}
    clearInterval(this.#timer)
  }

  #changed(): void {
    const { storage, log } = this.#dependencies
    clearInterval(this.#timer)
    if (storage.isOk) {
      log.info('the storage can be used again')
      return
    }
    this.#announce()
    this.#timer = setInterval(() => void this.#try(), PROBE_MS).unref()
  }

  async #try(): Promise<void> {
    if (!(await this.#dependencies.probe())) this.#announce()
  }

  #announce(): void {
    const { failure } = this.#dependencies.storage
    if (failure) this.report(failure)
  }
}

/** Starts watching whether a ledger's database can be written. */
export function openStorageWatch(accounts: OpenedLedger, log: Logger): StorageWatch {
  return new StorageWatch({
    storage: accounts.ledger.writes.storage,
    probe: () => accounts.isReady(),
    log,
    nowMs: () => performance.now(),
  })
}
