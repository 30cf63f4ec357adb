import { constants } from 'node:fs'
import { mkdir, open, rm, stat, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { hasFreeSpace, measureDiskSpace } from './free-space-monitor.ts'
import type { ObjectPlace, ObjectRange } from './object-place.ts'

/** Keeps objects as files of a folder, which only the account of the gateway can read. */
export class ObjectFolder implements ObjectPlace {
  readonly #path: string

  /** The folder is created with the first object. */
  constructor(path: string) {
    this.#path = path
  }

  async hasRoom(): Promise<boolean> {
    await mkdir(this.#path, { recursive: true, mode: 0o700 })
    return hasFreeSpace(await measureDiskSpace(this.#path))
  }

  async put(name: string, bytes: Buffer): Promise<void> {
    await mkdir(this.#path, { recursive: true, mode: 0o700 })
    const path = this.#pathOf(name)
    try {
      // Existing files and links are not written to.
      const file = await open(path, 'wx', 0o600)
      await closed(file, async () => {
        await file.writeFile(bytes)
        await file.sync()
      })
      const folder = await open(this.#path, 'r')
      await closed(folder, () => folder.sync())
    } catch (error) {
      // A full disk leaves a part of the file.
      if (codeOf(error) !== 'EEXIST') await rm(path, { force: true }).catch(() => {})
      throw error
    }
  }

  async get(name: string, { at, length }: ObjectRange): Promise<Buffer | undefined> {
    try {
      const file = await open(this.#pathOf(name), constants.O_RDONLY | constants.O_NOFOLLOW)
      return await closed(file, async () => {
        const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, at)
        return buffer.subarray(0, bytesRead)
      })
    } catch (error) {
      if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ELOOP') throw error
      // Without the folder, nothing is known of its files.
      await stat(this.#path)
      return undefined
    }
  }

  remove(name: string): Promise<void> {
    return rm(this.#pathOf(name), { force: true })
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #pathOf(name: string): string {
    return join(this.#path, name.replace('/', '.'))
  }
}

async function closed<Result>(file: FileHandle, use: () => Promise<Result>): Promise<Result> {
  try {
    return await use()
  } finally {
    await file.close()
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
