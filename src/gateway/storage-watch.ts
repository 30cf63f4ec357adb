import type { Logger } from 'pino'
import type { OpenedLedger } from './opened-ledger.ts'
import type { StorageHealth } from '../accounts/ledger/storage-health.ts'

/** Interval at which a storage that cannot be written is tried again. */
const PROBE_MS = 1_000
/** Shortest interval between lines of the log. */
const LOG_MS = 60_000

/** Dependencies of a watch. */
interface StorageWatchParts {
  readonly storage: StorageHealth
  /** Tries a write, and notes its outcome. */
  readonly probe: () => Promise<boolean>
  /** Tells other processes on the same storage to try as well; undefined where there are none. */
  readonly announce?: (() => void) | undefined
  /** Undefined where another process writes the lines for all. */
  readonly log: Pick<Logger, 'error' | 'info'> | undefined
  /** A clock that never goes back. */
  readonly nowMs: () => number
}

/**
 * Watch over a storage that cannot be written: tries it until it can, and tells the operator once a minute.
 * `docs/operations.md: Health`.
 */
export class StorageWatch {
  readonly #parts: StorageWatchParts
  #loggedMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(parts: StorageWatchParts) {
    this.#parts = parts
    parts.storage.onChange = () => this.#changed()
    if (!parts.storage.isOk) this.#changed()
  }

  /** Writes a line about an error of the database, unless there was one in the last minute. */
  report(error: Error): void {
    const { log, nowMs } = this.#parts
    if (!log || nowMs() - this.#loggedMs < LOG_MS) return
    this.#loggedMs = nowMs()
    log.error({ err: error }, 'the storage cannot be used; tried again every second')
  }

  close(): void {
    this.#parts.storage.onChange = () => {}
    clearInterval(this.#timer)
  }

  #changed(): void {
    const { storage, announce, log } = this.#parts
    clearInterval(this.#timer)
    if (storage.isOk) {
      log?.info('the storage can be used again')
      return
    }
    announce?.()
    this.#tell()
    this.#timer = setInterval(() => void this.#try(), PROBE_MS).unref()
  }

  async #try(): Promise<void> {
    if (!(await this.#parts.probe())) this.#tell()
  }

  #tell(): void {
    const { failure } = this.#parts.storage
    if (failure) this.report(failure)
  }
}

/** Text that tells the workers of one machine that one of them could not write. */
const FAILED = 'storage'

/** Whether this process tells of the storage: of several workers on one database the first does. */
export function tellsOfStorage({ others }: Pick<OpenedLedger, 'others'>): boolean {
  return !others || !('link' in others) || others.index === 1
}

/** Begins to watch the storage of a ledger. */
export function openStorageWatch(accounts: OpenedLedger, log: Logger): StorageWatch {
  const { ledger, others } = accounts
  const announcer = others && 'link' in others ? others.announcer : undefined
  announcer?.listen({ received: (text) => text === FAILED && void accounts.isReady() })
  return new StorageWatch({
    storage: ledger.writes.storage,
    probe: () => accounts.isReady(),
    announce: announcer && (() => void announcer.announce(FAILED)),
    log: tellsOfStorage(accounts) ? log : undefined,
    nowMs: () => performance.now(),
  })
}
