/** The used part of WebAssembly's types, which TypeScript has only with the types of a browser. */
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
