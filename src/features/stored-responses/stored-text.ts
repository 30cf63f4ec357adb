import { StringDecoder } from 'node:string_decoder'
import { KEPT_PART_BYTES, type KeptEntry } from '../../domain/kept.ts'
import type { StoredContent } from '../../domain/stored-response.ts'
import { GatewayError } from '../../errors.ts'
import type { KeptStore } from '../../store/kept-store.ts'

/** The facts of a content in parts: the input, and then the response. A smaller content is in the facts itself. */
export interface ContentFacts {
  readonly inputBytes: number
}

/** One part of a stored text. */
export interface StoredTextPart {
  readonly text: string
  readonly isLast: boolean
}

/** A text within a content in parts: its first and last byte. */
interface TextSpan {
  readonly entry: KeptEntry
  readonly from: number
  readonly to: number
}

/** The input or output of a response that the gateway keeps. All methods reject with `not_found` if it was removed. */
export class StoredText {
  readonly #kept: Pick<KeptStore, 'find' | 'part'>
  readonly #userId: number
  readonly #id: string
  readonly #of: keyof StoredContent
  #span: TextSpan | undefined
  /** For each part: the bytes at the end of the part before it that begin a character. */
  readonly #carried: Buffer[] = [Buffer.alloc(0)]

  constructor(kept: Pick<KeptStore, 'find' | 'part'>, userId: number, id: string, of: keyof StoredContent) {
    this.#kept = kept
    this.#userId = userId
    this.#id = id
    this.#of = of
  }

  /** Reads the text part by part. */
  async *parts(): AsyncGenerator<string, void, undefined> {
    for (let index = 0, isLast = false; !isLast; index += 1) {
      const part = await this.part(index)
      ;({ isLast } = part)
      yield part.text
    }
  }

  /** Reads a part, counted from 0. Before the first time, all parts before it must have been read. */
  async part(index: number): Promise<StoredTextPart> {
    const found = this.#span ?? (await this.#find())
    if (typeof found === 'string') return { text: found, isLast: true }
    this.#span = found
    const { entry, from, to } = found
    const number = Math.floor(from / KEPT_PART_BYTES) + index
    const bytes = await this.#kept.part(entry, number)
    if (!bytes) throw notKept()
    const start = number * KEPT_PART_BYTES
    const isLast = start + KEPT_PART_BYTES >= to
    const own = bytes.subarray(Math.max(0, from - start), Math.min(bytes.length, to - start))
    const whole = Buffer.concat([this.#carried[index] ?? Buffer.alloc(0), own])
    const text = new StringDecoder('utf8').write(whole)
    this.#carried[index + 1] = Buffer.from(whole.subarray(Buffer.byteLength(text)))
    return { text, isLast }
  }

  async #find(): Promise<TextSpan | string> {
    const entry = await this.#kept.find('response', this.#id, this.#userId)
    if (!entry) throw notKept()
    const facts = JSON.parse(entry.facts) as StoredContent | ContentFacts
    if (!('inputBytes' in facts)) return facts[this.#of]
    const { inputBytes } = facts
    return this.#of === 'input'
      ? { entry, from: 0, to: inputBytes }
      : { entry, from: inputBytes, to: entry.bytes }
  }
}

function notKept(): GatewayError {
  return new GatewayError('not_found', 'this response is not kept any more')
}
