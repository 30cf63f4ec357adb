import { randomUUID } from 'node:crypto'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { GatewayError } from '../errors.ts'
import { type PoolShareOwner, TwoLevelPool } from '../limits/fair-pool.ts'

const MIB = 1024 * 1024
/** Minimum size of the disk space for request bodies, in bytes. */
const MIN_DISK_BYTES = 2048 * MIB
/** Number of request bodies of the maximum size for which there is always disk space. */
const MIN_BODIES = 16
/** Share of the disk space (0 to 1) that one client may use while no other client is active. */
const MAX_PART_OF_CLIENT = 7 / 8

/** Disk space for large request bodies. Clients share it by the same rules as memory. */
export class Spool {
  readonly #folder: string
  readonly #space: TwoLevelPool
  readonly #onGarbage: ((bytes: number) => void) | undefined

  /**
   * `folder` must not be in memory, as `/tmp` may be. `bodyLimit` returns the maximum bytes of one body. `onGarbage` is called
   * with the bytes of buffers that were written or read.
   */
  constructor(
    folder: string,
    bodyLimit: () => number,
    nowMs: () => number,
    onGarbage?: (bytes: number) => void,
  ) {
    this.#folder = folder
    this.#onGarbage = onGarbage
    const max = (): number => Math.max(MIN_DISK_BYTES, MIN_BODIES * bodyLimit())
    this.#space = new TwoLevelPool({ max, aloneShare: MAX_PART_OF_CLIENT, nowMs })
  }

  /** Bytes of disk space that all files together occupy. */
  get held(): number {
    return this.#space.held
  }

  /** Creates a file for one client's body. */
  newFile(owner: PoolShareOwner): SpoolFile {
    return new SpoolFile(owner, this.#space, openNameless(this.#folder), this.#onGarbage)
  }

  /**
   * Creates a file that stays at `path`. After it is closed, its bytes no longer count against the disk space
   * for request bodies.
   */
  newNamedFile(owner: PoolShareOwner, path: string): SpoolFile {
    return new SpoolFile(owner, this.#space, open(path, 'wx+', 0o600))
  }
}

/** A file that no other process can read and that disappears with this process, however it ends. */
export class SpoolFile {
  readonly #owner: PoolShareOwner
  readonly #space: TwoLevelPool
  readonly #opening: Promise<FileHandle>
  /** Pending until all writes so far are finished; writes run one after another. */
  #written: Promise<unknown>
  #length = 0
  #closing: Promise<void> | undefined
  readonly #onGarbage: ((bytes: number) => void) | undefined

  /** Called only by `Spool.newFile` and `Spool.newNamedFile`. */
  constructor(
    owner: PoolShareOwner,
    space: TwoLevelPool,
    opening: Promise<FileHandle>,
    onGarbage?: (bytes: number) => void,
  ) {
    this.#onGarbage = onGarbage
    this.#owner = owner
    this.#space = space
    this.#opening = opening
    this.#written = opening
    opening.catch(() => {})
  }

  /** Number of bytes that were added to the file. */
  get length(): number {
    return this.#length
  }

  /**
   * Appends bytes; resolves when they are written. Throws `overloaded` if the client has used its share of
   * the disk; rejects with the same error if the disk is full.
   */
  append(bytes: Buffer): Promise<void> {
    if (bytes.length > 0 && !this.#space.take(this.#owner, bytes.length)) throw noSpace()
    const position = this.#length
    this.#length += bytes.length
    const writing = this.#written.then(() => this.#write(bytes, position))
    this.#written = writing
    return writing
  }

  /** Reads bytes after they were written. Returns fewer than requested only at the end. */
  async read(position: number, length: number): Promise<Buffer> {
    const handle = await this.#opening
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(length), 0, length, position)
    this.#onGarbage?.(length)
    return buffer.subarray(0, bytesRead)
  }

  /** Descriptor of the open file, for a thread that reads it. */
  async descriptor(): Promise<number> {
    return (await this.#opening).fd
  }

  /** Releases the disk space; resolves when the file is closed, also if it is still being opened. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    if (this.#length > 0) this.#space.give(this.#owner, this.#length)
    await this.#opening.then((handle) => handle.close()).catch(() => {})
  }

  async #write(bytes: Buffer, position: number): Promise<void> {
    try {
      const handle = await this.#opening
      for (let at = 0; at < bytes.length; ) {
        const { bytesWritten } = await handle.write(bytes, at, bytes.length - at, position + at)
        at += bytesWritten
      }
      this.#onGarbage?.(2 * bytes.length)
    } catch (error) {
      throw this.#closing ? error : noSpace(error)
    }
  }
}

/** Opens a file and removes its name before anything is written to it. */
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
