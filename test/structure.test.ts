import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const SRC = fileURLToPath(new URL('../src', import.meta.url))

/** From the outside in. A file imports from its own folder and from later rows; neighbours in a row never meet. */
const LAYERS = [
  ['cli'],
  ['main.ts', 'simulator'],
  ['serve.ts'],
  ['reload.ts', 'listen.ts', 'log-queue.ts', 'control', 'moving', 'nodes'],
  ['opening'],
  ['config', 'app.ts', 'first-start.ts', 'follow-changes.ts', 'idle-memory.ts', 'listeners.ts', 'prune.ts'],
  ['api'],
  ['relay', 'management'],
  ['access'],
  ['limits', 'ledger', 'upstreams', 'changes'],
  ['store', 'protocols', 'metrics', 'tracing', 'redis', 'server'],
  ['domain', 'http1'],
  ['errors.ts', 'webassembly.d.ts'],
]

/** Folders whose subfolders know nothing of each other. */
const STRANGERS = new Set(['protocols', 'upstreams', 'api'])

interface Import {
  readonly from: string
  readonly to: string
}

describe('the layers of src', () => {
  test('a file imports from its own folder and from lower layers only', () => {
    expect(importsOf(sources(SRC)).flatMap(breach)).toEqual([])
  })

  test.each([
    ['a lower layer that imports a higher one', 'domain/x.ts', 'relay/y.ts'],
    ['neighbours that meet', 'ledger/x.ts', 'upstreams/y.ts'],
    ['sibling protocols that meet', 'protocols/chat/x.ts', 'protocols/messages/y.ts'],
    ['the relay that names the program', 'relay/x.ts', 'main.ts'],
    ['anything but the command that imports the simulator', 'main.ts', 'simulator/start-simulator.ts'],
  ])('%s would be found', (_, from, to) => {
    expect(breach({ from, to })).toHaveLength(1)
  })

  test('every folder of src has its place', () => {
    const placed = new Set(LAYERS.flat())
    expect(readdirSync(SRC).filter((name) => !name.endsWith('.test.ts') && !placed.has(name))).toEqual([])
  })

  test('files stay small: none above 300 lines', () => {
    const large = sources(SRC)
      .filter((file) => !file.endsWith('.test.ts'))
      .filter((file) => readFileSync(file, 'utf8').split('\n').length > 301)
    expect(large.map((file) => relative(SRC, file))).toEqual([])
  })
})

function breach({ from, to }: Import): string[] {
  const told = `${from} imports ${to}`
  const [fromTop, fromSub] = top(from)
  const [toTop, toSub] = top(to)
  if (fromTop === toTop) {
    const strangers = STRANGERS.has(fromTop) && fromSub && toSub && fromSub !== toSub
    return strangers ? [told] : []
  }
  return rank(fromTop) < rank(toTop) ? [] : [told]
}

/** The first step of a path below src, and the second if that is a folder too. */
function top(path: string): [string, string | undefined] {
  const [first = '', second, third] = path.split('/')
  return [first, third === undefined ? undefined : second]
}

function rank(name: string): number {
  return LAYERS.findIndex((layer) => layer.includes(name))
}

function sources(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    if (statSync(path).isDirectory()) return sources(path)
    return name.endsWith('.ts') ? [path] : []
  })
}

function importsOf(files: string[]): Import[] {
  return files
    .flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/(?:from|import\(|import)\s*'(\.[^']+)'/g)].map((match) => ({
        from: relative(SRC, file),
        to: relative(SRC, resolve(dirname(file), match[1] ?? '')),
      })),
    )
    .filter(({ from, to }) => !(from.endsWith('.test.ts') && to.startsWith('../test/')))
}
