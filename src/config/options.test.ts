import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { parseDecimal } from '../domain/decimal.ts'
import { OPTIONS } from '../domain/options.ts'
import { parseDuration, parseSize } from '../domain/units.ts'

const ROOT = join(import.meta.dirname, '../..')
const fileText = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

/** Readers of the types of options that have their default in their row. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  flag: (text) => text === 'true',
  integer: Number,
  choice: String,
  decimal: parseDecimal,
  size: parseSize,
  duration: parseDuration,
  retention: (text) => (text === '0' ? 0 : parseDuration(text)),
}

/** The defaults of all options that have one in their row, and those that a text states for them. */
function defaults(textOf: (name: string) => string) {
  const rows = Object.entries(OPTIONS).flatMap(([name, row]) => ('default' in row ? [{ name, ...row }] : []))
  expect(rows.length).toBeGreaterThan(25)
  return {
    ofRows: Object.fromEntries(rows.map((row) => [row.name, row.default])),
    stated: Object.fromEntries(rows.map(({ name, type }) => [name, READERS[type]?.(textOf(name))])),
  }
}

test('docs/configuration.md lists all options in the order of the code, each with its default', () => {
  const page = fileText('docs/configuration.md')
  const section = page.slice(page.indexOf('\n## Options'), page.indexOf('\n### Browsers'))
  const rows = [...section.matchAll(/^\| `([a-z_]+)(?:\.\w+)?` \| (?:`(.*?)`)? *\|/gm)]
  const documented = new Map(rows.map(([, name = '', value = '']) => [name, value]))
  expect([...documented.keys()]).toEqual(Object.keys(OPTIONS))
  const { stated, ofRows } = defaults((name) => documented.get(name) ?? '')
  expect(stated).toEqual(ofRows)
})

test('gateway.example.yaml has the default of each option', () => {
  const { options } = parse(fileText('gateway.example.yaml')) as { options: Record<string, unknown> }
  const { stated, ofRows } = defaults((name) => String(options[name]))
  expect(stated).toEqual(ofRows)
})

test('nginx of docs/tutorials/behind-tls-proxy.md accepts bodies as large as the gateway does by default', () => {
  const [, mebibytes] =
    /client_max_body_size (\d+)m;/.exec(fileText('docs/tutorials/behind-tls-proxy.md')) ?? []
  expect(Number(mebibytes) * 2 ** 20).toBe(OPTIONS.body_limit.default)
})
