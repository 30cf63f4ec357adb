import { statfs } from 'node:fs/promises'

/** Nothing is kept where less is free than the smaller of these bytes and this share of the file system. */
const LEAST_FREE_BYTES = 2 * 2 ** 30
const LEAST_FREE_SHARE = 0.1
/** Signatures are kept until half of that is free. */
const SIGNATURES_FACTOR = 0.5
/** Age of a measurement from which it is repeated when something is to be kept. */
const FRESH_MS = 1_000
const INTERVAL_MS = 10_000

/** Kind of what is kept for users. */
export type KeptKind = 'responses' | 'signatures'

/** Bytes of a file system. */
export interface Space {
  readonly free: number
  readonly total: number
}

/** Log of changes. */
export interface RoomLog {
  warn(fields: object, sentence: string): void
  info(fields: object, sentence: string): void
}

interface KeepingRoomParts {
  /** Measures the file system. */
  readonly measure: () => Promise<Space>
  readonly log: RoomLog
  readonly nowMs: () => number
}

/** Watch over the file system: whether it has room for what is kept for users. */
export class KeepingRoom {
  readonly #parts: KeepingRoomParts
  readonly #timer: NodeJS.Timeout
  #measuredMs = Number.NEGATIVE_INFINITY
  #isMeasuring = false
  #room: Readonly<Record<KeptKind, boolean>> = { responses: true, signatures: true }

  private constructor(parts: KeepingRoomParts) {
    this.#parts = parts
    this.#timer = setInterval(() => void this.#measure(), INTERVAL_MS).unref()
  }

  /** Begins to watch; resolves after the first measurement. */
  static async open(parts: KeepingRoomParts): Promise<KeepingRoom> {
    const room = new KeepingRoom(parts)
    await room.#measure()
    return room
  }

  /** Whether there was room for this kind at the latest measurement; a new one begins where that is old. */
  hasRoomFor(kind: KeptKind): boolean {
    if (this.#parts.nowMs() - this.#measuredMs > FRESH_MS) void this.#measure()
    return this.#room[kind]
  }

  /** Whether there is room for all kinds. */
  get isOk(): boolean {
    return this.#room.responses
  }

  close(): void {
    clearInterval(this.#timer)
  }

  // A file system that cannot be measured is taken to be as before.
  async #measure(): Promise<void> {
    if (this.#isMeasuring) return
    this.#isMeasuring = true
    try {
      this.#note(await this.#parts.measure())
    } catch (error) {
      this.#parts.log.warn({ err: error }, 'the free space of DATA_DIR cannot be measured')
    } finally {
      this.#isMeasuring = false
      this.#measuredMs = this.#parts.nowMs()
    }
  }

  #note({ free, total }: Space): void {
    const least = Math.min(LEAST_FREE_BYTES, total * LEAST_FREE_SHARE)
    const before = this.#room
    this.#room = { responses: free >= least, signatures: free >= least * SIGNATURES_FACTOR }
    for (const kind of ['responses', 'signatures'] as const) {
      if (this.#room[kind] === before[kind]) continue
      const fields = { free_bytes: free }
      if (before[kind])
        this.#parts.log.warn(fields, `no more ${kind} are kept: the file system of DATA_DIR has little room`)
      else this.#parts.log.info(fields, `${kind} are kept again`)
    }
  }
}

/** Measures the file system of a folder. */
export async function spaceOf(folder: string): Promise<Space> {
  const { bavail, blocks, bsize } = await statfs(folder)
  return { free: bavail * bsize, total: blocks * bsize }
}
