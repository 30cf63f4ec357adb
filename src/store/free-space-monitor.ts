import { statfs } from 'node:fs/promises'
import type { StoredDataKind } from '../domain/kept.ts'

/**
 * Nothing is stored if less space is free than the smaller of two limits: these bytes, and `LEAST_FREE_SHARE`
 * of the file system's size.
 */
const LEAST_FREE_BYTES = 2 * 2 ** 30
const LEAST_FREE_SHARE = 0.1
/** Signatures are still stored while at least this fraction of the smaller limit is free. */
const SIGNATURES_FACTOR = 0.5
/**
 * Maximum age of a measurement when something is to be stored, and interval of regular measurements, in
 * milliseconds.
 */
const FRESH_MS = 1_000
const INTERVAL_MS = 10_000

/** Size and free space of a file system, in bytes. */
export interface DiskSpace {
  readonly free: number
  readonly total: number
}

/** Log in which the monitor reports that space has become short or sufficient again. */
export interface SpaceLog {
  warn(fields: object, sentence: string): void
  info(fields: object, sentence: string): void
}

interface FreeSpaceDependencies {
  /** Measures the file system's size and free space. */
  readonly measure: () => Promise<DiskSpace>
  readonly log: SpaceLog
  readonly nowMs: () => number
}

/** Monitors whether the file system has room for data that is kept for users. */
export class FreeSpaceMonitor {
  readonly #dependencies: FreeSpaceDependencies
  readonly #timer: NodeJS.Timeout
  #measuredMs = Number.NEGATIVE_INFINITY
  #isMeasuring = false
  #room: Readonly<Record<StoredDataKind, boolean>> = { responses: true, signatures: true }

  private constructor(dependencies: FreeSpaceDependencies) {
    this.#dependencies = dependencies
    this.#timer = setInterval(() => void this.#measure(), INTERVAL_MS).unref()
  }

  /** Starts monitoring; resolves after the first measurement. */
  static async open(dependencies: FreeSpaceDependencies): Promise<FreeSpaceMonitor> {
    const room = new FreeSpaceMonitor(dependencies)
    await room.#measure()
    return room
  }

  /**
   * Whether there was room for this kind of data at the last measurement. Starts a new measurement if that
   * one is old.
   */
  hasRoomFor(kind: StoredDataKind): boolean {
    if (this.#dependencies.nowMs() - this.#measuredMs > FRESH_MS) void this.#measure()
    return this.#room[kind]
  }

  /** Whether there is room for all kinds. */
  get isOk(): boolean {
    return this.#room.responses
  }

  close(): void {
    clearInterval(this.#timer)
  }

  // If the file system cannot be measured, the last result remains.
  async #measure(): Promise<void> {
    if (this.#isMeasuring) return
    this.#isMeasuring = true
    try {
      this.#note(await this.#dependencies.measure())
    } catch (error) {
      this.#dependencies.log.warn({ err: error }, 'the free space of DATA_DIR cannot be measured')
    } finally {
      this.#isMeasuring = false
      this.#measuredMs = this.#dependencies.nowMs()
    }
  }

  #note({ free, total }: DiskSpace): void {
    const least = leastFree(total)
    const before = this.#room
    this.#room = { responses: hasFreeSpace({ free, total }), signatures: free >= least * SIGNATURES_FACTOR }
    for (const kind of ['responses', 'signatures'] as const) {
      if (this.#room[kind] === before[kind]) continue
      const fields = { free_bytes: free }
      if (before[kind])
        this.#dependencies.log.warn(
          fields,
          `no more ${kind} are kept: the file system of DATA_DIR has little room`,
        )
      else this.#dependencies.log.info(fields, `${kind} are kept again`)
    }
  }
}

/** Whether a file system has room for contents that may be refused. */
export function hasFreeSpace({ free, total }: DiskSpace): boolean {
  return free >= leastFree(total)
}

function leastFree(total: number): number {
  return Math.min(LEAST_FREE_BYTES, total * LEAST_FREE_SHARE)
}

/** Measures the file system that contains a folder. */
export async function measureDiskSpace(folder: string): Promise<DiskSpace> {
  const { bavail, blocks, bsize } = await statfs(folder)
  return { free: bavail * bsize, total: blocks * bsize }
}
