import { hash } from 'node:crypto'
import { createRequire } from 'node:module'
import process from 'node:process'
import { isMainThread } from 'node:worker_threads'

// Loaded into the program under test before all other modules: on SIGUSR2 it prints which HTTP parsers were
// used, as a line of JSON.

interface Instance {
  exports: Record<string, unknown>
}
type Constructor = new (...given: readonly unknown[]) => object
type Operation = (...given: readonly number[]) => number

const platform = WebAssembly as unknown as { Module: Constructor; Instance: Constructor }
const { Module: RealModule, Instance: RealInstance } = platform
const hashes = new WeakMap<object, string>()
const report = { sha256: '', requests: 0, responses: 0, nodeParsers: 0 }

platform.Module = new Proxy(RealModule, {
  construct(target, given) {
    const module = new target(...given)
    hashes.set(module, hash('sha256', given[0] as Uint8Array))
    return module
  },
})

platform.Instance = new Proxy(RealInstance, {
  construct(target, given) {
    const { exports } = new target(...given) as Instance
    const { llhttp_alloc: alloc, llhttp_execute: execute } = exports
    if (!isOperation(alloc) || !isOperation(execute)) return { exports }
    report.sha256 = hashes.get(given[0] as object) ?? ''
    const types = new Map<number, number>()
    const counted = {
      llhttp_alloc(type: number): number {
        const pointer = alloc(type)
        types.set(pointer, type)
        return pointer
      },
      llhttp_execute(pointer: number, at: number, length: number): number {
        if (types.get(pointer) === 1) report.requests += 1
        else report.responses += 1
        return execute(pointer, at, length)
      },
    }
    return { exports: { ...exports, ...counted } }
  },
})

function isOperation(value: unknown): value is Operation {
  return typeof value === 'function'
}

const { HTTPParser } = createRequire(import.meta.url)('node:_http_common') as {
  HTTPParser: { prototype: { initialize: (...given: unknown[]) => unknown } }
}
HTTPParser.prototype.initialize = new Proxy(HTTPParser.prototype.initialize, {
  apply(target, parser, given) {
    report.nodeParsers += 1
    return Reflect.apply(target, parser, given)
  },
})

if (isMainThread) process.on('SIGUSR2', () => console.error(`parsers: ${JSON.stringify(report)}`))
