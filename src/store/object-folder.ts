import { constants } from 'node:fs'
import { mkdir, open, rm, stat, type FileHandle, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hasFreeSpace, measureDiskSpace } from './free-space-monitor.ts'
import type { ObjectPlace, ObjectRange } from './object-place.ts'

/** Name of the empty file by which a folder is known to be the one that has the objects. */
export const FOLDER_MARK = '.sluice-files'

/** Keeps objects as files of a folder, which only the account of the gateway can read. */
export class ObjectFolder implements ObjectPlace {
  readonly #path: string
  readonly #mark: string
  readonly #mayBeUnmounted: boolean

  /**
   * The folder is created with the first object. `mayBeUnmounted`: whether it may be an empty folder where a share is
   * usually mounted. Then nothing is known of objects while it has no mark.
   */
  constructor(path: string, mayBeUnmounted = false) {
    this.#path = path
    this.#mark = join(path, FOLDER_MARK)
    this.#mayBeUnmounted = mayBeUnmounted
  }

  async begin(isFirst: () => Promise<boolean>): Promise<void> {
    if (await this.#isMarked()) return
    // Another content may have marked the folder in the meantime.
    if (this.#mayBeUnmounted && !(await isFirst()) && !(await this.#isMarked())) throw this.#unmounted()
    await mkdir(this.#path, { recursive: true, mode: 0o700 })
    await writeFile(this.#mark, '', { flag: 'a', mode: 0o600 })
  }

  // Without the folder nothing is known of its files, so it is not created here.
  async hasRoom(): Promise<boolean> {
    return hasFreeSpace(await measureDiskSpace(this.#path))
  }

  async put(name: string, bytes: Buffer): Promise<void> {
    if (this.#mayBeUnmounted) await this.#expectMark()
    else await mkdir(this.#path, { recursive: true, mode: 0o700 })
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
      await (this.#mayBeUnmounted ? this.#expectMark() : stat(this.#path))
      return undefined
    }
  }

  async remove(name: string): Promise<void> {
    if (this.#mayBeUnmounted) await this.#expectMark()
    await rm(this.#pathOf(name), { force: true })
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  async #expectMark(): Promise<void> {
    if (!(await this.#isMarked())) throw this.#unmounted()
  }

  #unmounted(): Error {
    return new Error(
      `${this.#path} has no file ${FOLDER_MARK}: it is not mounted, or not the folder of the files`,
    )
  }

  #isMarked(): Promise<boolean> {
    return stat(this.#mark).then(
      () => true,
      (error: unknown) => (codeOf(error) === 'ENOENT' ? false : Promise.reject(error as Error)),
    )
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
