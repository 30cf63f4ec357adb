/** Bytes searched at a time: one page of WebAssembly memory; a second page covers reads beyond its end. */
const WINDOW_BYTES = 65_536

/**
 * WebAssembly module with `plainEnd(from, to)`: the offset of the first control character, quote or backslash
 * in memory; `to` or more if there is none. Compares sixteen bytes at a time, which JavaScript cannot.
 */
// biome-ignore format: an instruction a line
const PLAIN_END = Uint8Array.of(
  0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00,
  ...section(1, [1, 0x60, 2, 0x7f, 0x7f, 1, 0x7f]), // type 0: (i32, i32) → i32
  ...section(3, [1, 0]), // one function of that type
  ...section(5, [1, 0, 2]), // a memory of two pages
  ...section(7, [2, ...named('memory'), 2, 0, ...named('plainEnd'), 0, 0]),
  ...section(10, [1, ...sized([
    2, 4, 0x7b, 1, 0x7f, // locals 2 to 5: four vectors of sixteen bytes; local 6: an integer
    0x41, 0x20, 0xfd, 0x0f, 0x21, 3, // 3 = 0x20 sixteen times
    0x41, 0x22, 0xfd, 0x0f, 0x21, 4, // 4 = quotes
    0x41, 0xdc, 0x00, 0xfd, 0x0f, 0x21, 5, // 5 = backslashes
    0x02, 0x40, // block
    0x03, 0x40, // loop
    0x20, 0, 0x20, 1, 0x4f, 0x0d, 1, // out of the block if from ≥ to
    0x20, 0, 0xfd, 0x00, 0, 0, 0x22, 2, // 2 = the sixteen bytes at from
    0x20, 3, 0xfd, 0x26, // which are below 0x20,
    0x20, 2, 0x20, 4, 0xfd, 0x23, 0xfd, 0x50, // or quotes,
    0x20, 2, 0x20, 5, 0xfd, 0x23, 0xfd, 0x50, // or backslashes,
    0xfd, 0x64, 0x22, 6, // 6 = one bit for each
    0x04, 0x40, // if there is any
    0x20, 0, 0x20, 6, 0x68, 0x6a, 0x0f, // return from + the place of the lowest
    0x0b, // end of if
    0x20, 0, 0x41, 16, 0x6a, 0x21, 0, // from += 16
    0x0c, 0, // again
    0x0b, 0x0b, // end of loop and block
    0x20, 1, 0x0b, // to
  ])]),
)

interface Scanner {
  readonly memory: Uint8Array
  plainEnd(from: number, to: number): number
}

let scanner: Scanner | undefined
/** Number of the text whose window is in memory. */
let loadedText = 0
/** Count of texts; the number identifies the text of a window. */
let textCount = 0

/** Search for the end of plain bytes: those that stand in a JSON string unescaped. */
export class PlainText {
  readonly #bytes: Buffer
  readonly #number = ++textCount
  /** Window of this text, valid while it is in memory. */
  #from = 0
  #to = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** Finds the first byte from `at` on that is not plain; the text's length if there is none. */
  endOf(at: number): number {
    const { length } = this.#bytes
    scanner ??= createScanner()
    for (let from = at; from < length; from = this.#to) {
      if (loadedText !== this.#number || from < this.#from || from >= this.#to)
        this.#load(from, scanner.memory)
      const end = this.#from + scanner.plainEnd(from - this.#from, this.#to - this.#from)
      if (end < this.#to) return end
    }
    return length
  }

  #load(from: number, memory: Uint8Array): void {
    this.#from = from
    this.#to = Math.min(from + WINDOW_BYTES, this.#bytes.length)
    memory.set(this.#bytes.subarray(this.#from, this.#to))
    loadedText = this.#number
  }
}

/** Creates a scanner that compares byte by byte, for processors without vector instructions. */
export function scalarScanner(): Scanner {
  const memory = new Uint8Array(WINDOW_BYTES)
  return {
    memory,
    plainEnd(from, to) {
      let at = from
      while (at < to && isPlain(memory[at] as number)) at++
      return at
    },
  }
}

/** Whether a byte may stand in a string unescaped. Bytes beyond ASCII always may, in valid UTF-8. */
export function isPlain(byte: number): boolean {
  return byte >= 0x20 && byte !== 0x22 && byte !== 0x5c
}

function createScanner(): Scanner {
  try {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(PLAIN_END))
    const { memory, plainEnd } = exports as { memory: WebAssembly.Memory; plainEnd: Scanner['plainEnd'] }
    return { memory: new Uint8Array(memory.buffer), plainEnd }
  } catch {
    return scalarScanner()
  }
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...sized(content)]
}

// All lengths are below 128, which encode as one byte.
function sized(content: readonly number[]): number[] {
  return [content.length, ...content]
}

function named(name: string): number[] {
  return sized([...Buffer.from(name)])
}
