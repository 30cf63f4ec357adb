import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { badComments } from './comment-rules.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const FOLDERS = ['src', 'packages', 'console', 'test', 'bench', 'e2e', 'tools', 'bin']

describe('the comments of the sources', () => {
  test('open with a noun or a verb, and are at most 110 columns wide', () => {
    const files = FOLDERS.flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
        .filter((path) => /\.m?[jt]sx?$/.test(path) && !/node_modules|^built/.test(path))
        .map((path) => join(folder, path)),
    )
    expect(files.length).toBeGreaterThan(1_000)
    const found = files.flatMap((file) =>
      badComments(readFileSync(join(ROOT, file), 'utf8')).map(
        ({ line, message }) => `${file}:${line}: ${message}`,
      ),
    )
    expect(found).toEqual([])
  })

  test.each([
    ['a doc comment', '/** Of a name. */', 1],
    ['a doc comment of several lines', 'let a\n/**\n * Whoever asks.\n */', 2],
    ['a comment on a line of its own', '\n  // What is left.\n  // More.', 2],
    ['a comment behind code', 'let a = 1 // It counts.', 1],
    ['a comment behind a regular expression', "let a = /['`/*]/ // They count.", 1],
    ['a comment behind a comment of another line', 'let a // first\n// Those of it.', 2],
    ['a wide comment', `let a\n// ${'x'.repeat(108)}`, 2],
    ['a wide line in a doc comment', `/**\n * a\n * ${'x'.repeat(108)}\n */`, 3],
    ['a wide comment behind code', `${' '.repeat(80)}let a = 1 // ${'x'.repeat(20)}`, 1],
  ])('%s would be found', (_, source, line) => {
    expect(badComments(source)).toEqual([{ line, message: expect.any(String) }])
  })

  test.each([
    ['a comment that opens with a noun', '/** Items of a list. */'],
    ['a line that continues a comment', '// One of several.\n// What follows belongs to it.'],
    ['a longer word', '// Whole days.\n\n/* Items */ // Often.'],
    ['a text', 'const a = \'// Of a name\', b = "/* What */", c = `\n// It is a text\n`'],
    ['a regular expression', 'const a = b.replace(/\\/\\/ Of/, x).match(/[/] /)'],
    ['110 columns', `// ${'x'.repeat(107)}`],
    ['wide code without a comment', `const a = '${'x'.repeat(120)}'`],
  ])('%s would not', (_, source) => {
    expect(badComments(source)).toEqual([])
  })
})
