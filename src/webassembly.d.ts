/**
 * The parts of WebAssembly's types that are used here; TypeScript has them only together with the types of
 * browsers.
 */
declare namespace WebAssembly {
  interface Module {
    readonly [Symbol.toStringTag]: string
  }
  const Module: new (code: Uint8Array<ArrayBuffer>) => Module
  class Instance {
    constructor(module: Module, imports?: Record<string, Record<string, (...numbers: number[]) => number>>)
    readonly exports: Record<string, unknown>
  }
  interface Memory {
    readonly buffer: ArrayBuffer
  }
}
