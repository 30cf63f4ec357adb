import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

function page(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

/** The paths of all pages. */
function pages(): string[] {
  return ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md'].concat(
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
  return ['src', 'test'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => join(folder, path)),
  )
}

test.each(['docs/api.md', 'docs/ledger.md', 'docs/administration.md', 'docs/operations.md'])(
  'every heading of %s is on the map',
  (path) => {
    const rows = new Set(
      [...page('docs/spec-map.md').matchAll(/^\| \**([^|*]+?)\** \|/gm)].map(([, name]) => name),
    )
    expect([...headings(path)].filter((heading) => !rows.has(heading))).toEqual([])
  },
)

test('every file in the map exists', () => {
  const named = [...page('docs/spec-map.md').matchAll(/`((?:src|test)\/[^`]*)`/g)].map(
    ([, path]) => path ?? '',
  )
  expect(named.length).toBeGreaterThan(20)
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})

test('every source file that a page names exists', () => {
  const files = ['src', 'test', 'bench', 'bin', 'e2e', 'tools'].flatMap((folder) =>
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

test('every link between pages has a target', () => {
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

test('every link to a heading has one', () => {
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
