import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bundledPackages, packedManifest } from '../../tools/bundled-packages.mjs'

const ROOT = join(import.meta.dirname, '../..')
/** The first versions of the lines of Node with which people run npm. */
const NODES = [
  [20, 0],
  [22, 0],
  [24, 0],
  [26, 0],
] as const

interface Locked {
  readonly engines?: { readonly node?: string }
  readonly deprecated?: string
  readonly dependencies?: Readonly<Record<string, string>>
}

const read = (path: string): unknown => JSON.parse(readFileSync(join(ROOT, path), 'utf8'))
const { packages } = read('package-lock.json') as { readonly packages: Readonly<Record<string, Locked>> }
const packed = packedManifest(read('package.json') as Parameters<typeof packedManifest>[0])

/** Whether the latest release of a line of Node is in a range; throws at a form that it does not know. */
function admits(range: string, major: number): boolean {
  return range.split('||').some((alternative) =>
    alternative
      .trim()
      .split(/(?<=\d)\s+(?=[<>=^~])/)
      .every((part) => {
        const [, operator = '', version = ''] =
          /^(>=|>|<|\^|~|=|)\s*v?(\d+|\*)(?:\.[\dx*]+)*$/.exec(part) ?? []
        if (version === '') throw new Error(`the range "${range}" has an unknown part: "${part}"`)
        if (version === '*') return true
        if (operator === '>=' || operator === '>') return major >= Number(version)
        if (operator === '<') return major < Number(version)
        return major === Number(version)
      }),
  )
}

/** The packages that npm installs with the package, by their folders in the lock file; optional ones never warn. */
function installed(): Map<string, Locked> {
  const found = new Map<string, Locked>()
  const visit = (names: readonly string[], from: string): void => {
    for (const name of names) {
      const folder = [`${from}/node_modules/${name}`, `node_modules/${name}`].find((path) => packages[path])
      const locked = folder === undefined ? undefined : packages[folder]
      if (folder === undefined || !locked || found.has(folder)) continue
      found.set(folder, locked)
      visit(Object.keys(locked.dependencies ?? {}), folder)
    }
  }
  visit(Object.keys(packed.dependencies), '')
  return found
}

test('npm warns of no engine when it installs the package with Node 20, 22, 24 or 26', () => {
  const all = [['sluice', packed as Locked] as const, ...installed()]
  const warnings = all.flatMap(([path, { engines }]) =>
    NODES.filter(([major]) => engines?.node && !admits(engines.node, major)).map(
      ([major]) => `${path} needs ${engines?.node}, not ${major}`,
    ),
  )
  expect(warnings).toEqual([])
  expect(all.length).toBeGreaterThan(40)
})

test('npm warns of no deprecated package when it installs the package', () => {
  expect([...installed()].filter(([, { deprecated }]) => deprecated !== undefined)).toEqual([])
})

test('the package contains what npm does not install, and nothing that it installs', () => {
  const contained = [...bundledPackages(ROOT).values()].flat()
  expect(contained).toContain('node_modules/undici')
  const direct = Object.keys(packed.dependencies).map((name) => `node_modules/${name}`)
  expect(direct.filter((path) => contained.includes(path))).toEqual([])
})
