import { type FormPart, FormReader } from '@sluice/wire/multipart'
import { ChunkList } from '@sluice/wire/sse/chunk-list'
import type { Replacement, StoredBytes } from './form-body.ts'
import type { SpoolFile } from './spool.ts'

/** A form up to this size stays in memory; a larger one is stored on disk. */
const MAX_FORM_MEMORY = 1024 * 1024

/** Receives the decoded bytes of one body. */
export interface BodySink<Content> {
  /** Number of bytes received. */
  readonly length: number
  /** Bytes of memory that the sink occupies. */
  readonly heldBytes: number
  /**
   * Adds bytes of the body. Throws the error for the client if they cannot be stored. If it returns a
   * promise, no more bytes may be added until that settles; it resolves to the number of bytes that were
   * moved from memory to disk.
   */
  add(bytes: Buffer): Promise<number> | undefined
  /** Ends the body. Throws the error for the client if it is incomplete. */
  finish(): Content
  /** Discards the body. */
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

/** Writes a body to a file. */
export class FileSink implements BodySink<undefined> {
  readonly heldBytes = 0
  readonly #file: SpoolFile

  constructor(file: SpoolFile) {
    this.#file = file
  }

  get length(): number {
    return this.#file.length
  }

  add(bytes: Buffer): Promise<number> {
    return this.#file.append(bytes).then(() => bytes.length)
  }

  finish(): undefined {
    return undefined
  }

  drop(): void {
    void this.#file.close()
  }
}

/** Content of a form: its parts, and the bytes that contain them. */
export interface FormContent {
  readonly parts: readonly FormPart[]
  readonly bytes: StoredBytes
  /** Offsets of the first boundary, and of the end of the last one. */
  readonly bounds: readonly [from: number, to: number]
  /** Parts of the bytes that a feature has changed, apart from the texts of fields. */
  readonly edits?: readonly Replacement[]
}

/** Stores a small body in memory and a large one on disk. */
abstract class SpoolingSink implements BodySink<FormContent> {
  length = 0
  readonly #newFile: () => SpoolFile
  readonly #chunks = new ChunkList()
  #file: SpoolFile | undefined

  constructor(newFile: () => SpoolFile) {
    this.#newFile = newFile
  }

  abstract finish(): FormContent

  get heldBytes(): number {
    return this.#file ? 0 : this.length
  }

  add(bytes: Buffer): Promise<number> | undefined {
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

  /** The bytes of the whole body. */
  protected take(): StoredBytes {
    return this.#file ?? this.#chunks.take()
  }

  drop(): void {
    this.#chunks.take()
    void this.#file?.close()
  }
}

/** Stores a form, and parses it at the same time. */
export class FormSink extends SpoolingSink {
  readonly #reader: FormReader

  constructor(boundary: string, newFile: () => SpoolFile) {
    super(newFile)
    this.#reader = new FormReader(boundary)
  }

  override add(bytes: Buffer): Promise<number> | undefined {
    this.#reader.push(bytes)
    return super.add(bytes)
  }

  override finish(): FormContent {
    const parts = this.#reader.end()
    return { parts, bytes: this.take(), bounds: this.#reader.bounds }
  }
}

/** Stores a body that is not a form. */
export class LargeSink extends SpoolingSink {
  override finish(): FormContent {
    const { length } = this
    const part = {
      name: '',
      filename: undefined,
      contentType: '',
      text: undefined,
      headStart: 0,
      start: 0,
      end: length,
    }
    return { parts: [part], bytes: this.take(), bounds: [0, length] }
  }
}
