import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { RETIREMENTS, retirementOf } from '../../src/domain/price-data/retired-models.ts'
import { LAYERS } from './layers.ts'
import { tutorialBlocks } from '../operations/tutorial-page.ts'

const ROOT = join(import.meta.dirname, '../..')

function page(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

/** The paths of all pages. */
function pages(): string[] {
  return [
    'README.md',
    'AGENTS.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    'SECURITY.md',
    'bench/README.md',
  ].concat(
    readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.md'))
      .map((path) => join('docs', path)),
  )
}

/** The headings of a page, without those in examples. */
function headings(path: string): Set<string> {
  const text = page(path).replaceAll(/^```.*?^```/gms, '')
  return new Set([...text.matchAll(/^##+ (.+)$/gm)].map(([, heading]) => heading ?? ''))
}

function sources(): string[] {
  return ['src', 'packages', 'console', 'test'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => join(folder, path)),
  )
}

test('no page of the documentation contains conflict markers of a merge', () => {
  expect(pages().filter((path) => /^(<{7} |={7}$|>{7} )/m.test(page(path)))).toEqual([])
})

test('every source file that a page of the documentation names exists', () => {
  const files = ['src', 'packages', 'console', 'test', 'bench', 'bin', 'e2e', 'tools'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  )
  const known = new Set(files.flatMap((path) => [path, basename(path)]))
  const lost = pages().flatMap((from) =>
    [...page(from).matchAll(/`([\w./-]+\.(?:ts|mjs))`/g)]
      .map(([, name = '']) => name)
      .filter((name) => !known.has(name) && !files.some((path) => path.endsWith(`/${name}`)))
      .map((name) => `${from}: ${name}`),
  )
  expect(lost).toEqual([])
})

test('the architecture page has the current layers, and each named file has the named functions', () => {
  const text = page('docs/architecture.md')
  const drawn = [...text.matchAll(/^ {2}layer\d+\["(.+)"\]$/gm)].map(([, row = '']) => row.split(' · '))
  expect(drawn).toEqual(LAYERS)
  const steps = [...text.matchAll(/`((?:src|packages|test)\/[\w./-]*)`((?:,? `#?[\w.#]+`)*)/g)]
  expect(steps.length).toBeGreaterThan(40)
  const lost = steps.flatMap(([, path = '', names = '']) => {
    if (!existsSync(join(ROOT, path))) return [path]
    const functions = [...names.matchAll(/([\w#]+)`/g)].map(([, name = '']) => name)
    return functions
      .filter((name) => !new RegExp(`(?<!\\w)${name}\\b`).test(page(path)))
      .map((name) => `${path}: ${name}`)
  })
  expect(lost).toEqual([])
})

test('every block of commands in the documentation is run by a test, or says what it needs', () => {
  const unmarked = pages().filter((path) => {
    try {
      tutorialBlocks(page(path))
      return false
    } catch {
      return true
    }
  })
  expect(unmarked).toEqual([])
  expect(() => tutorialBlocks('```sh\nsluice start\n```')).toThrow('commands without a word')
  expect(() => tutorialBlocks('```sh somehow\nsluice start\n```')).toThrow('somehow')
})

/** The cells of the rows of a section's first table. */
function rowsOf(path: string, heading: string): string[][] {
  const section = page(path).split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const lines = section.split('\n').filter((line) => line.startsWith('|'))
  return lines.slice(2).map((line) => line.split('|').map((cell) => cell.trim()))
}

test('no example to start with names a model whose vendor has announced its end', () => {
  const started = pages().filter((path) => path === 'README.md' || path.startsWith('docs/tutorials/'))
  for (const path of [...started, 'gateway.example.yaml'])
    for (const [word] of page(path).matchAll(/[a-z][\w.-]*\d[\w.-]*/g))
      for (const vendor of RETIREMENTS.keys())
        expect(retirementOf(vendor, word), `${path}: ${word}`).toBeUndefined()
})

test('every row of the threat model names a known attacker, a known asset, and tests that exist', () => {
  const path = 'docs/security.md'
  const [assets, attackers] = ['Assets', 'Attackers'].map(
    (heading) => new Set(rowsOf(path, heading).map(([, name]) => name)),
  )
  const rows = rowsOf(path, 'Defences')
  expect(rows.length).toBeGreaterThan(40)
  const wrong = rows.filter(([, attacker, asset, defence, shown = '', ...rest]) => {
    const tests = [...shown.matchAll(/`((?:src|packages|test)\/[\w/.-]+)`/g)].map(([, file = '']) => file)
    const named = attackers?.has(attacker) && assets?.has(asset) && defence !== '' && rest.length === 1
    return (
      !named ||
      !tests.some((file) => file.endsWith('.test.ts')) ||
      !tests.every((file) => existsSync(join(ROOT, file)))
    )
  })
  expect(wrong).toEqual([])
})

test('every row of the documented table of memory per request names a bound, a memory share and an existing test', () => {
  const rows = rowsOf('docs/security.md', 'Memory that one request can hold')
  expect(rows.length).toBeGreaterThan(10)
  const wrong = rows.filter(([, place, bound, share, shown = '']) => {
    const [, file = '', sentence = ''] =
      /^`((?:src|packages|test)\/[\w/.-]+\.test\.ts)`: (.+)$/.exec(shown) ?? []
    const isShown = file !== '' && existsSync(join(ROOT, file)) && page(file).includes(sentence)
    return place === '' || bound === '' || share === '' || !isShown
  })
  expect(wrong).toEqual([])
})

test('every rule that a comment cites is a heading of the named page', () => {
  const cited = sources().flatMap((file) =>
    [
      ...page(file)
        .replaceAll(/\n\s*(?:\*|\/\/) /g, ' ')
        .matchAll(/`(docs\/[\w/-]+\.md)(?:: ([^`]+))?`/g),
    ].map(([, path = '', heading]) => ({
      file,
      path,
      heading,
    })),
  )
  expect(cited.length).toBeGreaterThan(10)
  const lost = cited.filter(
    ({ path, heading }) =>
      !existsSync(join(ROOT, path)) || (heading !== undefined && !headings(path).has(heading)),
  )
  expect(lost).toEqual([])
})

test('every link between pages of the documentation leads to an existing page', () => {
  const broken = pages().flatMap((from) =>
    [
      ...page(from)
        .replaceAll(/^```.*?^```/gms, '')
        .matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g),
    ]
      .map(([, target = '']) => join(from, '..', target))
      .filter((target) => !existsSync(join(ROOT, target)))
      .map((target) => `${from}: ${target}`),
  )
  expect(broken).toEqual([])
})

/** The anchor of a heading, as GitHub makes it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')
}

test('every link to a heading leads to an existing heading', () => {
  const broken = pages().flatMap((from) =>
    [...page(from).matchAll(/\]\((?!https?:)([^)#]*\.md|)#([^)]+)\)/g)]
      .map(
        ([, target = '', anchor = '']) => [target === '' ? from : join(from, '..', target), anchor] as const,
      )
      .filter(([target, anchor]) => ![...headings(target)].some((heading) => anchorOf(heading) === anchor))
      .map(([target, anchor]) => `${from}: ${target}#${anchor}`),
  )
  expect(broken).toEqual([])
})

test('the picture of the moments of a call has them in the order in which CallFeature declares them, and the page names all', () => {
  const [, declaration = ''] =
    /interface CallFeature<.*?\{\n(.*?)^\}/ms.exec(page('src/call/feature.ts')) ?? []
  const moments = [...declaration.matchAll(/^ {2}(\w+)\?\(/gm)].map(([, name = '']) => name)
  const [, section = ''] = /^### Features\n(.*?)^## /ms.exec(page('docs/architecture.md')) ?? []
  const pictured = [...section.matchAll(/^ {4}(\w+(?: --> \w+)+)$/gm)].flatMap(([, way = '']) =>
    way.split(' --> '),
  )
  expect(pictured).toEqual(moments.filter((name) => pictured.includes(name)))
  expect(moments.filter((name) => !new RegExp(`\\b${name}\\b`).test(section))).toEqual([])
})
