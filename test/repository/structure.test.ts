import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { PROTOCOL_NAMES } from '@sluice/wire/protocols'
import { LAYERS, CALL_SUBFOLDERS, SEPARATE_SUBFOLDERS } from './layers.ts'

const SRC = fileURLToPath(new URL('../../src', import.meta.url))
const PACKAGES = fileURLToPath(new URL('../../packages', import.meta.url))

interface Import {
  readonly from: string
  readonly to: string
}

describe('the layers of src', () => {
  const imports = [SRC, PACKAGES].flatMap((folder) => importsOf(sources(folder)))

  test('a source file only imports from its own folder and from lower layers', () => {
    expect(imports.flatMap(breach)).toEqual([])
  })

  test('every file that imports or is imported belongs to a layer, so that the rule applies to it', () => {
    const paths = imports.flatMap(({ from, to }) => [from, to])
    expect(new Set(paths).size).toBeGreaterThan(1_000)
    expect(paths.filter((path) => !path.endsWith('.test.ts') && rank(top(path)[0]) < 0)).toEqual([])
  })

  test.each([
    ['a lower layer that imports a higher one', 'domain/x.ts', 'call/y.ts'],
    ['entries of one layer that import each other', 'limits/x.ts', 'upstreams/y.ts'],
    ['protocols that import each other', '@sluice/wire/chat/x.ts', '@sluice/wire/messages/y.ts'],
    ['shared helpers that import a protocol', '@sluice/wire/json/x.ts', '@sluice/wire/chat/y.ts'],
    ['resources of the API that import each other', 'api/tokens/x.ts', 'api/users/y.ts'],
    ['the core that names a feature', 'call/x.ts', 'features/content/y.ts'],
    ['features that import each other', 'features/content/x.ts', 'features/telemetry/y.ts'],
    ['the core that names the program', 'call/x.ts', 'gateway/main.ts'],
    ['a rule that needs a package', 'domain/x.ts', '@sluice/http1'],
    ['protocols that import a rule', '@sluice/wire/chat/x.ts', 'domain/y.ts'],
  ])('a forbidden import is detected: %s', (_, from, to) => {
    expect(breach({ from, to })).toHaveLength(1)
  })

  test('every folder of src has a layer, and a row in docs/architecture.md', () => {
    const described = readFileSync(join(SRC, '../docs/architecture.md'), 'utf8')
    const placed = new Set(LAYERS.flat())
    const folders = [...placed].filter((name) => !name.endsWith('.ts') && !name.startsWith('@'))
    expect(folders.filter((name) => !described.includes(`\n| \`src/${name}/\` |`))).toEqual([])
    expect(readdirSync(SRC).filter((name) => !name.endsWith('.test.ts') && !placed.has(name))).toEqual([])
  })

  test('every subfolder of the core imports the others that the table lists, and has a row in docs/architecture.md', () => {
    const described = readFileSync(join(SRC, '../docs/architecture.md'), 'utf8')
    const imported = subfoldersOfCall().map((name) => {
      const others = importsOf(sources(join(SRC, 'call', name))).flatMap(({ to }) => {
        const [, other = ''] = /^call\/([^/]+)\//.exec(to) ?? []
        return other === '' || other === name ? [] : [other]
      })
      return [name, [...new Set(others)].toSorted()] as const
    })
    expect(Object.fromEntries(imported)).toEqual(CALL_SUBFOLDERS)
    expect(imported.filter(([name]) => !described.includes(`\n| \`${name}/\` |`))).toEqual([])
  })

  test('in the core and in the features, no file imports itself over others, types included', () => {
    const calls = importsOf([...sources(join(SRC, 'call')), ...sources(join(SRC, 'features'))])
    expect(cycles(calls)).toEqual([])
  })

  test('a cycle of imports is detected', () => {
    const [one, other] = ['call/x.ts', 'call/y.ts']
    expect(cycles([{ from: one, to: other }])).toEqual([])
    expect(
      cycles([
        { from: one, to: other },
        { from: other, to: one },
      ]),
    ).toEqual([one, other])
  })

  test('no source file has more than 500 lines', () => {
    const large = [...sources(SRC), ...sources(PACKAGES)]
      .filter((file) => !file.endsWith('.test.ts'))
      .filter((file) => readFileSync(file, 'utf8').split('\n').length > 501)
    expect(large.map((file) => relative(SRC, file))).toEqual([])
  })
})

/** What takes the time of a wait, or depends on the speed of the machine. */
const TIMES: Readonly<Record<string, RegExp>> = {
  'waits a second or longer':
    /\b(?:sleep|delay|waitForTimeout)\(\d[\d_]{3,}\)|setTimeout\(\w+, \d[\d_]{3,}\)\)/,
  'compares a duration with a number': /performance\.now\(\) - \w+\)\s*\.toBeLess\w+\([\d_]+\)/,
}
/** A wait of `vi`, to the end of its statement, and how it ends when it names a time of at least a minute after which it fails. */
const WAIT = /^( *).*\bvi\.wait(?:For|Until)\((?:.*\)|[^]*?\n\1[)}\]].*)$/gm
const PATIENCE =
  /,\s+(?:(?:[6-9]\d|\d{3})_000|[A-Z_]+|soon|\{[^{}]*\btimeout: (?:(?:[6-9]\d|\d{3})_000|[A-Z_]+)[^{}]*\}),?\s*\)+[,;]?$/
/** Tests and helpers of the night, and a test that waits until a node announces nothing more. */
const MAY_WAIT =
  /^test\/(?:night\/|nodes\/(?:fault-injection|lost-node|paused-node|writes-and-charges|provider-limits\.test)\.ts)/

describe('the tests of the day', () => {
  const root = join(SRC, '..')
  const files = ['test', 'src', 'packages', 'console', 'e2e/console', 'e2e/site']
    .flatMap((folder) => sources(join(root, folder)))
    .map((file) => relative(root, file))
    .filter((file) => (file.startsWith('test/') || file.endsWith('.test.ts')) && !MAY_WAIT.test(file))

  test.each(Object.entries(TIMES))('no test %s', (_, pattern) => {
    expect(files.length).toBeGreaterThan(500)
    expect(files.filter((file) => pattern.test(readFileSync(join(root, file), 'utf8')))).toEqual([])
  })

  test('no test gives up a wait within a minute, as vi.waitFor does by default', () => {
    const waits = files.flatMap((file) => readFileSync(join(root, file), 'utf8').match(WAIT) ?? [])
    expect(waits.length).toBeGreaterThan(100)
    expect(waits.filter((wait) => !PATIENCE.test(wait))).toEqual([])
  })
})

describe('the packages', () => {
  const folders = readdirSync(PACKAGES).map((name) => join(PACKAGES, name))

  test.each(folders)('the package %s imports only its own files, its dependencies and Node.js', (folder) => {
    const { name, dependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const declared = new Set([name, ...Object.keys(dependencies)])
    const files = sources(join(folder, 'src')).filter((file) => !file.endsWith('.test.ts'))
    const foreign = files.flatMap((file) =>
      specifiers(file).filter((to) =>
        to.startsWith('.')
          ? !resolve(dirname(file), to).startsWith(`${folder}/`)
          : !to.startsWith('node:') && !declared.has(to),
      ),
    )
    expect(foreign).toEqual([])
  })

  test.each(folders)('the tests of the package %s import nothing of the gateway', (folder) => {
    const upward = sources(join(folder, 'src'))
      .map((file) => [
        file,
        specifiers(file).filter((to) => resolve(dirname(file), to).startsWith(`${SRC}/`)),
      ])
      .filter(([, imported]) => imported?.length)
    expect(upward).toEqual([])
  })

  test("src imports no inner file of a protocol in @sluice/wire, except the one for Gemini's embeddings", () => {
    const inner = /^@sluice\/wire\/(?!json\/|sse\/|shape\/|gemini\/embed$)[^/]+\//
    const reaching = sources(SRC).flatMap((file) => specifiers(file).filter((to) => inner.test(to)))
    expect(reaching).toEqual([])
    expect('@sluice/wire/chat/native/tap').toMatch(inner)
  })

  test.each(folders)('the package %s has a row in docs/architecture.md', (folder) => {
    const described = readFileSync(join(SRC, '../docs/architecture.md'), 'utf8')
    expect(described).toContain(`\n| \`packages/${basename(folder)}/\` |`)
  })

  test.each(folders)('the package %s has a README that shows its use', (folder) => {
    expect(readFileSync(join(folder, 'README.md'), 'utf8')).toMatch(/^```ts\n(?:.*\n){3,10}```$/m)
  })
})

describe('the protocols', () => {
  const root = join(SRC, '..')
  const name = `'(?:${PROTOCOL_NAMES.join('|')})'`

  test('no source file but the table lists the protocols, so that no other place decides silently', () => {
    const list = new RegExp(String.raw`${name}(?:\s*[,|]\s*${name}){2}`)
    const listing = ['src', 'packages', 'console'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => /\.tsx?$/.test(file) && !file.endsWith('.test.ts'))
        .map((file) => join(folder, file))
        .filter((file) => list.test(readFileSync(join(root, file), 'utf8'))),
    )
    // The types of channels state the order in which one of Vertex tries its protocols.
    expect(listing).toEqual(['src/management/channels/channel-types.ts'])
  })

  test('no source module compares a protocol with a fixed name, except the importer, whose formats are fixed', () => {
    const comparison = new RegExp(
      String.raw`\bprotocol\b[^\n]{0,20}[!=]== ${name}|\b(?:client|spoken|dialect)(?:\.name)? [!=]== ${name}`,
    )
    const comparing = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
      .filter((file) => comparison.test(readFileSync(join(root, 'src', file), 'utf8')))
    expect(comparing).toEqual(['transfer/plan-channels.ts'])
  })
})

/** The files that are left when those are taken away, again and again, that import none of the others. */
function cycles(imports: readonly Import[]): string[] {
  let left = new Set(imports.map(({ from }) => from))
  for (;;) {
    const importing = new Set(
      imports.filter(({ from, to }) => left.has(from) && left.has(to)).map(({ from }) => from),
    )
    if (importing.size === left.size) return [...left].toSorted()
    left = importing
  }
}

function breach({ from, to }: Import): string[] {
  const breached = `${from} imports ${to}`
  const [fromTop, fromSub] = top(from)
  const [toTop, toSub] = top(to)
  if (fromTop === toTop)
    return fromSub && toSub && !mayImport(fromTop, fromSub, toSub, from) ? [breached] : []
  return rank(fromTop) < rank(toTop) ? [] : [breached]
}

function mayImport(folder: string, fromSub: string, toSub: string, from: string): boolean {
  const shared = SEPARATE_SUBFOLDERS[folder]
  if (!shared || fromSub === toSub) return true
  // A test may combine a shared subfolder with its users.
  if (shared.includes(fromSub) && from.endsWith('.test.ts')) return true
  const at = shared.indexOf(toSub)
  return at >= 0 && (!shared.includes(fromSub) || at < shared.indexOf(fromSub))
}

/** The first two folders of a path, where a package counts as one; the second is undefined where there is none. */
function top(path: string): [string, string | undefined] {
  const [, first = '', second, third] = /^(@sluice\/[^/]+|[^/]+)(?:\/([^/]+))?(\/.*)?$/.exec(path) ?? []
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

function subfoldersOfCall(): string[] {
  return readdirSync(join(SRC, 'call')).filter((name) => statSync(join(SRC, 'call', name)).isDirectory())
}

/** Names of the modules that a file imports. */
function specifiers(file: string): string[] {
  const names = /^(?:(?:import|export)\b[^'\n]* from|import|\} from) '([^'\n]+)'|\bimport\('([^'\n]+)'\)/gm
  return [...readFileSync(file, 'utf8').matchAll(names)].map(([, one, other]) => one ?? other ?? '')
}

/** Path of an import as `layeredFile` has it. */
function layered(file: string, to: string): string {
  return to.startsWith('@sluice/') ? to : layeredFile(resolve(dirname(file), to))
}

/** Path of a file from src, or from the sources of its package: `@sluice/wire/chat/index.ts`. */
function layeredFile(file: string): string {
  const inPackage = /^([^./]+)\/src\/(.*)$/.exec(relative(PACKAGES, file))
  return inPackage ? `@sluice/${inPackage[1]}/${inPackage[2]}` : relative(SRC, file)
}

function importsOf(files: string[]): Import[] {
  return files
    .flatMap((file) =>
      specifiers(file)
        .filter((to) => to.startsWith('.') || to.startsWith('@sluice/'))
        .map((to) => ({ from: layeredFile(file), to: layered(file, to) })),
    )
    .filter(({ from, to }) => !(from.endsWith('.test.ts') && to.startsWith('../')))
}
