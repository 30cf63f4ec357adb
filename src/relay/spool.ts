import { randomUUID } from 'node:crypto'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { GatewayError } from '../errors.ts'
import { type Owner, TwoLevelPool } from '../limits/two-level-pool.ts'

const MIB = 1024 * 1024
/** Bytes of disk for bodies, at least. */
const MIN_DISK_BYTES = 2048 * MIB
/** Bodies of the largest allowed size that there is disk for, at least. */
const MIN_BODIES = 16
/** Part of the disk for one client while no other has come lately. */
const MAX_PART_OF_CLIENT = 7 / 8

/** Disk for large request bodies, shared among clients as the memory is. */
export class Spool {
  readonly #folder: string
  readonly #space: TwoLevelPool

  /** `folder`: not one in memory, as `/tmp` may be. `bodyLimit`: bytes of the largest body. */
  constructor(folder: string, bodyLimit: () => number, nowMs: () => number) {
    this.#folder = folder
    const max = (): number => Math.max(MIN_DISK_BYTES, MIN_BODIES * bodyLimit())
    this.#space = new TwoLevelPool({ max, aloneShare: MAX_PART_OF_CLIENT, nowMs })
  }

  /** Bytes of disk that all bodies hold. */
  get held(): number {
    return this.#space.held
  }

  /** A new file, for the bytes of one client's body. */
  newFile(owner: Owner): SpoolFile {
    return new SpoolFile(owner, this.#space, openNameless(this.#folder))
  }
}

/** Bytes on disk that no other process can read, and that are gone when this process is, however it ends. */
export class SpoolFile {
  readonly #owner: Owner
  readonly #space: TwoLevelPool
  readonly #opening: Promise<FileHandle>
  /** The writes so far; they are made one after another. */
  #written: Promise<unknown>
  #length = 0
  #isClosed = false

  /** Called by `Spool.newFile` alone. */
  constructor(owner: Owner, space: TwoLevelPool, opening: Promise<FileHandle>) {
    this.#owner = owner
    this.#space = space
    this.#opening = opening
    this.#written = opening
    opening.catch(() => {})
  }

  /** Bytes that were added. */
  get length(): number {
    return this.#length
  }

  /**
   * Adds bytes at the end; resolves when they are written. Throws `overloaded` where the client may have no
   * more disk; rejects with it where the disk takes no more.
   */
  append(bytes: Buffer): Promise<void> {
    if (bytes.length > 0 && !this.#space.take(this.#owner, bytes.length)) throw noSpace()
    const position = this.#length
    this.#length += bytes.length
    const writing = this.#written.then(() => this.#write(bytes, position))
    this.#written = writing
    return writing
  }

  /** Reads bytes, once they are written. Fewer than asked for only at the end. */
  async read(position: number, length: number): Promise<Buffer> {
    const handle = await this.#opening
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(length), 0, length, position)
    return buffer.subarray(0, bytesRead)
  }

  /** Descriptor of the file while it is open, for a thread that reads it. */
  async descriptor(): Promise<number> {
    return (await this.#opening).fd
  }

  /** Gives the disk back. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#length > 0) this.#space.give(this.#owner, this.#length)
    this.#opening.then((handle) => handle.close()).catch(() => {})
  }

  async #write(bytes: Buffer, position: number): Promise<void> {
    try {
      const handle = await this.#opening
      for (let at = 0; at < bytes.length; ) {
        const { bytesWritten } = await handle.write(bytes, at, bytes.length - at, position + at)
        at += bytesWritten
      }
    } catch (error) {
      throw this.#isClosed ? error : noSpace(error)
    }
  }
}

/** Opens a file that has no name: it is removed before anything is written to it. */
async function openNameless(folder: string): Promise<FileHandle> {
  const path = join(folder, `.body-${randomUUID()}`)
  const handle = await open(path, 'wx+', 0o600)
  await unlink(path)
  return handle
}

function noSpace(cause?: unknown): GatewayError {
  return new GatewayError('overloaded', 'there is no room for the request body at the moment; try again', {
    retryAfter: 1,
    cause,
  })
}
