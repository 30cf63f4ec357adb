/** Repeatable chance (mulberry32), so that a corpus is the same in every run. */
export class Chance {
  #seed: number

  constructor(seed: number) {
    this.#seed = seed
  }

  /** A whole number below a limit. */
  below(limit: number): number {
    this.#seed = (this.#seed + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#seed ^ (this.#seed >>> 15), 1 | this.#seed)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit)
  }

  between(least: number, most: number): number {
    return least + this.below(most - least + 1)
  }

  one<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T
  }

  text(length: number, alphabet: string): string {
    return Array.from({ length }, () => alphabet.charAt(this.below(alphabet.length))).join('')
  }

  digits(length: number): string {
    return this.text(length, '0123456789')
  }

  hex(length: number): string {
    return this.text(length, '0123456789abcdef')
  }

  base62(length: number): string {
    return this.text(length, BASE62)
  }

  base64url(length: number): string {
    return this.text(length, `${BASE62}-_`)
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)))
  }

  uuid(): string {
    return `${this.hex(8)}-${this.hex(4)}-4${this.hex(3)}-${this.one(['8', '9', 'a', 'b'])}${this.hex(3)}-${this.hex(12)}`
  }
}

const BASE62 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
