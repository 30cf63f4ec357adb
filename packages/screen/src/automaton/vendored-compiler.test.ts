import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { RE2JS } from 're2js'
import { expect, test } from 'vitest'
import { compileProgram, PatternError } from './program.ts'
import { Compiler, Parser, RE2Flags, Simplify } from './vendor/re2js/compile.mjs'

const VENDOR = new URL('./vendor/re2js/', import.meta.url)
const TOOL = fileURLToPath(new URL('../../../../tools/vendor-re2js.mjs', import.meta.url))

test('the vendored compiler of expressions is the recorded one, with its version and licence', () => {
  const origin = JSON.parse(readFileSync(new URL('origin.json', VENDOR), 'utf8')) as Record<string, string>
  expect(hash('sha256', readFileSync(new URL('compile.mjs', VENDOR)))).toBe(origin['sha256'])
  expect(origin).toMatchObject({ name: 're2js', license: 'MIT', packageFile: 'build/index.js' })
  expect(readFileSync(new URL('LICENSE', VENDOR), 'utf8')).toMatch(/MIT License/i)
})

test('the vendored compiler of expressions is what the installed re2js contains', () => {
  const printed = execFileSync(process.execPath, [TOOL, '--check'], { encoding: 'utf8' })
  expect(printed).toMatch(/^re2js \d+\.\d+\.\d+: sha256 [0-9a-f]{64}\n$/)
})

test.each([
  'a',
  'a|bc',
  '(?i)ab+',
  '^\\bx$',
  '[^a-f]{2,4}?',
  '(?s).*\\pL',
  '(a*)*',
  '[[:alpha:]]\\W',
  '[😀-🙈]',
])('the vendored compiler compiles %j to a program of the size that re2js reports', (source) => {
  const program = Compiler.compileRegexp(Simplify.simplify(Parser.parse(source, RE2Flags.PERL)))
  expect(program.inst).toHaveLength(RE2JS.compile(source).programSize())
})

test('an expression that RE2 does not have is refused with what is wrong in it', () => {
  expect(() => compileProgram([{ source: 'a(?=b)' }])).toThrow(PatternError)
  expect(() => compileProgram([{ source: '[b-a]' }])).toThrow('invalid character class range: `b-a`')
})
