import { createRequire } from 'node:module'

/** Bytes that are parsed at a time, at most. */
export const MOST_AT_ONCE = 65_536

/** What the parser found, told while it runs. Numbers but 0 stop it. Positions are within the bytes that it was given. */
export interface Findings {
  onMessageBegin(): number
  onStatus(start: number, end: number): number
  onHeaderName(start: number, end: number): number
  onHeaderValue(start: number, end: number): number
  onHeadersComplete(status: number, upgrade: boolean, keepAlive: boolean): number
  onBody(start: number, end: number): number
  onMessageComplete(): number
}

/** The functions of the module that are called here; `pointer` is a parser's. */
interface Exports {
  readonly memory: WebAssembly.Memory
  malloc(size: number): number
  llhttp_alloc(type: number): number
  llhttp_free(pointer: number): void
  llhttp_execute(pointer: number, data: number, length: number): number
  llhttp_finish(pointer: number): number
}

const TYPE_RESPONSE = 2

let exports: Exports | undefined
/** Where the bytes that are parsed lie in the module's memory, and a view of them, which is lost whenever that memory grows. */
let input = 0
let view = new Uint8Array()
let running: Findings | undefined

/**
 * An HTTP/1.1 parser of answers: llhttp, which Node itself reads requests with, as the WebAssembly that comes with undici.
 */
export class Llhttp {
  readonly #findings: Findings
  #pointer: number

  constructor(findings: Findings) {
    exports ??= instantiate()
    this.#findings = findings
    this.#pointer = exports.llhttp_alloc(TYPE_RESPONSE)
  }

  /** Parses the first `length` of `bytes`, at most 64 KiB; says whether all of them are as they should be. */
  parse(bytes: Uint8Array, length: number): boolean {
    const llhttp = exports as Exports
    const { memory } = llhttp
    if (view.buffer !== memory.buffer) view = new Uint8Array(memory.buffer, input, MOST_AT_ONCE)
    view.set(length === bytes.length ? bytes : bytes.subarray(0, length))
    running = this.#findings
    try {
      return llhttp.llhttp_execute(this.#pointer, input, length) === 0
    } finally {
      running = undefined
    }
  }

  /** No more will come; says whether what came may end here. */
  finish(): boolean {
    running = this.#findings
    try {
      return (exports as Exports).llhttp_finish(this.#pointer) === 0
    } finally {
      running = undefined
    }
  }

  /** Gives its memory back. It cannot be used any more. */
  free(): void {
    if (this.#pointer === 0) return
    exports?.llhttp_free(this.#pointer)
    this.#pointer = 0
  }
}

function instantiate(): Exports {
  const code = createRequire(import.meta.url)(
    'undici/lib/llhttp/llhttp_simd-wasm.js',
  ) as Uint8Array<ArrayBuffer>
  const found = (): Findings => running as Findings
  const { exports: made } = new WebAssembly.Instance(new WebAssembly.Module(code), {
    env: {
      wasm_on_url: () => 0,
      wasm_on_message_begin: () => found().onMessageBegin(),
      wasm_on_status: (_: number, at: number, length: number) =>
        found().onStatus(at - input, at - input + length),
      wasm_on_header_field: (_: number, at: number, length: number) =>
        found().onHeaderName(at - input, at - input + length),
      wasm_on_header_value: (_: number, at: number, length: number) =>
        found().onHeaderValue(at - input, at - input + length),
      wasm_on_headers_complete: (_: number, status: number, upgrade: number, keepAlive: number) =>
        found().onHeadersComplete(status, upgrade === 1, keepAlive === 1),
      wasm_on_body: (_: number, at: number, length: number) =>
        found().onBody(at - input, at - input + length),
      wasm_on_message_complete: () => found().onMessageComplete(),
    },
  })
  const ready = made as unknown as Exports
  input = ready.malloc(MOST_AT_ONCE)
  return ready
}
