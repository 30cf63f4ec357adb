import { STRING_END_MODULE } from './string-end-module.ts'

/** Number of bytes that are searched at a time: one page of WebAssembly memory. */
const WINDOW_BYTES = 65_536

interface Scanner {
  readonly memory: Uint8Array
  stringEnd(from: number, to: number): number
}

let scanner: Scanner | undefined
/** Number of the text that is loaded: a window of it is in the module's memory. */
let loadedText = 0
/** How many texts there were so far; a text gets this number. */
let textCount = 0

/**
 * Finds the ends of JSON strings in steps of sixteen bytes, with vector instructions, which JavaScript does
 * not have.
 */
export class StringEnds {
  readonly #bytes: Buffer
  readonly #number = ++textCount
  /**
   * Offsets of this text's window in the module's memory; valid only while `loadedText` is the number of this
   * text.
   */
  #from = 0
  #to = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /**
   * Skips well-formed characters of a string, beginning at `at`, which must not be within an escape sequence.
   * Returns the offset of the closing quote. It returns a smaller offset, also outside of escape sequences,
   * if the string must be read byte by byte from there: an invalid character or the end of the text is less
   * than sixteen bytes away, or the processor has no vector instructions.
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
