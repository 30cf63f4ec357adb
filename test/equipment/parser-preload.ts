import { hash } from 'node:crypto'
import { createRequire } from 'node:module'
import process from 'node:process'
import { isMainThread } from 'node:worker_threads'

// Loaded into the program under test before anything else: at SIGUSR2 it reports which HTTP parsers were at
// work, as a line of JSON.

const RealModule = WebAssembly.Module
const RealInstance = WebAssembly.Instance
const hashes = new WeakMap<WebAssembly.Module, string>()
const report = { sha256: '', requests: 0, responses: 0, nodeParsers: 0 }

WebAssembly.Module = class extends RealModule {
  constructor(code: BufferSource) {
    super(code)
    hashes.set(this, hash('sha256', code as Uint8Array))
  }
} as typeof RealModule

WebAssembly.Instance = class extends RealInstance {
  constructor(module: WebAssembly.Module, imports?: WebAssembly.Imports) {
    super(module, imports)
    const { llhttp_alloc: alloc, llhttp_execute: execute } = this.exports
    if (typeof alloc !== 'function' || typeof execute !== 'function') return
    report.sha256 = hashes.get(module) ?? ''
    const types = new Map<number, number>()
    const exports = {
      ...this.exports,
      llhttp_alloc: (type: number) => {
        const pointer = alloc(type) as number
        types.set(pointer, type)
        return pointer
      },
      llhttp_execute: (pointer: number, at: number, length: number) => {
        if (types.get(pointer) === 1) report.requests += 1
        else report.responses += 1
        return execute(pointer, at, length) as number
      },
    }
    Object.defineProperty(this, 'exports', { value: exports })
  }
} as typeof RealInstance

interface NodeParser {
  initialize(...given: unknown[]): unknown
}
const { HTTPParser } = createRequire(import.meta.url)('node:_http_common') as {
  HTTPParser: { readonly prototype: NodeParser }
}
const { initialize } = HTTPParser.prototype
HTTPParser.prototype.initialize = function (this: NodeParser, ...given) {
  report.nodeParsers += 1
  return initialize.apply(this, given)
}

if (isMainThread) process.on('SIGUSR2', () => console.error(`parsers: ${JSON.stringify(report)}`))
