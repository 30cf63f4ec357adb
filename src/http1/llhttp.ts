import { createRequire } from 'node:module'

/** Bytes that are parsed at a time, at most. */
export const MAX_PARSE_BYTES = 65_536

/**
 * What a callback says: to go on, to stop after this, that it is wrong, or (of a head) that whoever asks
 * reads its body.
 */
export const CONTINUE = 0
export const REJECT = -1
export const PAUSE = 21
export const SKIP_BODY = 1

/** What the parser found, told while it runs. Positions are within the bytes that it was given. */
export interface ParserCallbacks {
  onMessageBegin(): number
  /** Of a request. */
  onTarget(start: number, end: number): number
  /** Of an answer. */
  onStatus(start: number, end: number): number
  onHeaderName(start: number, end: number): number
  onHeaderValue(start: number, end: number): number
  onHeadersComplete(status: number, upgrade: boolean, keepAlive: boolean): number
  onBody(start: number, end: number): number
  onMessageComplete(): number
}

/** How far a parser came: to the end of the bytes, to where a callback paused it, or to what is no HTTP. */
export type ParseResult = 'all' | 'paused' | 'malformed'

/** The functions of the module that are called here; `pointer` is a parser's. */
interface Exports {
  readonly memory: WebAssembly.Memory
  malloc(size: number): number
  llhttp_alloc(type: number): number
  llhttp_free(pointer: number): void
  llhttp_execute(pointer: number, data: number, length: number): number
  llhttp_finish(pointer: number): number
  llhttp_resume(pointer: number): void
  llhttp_resume_after_upgrade(pointer: number): void
  llhttp_get_error_pos(pointer: number): number
  llhttp_get_method(pointer: number): number
  llhttp_method_name(method: number): number
  llhttp_get_http_major(pointer: number): number
  llhttp_get_http_minor(pointer: number): number
}

const TYPES = { requests: 1, answers: 2 } as const
const OK = 0
const PAUSED = 21
const PAUSED_FOR_UPGRADE = 22

let exports: Exports | undefined
/**
 * Where the bytes that are parsed lie in the module's memory, and a view of them, which is lost whenever that
 * memory grows.
 */
let input = 0
let view = new Uint8Array()
let activeCallbacks: ParserCallbacks | undefined
const methodNames: string[] = []

/**
 * An HTTP/1.1 parser of requests or of answers: llhttp, which Node's own server reads requests with, as the
 * WebAssembly that comes with undici. It is as strict as it can be.
 */
export class Llhttp {
  readonly #callbacks: ParserCallbacks
  #pointer: number

  constructor(type: keyof typeof TYPES, callbacks: ParserCallbacks) {
    exports ??= instantiate()
    this.#callbacks = callbacks
    this.#pointer = exports.llhttp_alloc(TYPES[type])
  }

  /** Parses `bytes` from one position to another, at most 64 KiB. */
  parse(bytes: Uint8Array, from: number, to: number): ParseResult {
    const llhttp = exports as Exports
    const { memory } = llhttp
    if (view.buffer !== memory.buffer) view = new Uint8Array(memory.buffer, input, MAX_PARSE_BYTES)
    view.set(from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to))
    activeCallbacks = this.#callbacks
    try {
      switch (llhttp.llhttp_execute(this.#pointer, input, to - from)) {
        case OK:
          return 'all'
        case PAUSED:
        case PAUSED_FOR_UPGRADE:
          return 'paused'
        default:
          return 'malformed'
      }
    } finally {
      activeCallbacks = undefined
    }
  }

  /** After a pause: how many of the bytes it has parsed. */
  get parsedBytes(): number {
    return (exports as Exports).llhttp_get_error_pos(this.#pointer) - input
  }

  /** Ends a pause, also one where another protocol was asked for: nobody speaks any here. */
  resume(): void {
    const llhttp = exports as Exports
    llhttp.llhttp_resume(this.#pointer)
    llhttp.llhttp_resume_after_upgrade(this.#pointer)
  }

  /** No more will come; says whether what came may end here. */
  finish(): boolean {
    activeCallbacks = this.#callbacks
    try {
      return (exports as Exports).llhttp_finish(this.#pointer) === OK
    } finally {
      activeCallbacks = undefined
    }
  }

  /** The method of the request whose head is complete. */
  get method(): string {
    const llhttp = exports as Exports
    const number = llhttp.llhttp_get_method(this.#pointer)
    return (methodNames[number] ??= textAt(llhttp.memory, llhttp.llhttp_method_name(number)))
  }

  /** The version of the message whose head is complete, as in `1.1`. */
  get version(): string {
    const llhttp = exports as Exports
    const major = llhttp.llhttp_get_http_major(this.#pointer)
    const minor = llhttp.llhttp_get_http_minor(this.#pointer)
    return major === 1 && minor === 1 ? '1.1' : `${major}.${minor}`
  }

  /** Gives its memory back. It cannot be used any more. */
  free(): void {
    if (this.#pointer === 0) return
    exports?.llhttp_free(this.#pointer)
    this.#pointer = 0
  }
}

// A text of C: a NUL is its end.
function textAt({ buffer }: WebAssembly.Memory, pointer: number): string {
  const bytes = Buffer.from(buffer)
  return bytes.toString('latin1', pointer, bytes.indexOf(0, pointer))
}

function instantiate(): Exports {
  const code = createRequire(import.meta.url)(
    'undici/lib/llhttp/llhttp_simd-wasm.js',
  ) as Uint8Array<ArrayBuffer>
  const callbacks = (): ParserCallbacks => activeCallbacks as ParserCallbacks
  const { exports: made } = new WebAssembly.Instance(new WebAssembly.Module(code), {
    env: {
      wasm_on_message_begin: () => callbacks().onMessageBegin(),
      wasm_on_url: (_: number, at: number, length: number) =>
        callbacks().onTarget(at - input, at - input + length),
      wasm_on_status: (_: number, at: number, length: number) =>
        callbacks().onStatus(at - input, at - input + length),
      wasm_on_header_field: (_: number, at: number, length: number) =>
        callbacks().onHeaderName(at - input, at - input + length),
      wasm_on_header_value: (_: number, at: number, length: number) =>
        callbacks().onHeaderValue(at - input, at - input + length),
      wasm_on_headers_complete: (_: number, status: number, upgrade: number, keepAlive: number) =>
        callbacks().onHeadersComplete(status, upgrade === 1, keepAlive === 1),
      wasm_on_body: (_: number, at: number, length: number) =>
        callbacks().onBody(at - input, at - input + length),
      wasm_on_message_complete: () => callbacks().onMessageComplete(),
    },
  })
  const ready = made as unknown as Exports
  input = ready.malloc(MAX_PARSE_BYTES)
  return ready
}
