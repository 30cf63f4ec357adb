import type { Usage } from './usage.ts'
import { parseRecord } from './json/record.ts'
import { isError, type ReplyFacts } from './reply-facts.ts'
import type { VectorsReading } from './texts-to-embed.ts'
import { type RawVector, VectorReader } from './vectors.ts'

/** Reads a response whose vectors are lists of numbers under one name, at any depth. */
export class NamedVectors implements VectorsReading {
  readonly #reader: VectorReader
  readonly #usageOf: (reply: Readonly<Record<string, unknown>>) => Usage | undefined

  /** `usageOf` reads the usage from the response without its vectors. */
  constructor(
    name: 'embedding' | 'values',
    usageOf: (reply: Readonly<Record<string, unknown>>) => Usage | undefined,
    onVector: (vector: RawVector) => void,
  ) {
    this.#reader = new VectorReader(name, { onVector, onOther: () => {} })
    this.#usageOf = usageOf
  }

  get count(): number {
    return this.#reader.count
  }

  get outline(): string {
    return this.#reader.outline ?? ''
  }

  push(chunk: Buffer): void {
    this.#reader.push(chunk)
  }

  end(): ReplyFacts {
    this.#reader.end()
    const reply = parseRecord(this.outline)
    const error = reply !== undefined && isError(reply['error'])
    const valid = reply !== undefined && !error && this.count > 0
    return { valid, error, usage: valid ? this.#usageOf(reply) : undefined, text: () => '' }
  }
}
