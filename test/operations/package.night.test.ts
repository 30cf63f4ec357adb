import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
/** Files and folders that a package is built from, and the tools to build it. */
const PARTS = [
  'bin',
  'docs',
  'packages',
  'src',
  'tools',
  '.npmrc',
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'SECURITY.md',
  'gateway.example.yaml',
  'package-lock.json',
  'package.json',
  'tsconfig.json',
]

/** What pages of the package link to, although only a clone has it: it is for developers, or for images. */
const OF_A_CLONE =
  /^(?:CONTRIBUTING\.md$|(?:bench|deploy|packages)\/|docs\/(?:decisions\/|recipes\/|(?:architecture|console-tests|security-tests|style)\.md$))/

/** Vendored parts of other packages, which the lock file does not list as run-time dependencies. */
const VENDORED = [
  { name: 'llhttp', version: '9.3.1', purl: 'pkg:github/nodejs/llhttp@9.3.1' },
  { name: 're2js', version: '2.10.0', purl: 'pkg:npm/re2js@2.10.0' },
]

/** The checked fields of a component in a bill of materials. */
interface Component {
  readonly 'bom-ref': string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
}

/** The checked fields of CycloneDX 1.5. */
interface Bill {
  readonly bomFormat: string
  readonly specVersion: string
  readonly version: number
  readonly metadata: { readonly component: Component }
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

/** A package in a lock file. */
interface Locked {
  readonly version: string
  readonly integrity: string
  readonly dev?: boolean
  readonly link?: boolean
}

/** The environment without the variables of the npm that started the tests. */
const env = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name))),
  // Offline, because the lock file has everything that is needed.
  npm_config_offline: 'true',
  npm_config_registry: 'http://127.0.0.1:9',
}

// Packing runs a build, so that it is done in a copy: this folder keeps its own build.
const folder = mkdtempSync(join(tmpdir(), 'sluice-pack-'))
let text = ''
let bill: Bill
beforeAll(() => {
  for (const part of PARTS) cpSync(join(REPOSITORY, part), join(folder, part), { recursive: true })
  symlinkSync(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'))
  execFileSync('npm', ['pack', '--silent'], {
    cwd: folder,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: 280_000,
  })
  execFileSync('tar', ['-xzf', `sluice-${own().version}.tgz`], { cwd: folder, timeout: 60_000 })
  text = readFileSync(join(folder, 'package/sbom.cdx.json'), 'utf8')
  bill = JSON.parse(text) as Bill
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function own(): { readonly version: string; readonly dependencies: Record<string, string> } {
  return JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8'))
}

test('the npm package has the program, and of its dependencies only those that npm would warn of, with their licences', () => {
  expect(readdirSync(join(folder, 'package/dist'))).toEqual(['build.json', 'cli', 'licenses.txt'])
  expect(readFileSync(join(folder, 'package/dist/licenses.txt'), 'utf8')).toMatch(
    /^undici \d+\.\d+\.\d+ \(MIT\)\n\nMIT License/m,
  )
})

test('what a page of the npm package links to is in the package, unless only those who have a clone need it', () => {
  const packed = join(folder, 'package')
  const targets = globSync('**/*.md', { cwd: packed }).flatMap((page) =>
    [...readFileSync(join(packed, page), 'utf8').matchAll(/\]\((?![a-z]+:|#)([^)#\s]+)/g)].map(
      ([, link = '']) => posix.join(posix.dirname(page), link),
    ),
  )
  expect(targets).toContain('docs/configuration.md')
  expect(targets.filter((path) => !OF_A_CLONE.test(path) && !existsSync(join(packed, path)))).toEqual([])
})

test('every package that a file of the npm package imports is one that npm installs', () => {
  const manifest = JSON.parse(readFileSync(join(folder, 'package/package.json'), 'utf8')) as Record<
    'dependencies' | 'optionalDependencies',
    Record<string, string>
  >
  const installed = new Set(Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }))
  const dist = join(folder, 'package/dist/cli')
  const imported = new Set<string>()
  for (const file of readdirSync(dist).filter((name) => name.endsWith('.js')))
    for (const [, name = ''] of readFileSync(join(dist, file), 'utf8').matchAll(
      /^(?:import|export) (?:[^'"\n]* from )?["']((?:@[\w.-]+\/)?[a-z][\w.-]*)(?:\/[^"']*)?["'];?$/gm,
    ))
      imported.add(name)
  expect(imported).toContain('pg')
  expect([...imported].filter((name) => !installed.has(name) && !isBuiltin(name))).toEqual([])
  // The repository's own package.json is as before.
  expect(own().dependencies).toHaveProperty('undici')
  expect(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))).toEqual(own())
})

test('the npm package has the SQL files for PostgreSQL in the folder of the modules that read them', () => {
  const sources = join(REPOSITORY, 'src/store/postgres/bank')
  const carried = join(folder, 'package/dist/cli/bank')
  expect(readdirSync(carried)).toEqual(readdirSync(sources))
  for (const file of readdirSync(sources))
    expect(readFileSync(join(carried, file), 'utf8')).toBe(readFileSync(join(sources, file), 'utf8'))
})

describe('the bill of materials of a package', () => {
  test('the bill of materials is in CycloneDX, for this version', () => {
    expect(bill).toMatchObject({ bomFormat: 'CycloneDX', specVersion: '1.5', version: 1 })
    const { version } = own()
    expect(bill.metadata.component).toMatchObject({
      name: 'sluice',
      version,
      purl: `pkg:npm/sluice@${version}`,
    })
  })

  test('the bill of materials lists exactly the run-time packages of the lock file, by version, address and hash', () => {
    const { packages } = JSON.parse(readFileSync(join(REPOSITORY, 'package-lock.json'), 'utf8')) as {
      readonly packages: Record<string, Locked>
    }
    const locked = Object.entries(packages)
      .filter(([path, { dev, link }]) => path.startsWith('node_modules/') && !dev && !link)
      .map(([path, { version, integrity }]) => {
        const name = path.split('node_modules/').pop() ?? ''
        const [algorithm, hash = ''] = integrity.split('-')
        return {
          name,
          version,
          purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
          hash: `${algorithm} ${Buffer.from(hash, 'base64').toString('hex')}`,
        }
      })
    const listed = bill.components
      .filter(({ purl }) => VENDORED.every((one) => one.purl !== purl))
      .map(({ name, version, purl, hashes: [hash] = [] }) => ({
        name,
        version,
        purl,
        hash: `${hash?.alg.toLowerCase().replace('-', '')} ${hash?.content}`,
      }))
    const inOrder = (all: typeof locked): string[] =>
      [...new Set(all.map((each) => JSON.stringify(each)))].toSorted()
    expect(inOrder(listed)).toEqual(inOrder(locked))
    const names = new Set(listed.map(({ name }) => name))
    expect(Object.keys(own().dependencies).filter((name) => !names.has(name))).toEqual([])
  })

  test.each(VENDORED)(
    'the bill of materials lists $name, and the package has its licence and origin',
    (vendored) => {
      const { hashes, ...listed } = bill.components.find(({ purl }) => purl === vendored.purl) ?? {}
      expect(listed).toMatchObject({ ...vendored, licenses: [{ license: { id: 'MIT' } }] })
      const carried = (file: string): string =>
        readFileSync(join(folder, 'package/dist/cli/vendor', vendored.name, file), 'utf8')
      const { version, sha256 } = JSON.parse(carried('origin.json'))
      expect(version).toBe(vendored.version)
      expect(hashes).toEqual([{ alg: 'SHA-256', content: sha256 }])
      expect(carried('LICENSE')).toMatch(/MIT License/i)
    },
  )

  test('the vendored parser in the package has the hash of its origin', () => {
    const vendor = join(folder, 'package/dist/cli/vendor/llhttp')
    const { sha256 } = JSON.parse(readFileSync(join(vendor, 'origin.json'), 'utf8'))
    expect(hash('sha256', readFileSync(join(vendor, 'llhttp.wasm')))).toBe(sha256)
  })

  test('the bill of materials states which of its packages depend on which', () => {
    const refs = [bill.metadata.component, ...bill.components].map((component) => component['bom-ref'])
    expect(new Set(refs).size).toBe(refs.length)
    const named = bill.dependencies.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn])
    expect(named.filter((ref) => !refs.includes(ref))).toEqual([])
  })

  test('the bill of materials contains no address of a package registry', () => {
    const hosts = [...text.matchAll(/https?:\/\/([^/"\s]+)/g)].map(([, host]) => host)
    expect(new Set(hosts)).toEqual(new Set(['cyclonedx.org']))
    expect(text).not.toMatch(/registry/i)
  })
})
