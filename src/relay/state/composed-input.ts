import { edit } from '../../protocols/json/json-edit.ts'
import { scanObject } from '../../protocols/json/json-scan.ts'
import type { ScannedObject } from '../../protocols/json/scanned-object.ts'
import { inputItems } from '../../protocols/responses/index.ts'
import type { ItemSource } from './item-source.ts'
import { textOfItems } from './kept-item-page.ts'

/** Texts whose first parts are read together: one after the other, those of a long chain would take long. */
const READ_AT_ONCE = 8
const CLOSE_ARRAY = 0x5d

/** A request with further items before those of its own input, in one buffer that is filled part by part. */
export class ComposedInput {
  /** Bytes that it takes, at most. */
  readonly size: number
  /** The request as it is alone, and where its first item is. */
  readonly #own: Buffer
  readonly #at: number

  /** `bytes`: what the texts of the further items have, at most; `texts`: their number. */
  constructor(scan: ScannedObject, bytes: number, texts: number) {
    const input = inputItems(scan, (prefix) => `${prefix}_0`)
    this.#own = edit(scan.bytes, scan, { remove: [], replace: new Map([['input', input]]) })
    this.#at = (scanObject(this.#own).span('input')?.start ?? 0) + 1
    this.size = this.#own.length + bytes + texts
  }

  /** Puts the items of these texts before its own. */
  async compose(sources: readonly ItemSource[]): Promise<Buffer> {
    const bytes = Buffer.allocUnsafeSlow(this.size)
    let length = this.#own.copy(bytes, 0, 0, this.#at)
    let isFirst = true
    for (let begin = 0; begin < sources.length; begin += READ_AT_ONCE) {
      const next = sources.slice(begin, begin + READ_AT_ONCE)
      await Promise.all(next.map((source) => source.part(0)))
      for (const source of next) {
        let separator = isFirst ? '' : ','
        for await (const text of textOfItems(source)) {
          length += bytes.write(separator + text, length)
          separator = ''
          isFirst = false
        }
      }
    }
    if (!isFirst && this.#own[this.#at] !== CLOSE_ARRAY) length += bytes.write(',', length)
    length += this.#own.copy(bytes, length, this.#at)
    return bytes.subarray(0, length)
  }
}
