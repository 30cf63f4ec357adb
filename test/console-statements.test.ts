import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')
/** Statements that every version of the console keeps; later ones are in the table once they have a test. */
const FIRST_STATEMENTS = Array.from({ length: 60 }, (_, index) => index + 1)
/** A test whose name begins with numbers of statements: `'4, 57: in the dark theme …'`. */
const NUMBERED = /['"`](\d{1,3}(?:, \d{1,3})*): /g
/** A row of the table: its number and its last cell. */
const ROW = /^\| (\d{1,3}) \|.*\| ([^|]*) \|$/gm

test('every statement about the console is in the table of tests once, in order', () => {
  const numbers = rows().map(({ number }) => number)
  expect(numbers.slice(0, FIRST_STATEMENTS.length)).toEqual(FIRST_STATEMENTS)
  expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b))
})

test('for each statement, the table of console statements names the console and e2e files with its number in a test title', () => {
  const named = rows().flatMap(({ number, files }) =>
    files.filter((file) => !file.startsWith('test/')).map((file) => `${number} ${file}`),
  )
  expect(named.toSorted()).toEqual(numbered().toSorted())
})

function rows(): { readonly number: number; readonly files: readonly string[] }[] {
  const page = readFileSync(join(ROOT, 'docs/console-tests.md'), 'utf8')
  return [...page.matchAll(ROW)].map(([, number, cell = '']) => ({
    number: Number(number),
    files: [...cell.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file),
  }))
}

function numbered(): readonly string[] {
  const files = ['e2e/console', 'console'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.test.ts'))
      .map((path) => `${folder}/${path}`),
  )
  const found = files.flatMap((file) =>
    [...readFileSync(join(ROOT, file), 'utf8').matchAll(NUMBERED)].flatMap(([, numbers = '']) =>
      numbers.split(', ').map((number) => `${number} ${file}`),
    ),
  )
  return [...new Set(found)]
}
