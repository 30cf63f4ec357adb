import { type FormPart, FormReader } from '../protocols/multipart/form-reader.ts'
import { ChunkList } from '../protocols/sse/chunk-list.ts'
import type { StoredBytes } from './form-body.ts'
import type { SpoolFile } from './spool.ts'

/** Bytes of a form that stay in memory; a larger one is on disk. */
const MAX_FORM_MEMORY = 1024 * 1024

/** Takes in the decoded bytes of one body. */
export interface BodySink<Content> {
  /** Bytes that came. */
  readonly length: number
  /** Bytes of memory that it holds. */
  readonly heldBytes: number
  /**
   * Takes bytes; throws the error for the client where they cannot be taken. A promise where no more should
   * come until it is settled: with the number of bytes that left the memory, or with the error.
   */
  add(bytes: Buffer): Promise<number> | undefined
  /** Ends the body; throws the error for the client where it is not complete. */
  finish(): Content
  /** Gives up the body. */
  drop(): void
}

/** Keeps a body in memory. */
export class MemorySink implements BodySink<Buffer> {
  readonly #chunks = new ChunkList()

  get length(): number {
    return this.#chunks.length
  }

  get heldBytes(): number {
    return this.#chunks.length
  }

  add(bytes: Buffer): undefined {
    this.#chunks.add(bytes)
  }

  finish(): Buffer {
    return this.#chunks.take()
  }

  drop(): void {
    this.#chunks.take()
  }
}

/** Content of a form: its parts, and the bytes that they are in. */
export interface FormContent {
  readonly parts: readonly FormPart[]
  readonly bytes: StoredBytes
}

/** Keeps a small form in memory and a large one on disk, and reads it meanwhile. */
export class FormSink implements BodySink<FormContent> {
  length = 0
  readonly #reader: FormReader
  readonly #newFile: () => SpoolFile
  readonly #chunks = new ChunkList()
  #file: SpoolFile | undefined

  constructor(boundary: string, newFile: () => SpoolFile) {
    this.#reader = new FormReader(boundary)
    this.#newFile = newFile
  }

  get heldBytes(): number {
    return this.#file ? 0 : this.length
  }

  add(bytes: Buffer): Promise<number> | undefined {
    this.#reader.push(bytes)
    this.length += bytes.length
    let toWrite = bytes
    if (!this.#file) {
      this.#chunks.add(bytes)
      if (this.#chunks.length <= MAX_FORM_MEMORY) return undefined
      toWrite = this.#chunks.take()
      this.#file = this.#newFile()
    }
    return this.#file.append(toWrite).then(() => toWrite.length)
  }

  finish(): FormContent {
    return { parts: this.#reader.end(), bytes: this.#file ?? this.#chunks.take() }
  }

  drop(): void {
    this.#chunks.take()
    this.#file?.close()
  }
}
