import { STRING_END_MODULE } from './string-end-module.ts'

/** Bytes searched at a time: one page of WebAssembly memory. */
const WINDOW_BYTES = 65_536

interface Scanner {
  readonly memory: Uint8Array
  stringEnd(from: number, to: number): number
}

let scanner: Scanner | undefined
/** Number of the text of which a window is in the module's memory. */
let loadedText = 0
/** Number of texts so far; gives each text its number. */
let textCount = 0

/**
 * Finds the ends of JSON strings, sixteen bytes at a time, with vector instructions that JavaScript lacks.
 */
export class StringEnds {
  readonly #bytes: Buffer
  readonly #number = ++textCount
  /** Window of this text in the module's memory; valid only while `loadedText` is the number of this text. */
  #from = 0
  #to = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /**
   * Skips well-formed characters of a string from `at` on, which must not be within an escape sequence.
   * Returns the offset of the closing quote, or a smaller offset, also outside of escape sequences, from
   * which the string must be read byte by byte: an invalid character or the text's end is less than sixteen
   * bytes away, or the processor has no vector instructions.
   */
  skip(at: number): number {
    scanner ??= createScanner()
    if (loadedText !== this.#number || at < this.#from || at >= this.#to) this.#load(at, scanner.memory)
    for (let from = at; ; ) {
      const end = scanner.stringEnd(from - this.#from, this.#to - this.#from)
      if (end >= 0) return this.#from + end
      from = this.#from + ~end
      const isCut = this.#to - from < 16 && this.#to < this.#bytes.length
      if (!isCut) return from
      this.#load(from, scanner.memory)
    }
  }

  #load(from: number, memory: Uint8Array): void {
    this.#from = from
    this.#to = Math.min(from + WINDOW_BYTES, this.#bytes.length)
    memory.set(this.#bytes.subarray(this.#from, this.#to))
    loadedText = this.#number
  }
}

/** Creates a scanner. On processors without vector instructions it skips nothing. */
function createScanner(): Scanner {
  try {
    const code = Uint8Array.from(Buffer.from(STRING_END_MODULE, 'base64'))
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code))
    const { memory, stringEnd } = exports as { memory: WebAssembly.Memory; stringEnd: Scanner['stringEnd'] }
    return { memory: new Uint8Array(memory.buffer), stringEnd }
  } catch {
    return { memory: new Uint8Array(WINDOW_BYTES), stringEnd: (from) => ~from }
  }
}
