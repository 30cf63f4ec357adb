import { STRING_END_MODULE } from './string-end-module.ts'

/** Number of bytes searched at a time: one page of WebAssembly memory. */
const WINDOW_BYTES = 65_536

interface Scanner {
  readonly memory: Uint8Array
  stringEnd(from: number, to: number): number
}

let scanner: Scanner | undefined
/** Number of the text of which a part is in the memory of the WebAssembly module. */
let loadedText = 0
/** Number of texts that were searched so far, by which each text gets its own number. */
let textCount = 0

/**
 * Finds the ends of JSON strings in steps of sixteen bytes, with vector instructions, which JavaScript does
 * not have.
 */
export class StringEndFinder {
  readonly #bytes: Buffer
  readonly #number = ++textCount
  /**
   * Range of the text that is in the memory of the WebAssembly module. Only valid as long as `loadedText` is
   * the number of this text.
   */
  #from = 0
  #to = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /**
   * Skips valid characters of a string, starting at `at`, which must not be inside an escape sequence.
   * Returns the offset of the closing quote. Otherwise returns an earlier offset outside of escape sequences,
   * from which the caller must read byte by byte: less than sixteen bytes after it there is an invalid
   * character or the end of the text, or the processor has no vector instructions.
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

/** Creates a scanner. On a processor without vector instructions it skips nothing. */
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
