/** The WebAssembly types used in this project. TypeScript has them only in the types for browsers. */
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
