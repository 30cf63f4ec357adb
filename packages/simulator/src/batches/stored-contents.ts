import { createReadStream, createWriteStream, type ReadStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

/** A content on the disk. */
export interface StoredContent {
  readonly path: string
  readonly bytes: number
}

/** Contents of files and results, in a folder that is deleted by `close`. */
export class StoredContents {
  #folder: Promise<string> | undefined
  #count = 0

  /** A path for a new content. */
  async newPath(): Promise<string> {
    this.#folder ??= mkdtemp(join(tmpdir(), 'sluice-simulator-'))
    this.#count += 1
    return join(await this.#folder, String(this.#count))
  }

  /** Stores a content while it arrives. One that breaks off leaves nothing. */
  async keep(pieces: AsyncIterable<Buffer>): Promise<StoredContent> {
    const path = await this.newPath()
    const file = createWriteStream(path)
    try {
      await pipeline(pieces, file)
    } catch (error) {
      await rm(path, { force: true })
      throw error
    }
    return { path, bytes: file.bytesWritten }
  }

  read({ path }: StoredContent): ReadStream {
    return createReadStream(path)
  }

  async remove({ path }: StoredContent): Promise<void> {
    await rm(path, { force: true })
  }

  async close(): Promise<void> {
    const folder = await this.#folder
    if (folder !== undefined) await rm(folder, { recursive: true, force: true })
  }
}
