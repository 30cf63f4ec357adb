import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { expect, test } from 'vitest'
import { lawRuns } from '../../test/runner/tier.ts'
import { cutTextToCount } from './token-counter.ts'
import { O200K_WORDS, PieceCounts, Vocabulary } from './vocabulary.ts'

const FILE = fileURLToPath(import.meta.resolve('gpt-tokenizer/data/o200k_base.tiktoken'))
const vocabulary = new Vocabulary(readFileSync(FILE), O200K_WORDS)
/** The library's count for a text that may contain control tokens. */
const expected = (text: string): number => countTokens(text, { disallowedSpecial: new Set() })

test('the vocabulary is the one that OpenAI publishes, by the hash that its tiktoken states', () => {
  expect(hash('sha256', readFileSync(FILE))).toBe(
    '446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d',
  )
})

test.each([
  ['prose', readFileSync(new URL('../../docs/ledger.md', import.meta.url), 'utf8')],
  ['code', readFileSync(new URL('./vocabulary.ts', import.meta.url), 'utf8')],
  ['a run of one letter', 'a'.repeat(2_000)],
  ['letters of three bytes', '漢'.repeat(500)],
  ['half of a surrogate pair', 'x\ud800y'],
  ['a control token', '<|endoftext|>'],
])('a text has as many tokens as the reference library counts: %s', (_, text) => {
  expect(vocabulary.count(text)).toBe(expected(text))
})

test('the tokenizer counts as many tokens for any text as the reference library', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.string({ unit: fc.constantFrom('a', 'e', 'n', 't', ' ', '.', '\n', '1', '{', '"', 'É', '的', '🙂') }),
  )
  const isSame = (given: string): boolean => vocabulary.count(given) === expected(given)
  fc.assert(fc.property(text, isSame), { numRuns: lawRuns(2_000) })
})

test('the tokenizer first merges the token with the lowest rank, wherever in the text it is', () => {
  const lines = ['a', 'b', 'c', 'bc', 'ab'].map((token, rank) => `${btoa(token)} ${rank}\n`)
  const small = new Vocabulary(Buffer.from(lines.join('')), /\S+/g)
  expect(['abc', 'ab', 'abc ab', 'abab', 'x', ''].map((text) => small.count(text))).toEqual([
    2, 1, 3, 2, 1, 0,
  ])
})

test('only the new text of a continued conversation, and the piece of text before it, are tokenized', () => {
  const counted: string[] = []
  const counts = new PieceCounts((piece) => counted.push(piece) && piece.length)
  const sumOf = (text: string): number =>
    cutTextToCount(text, 0).pieces.reduce((sum, piece) => sum + counts.tokensOf(piece), 0)
  const turns = Array.from({ length: 20 }, (_, i) => `turn ${i} `.repeat(100))
  const soFar = turns.slice(0, -1).join('')
  expect(sumOf(soFar)).toBe(soFar.length)
  const before = counted.splice(0)
  const text = turns.join('')
  expect(sumOf(text)).toBe(text.length)
  expect(counted.join('')).toBe(text.slice(before.slice(0, -1).join('').length))
})

test('the token counts of text pieces that differ in one character are stored separately, in any script', () => {
  const counts = new PieceCounts((piece) => piece.codePointAt(0) ?? 0)
  for (const first of ['a', 'b', 'é', 'ж', '語', '😀'])
    expect(counts.tokensOf(`${first}${'x'.repeat(99)}`)).toBe(first.codePointAt(0))
})

test('token counts of text pieces in use are kept in memory, and those not used for long are dropped', () => {
  let counted = 0
  const counts = new PieceCounts(() => ++counted)
  const [often, once] = ['often', 'once'].map((word) => word.padEnd(20)) as [string, string]
  counts.tokensOf(often)
  counts.tokensOf(once)
  for (let i = 0; i < 11_000; i++) {
    counts.tokensOf(String(i).padEnd(20))
    if (i % 1000 === 0) counts.tokensOf(often)
  }
  expect(counts.tokensOf(often)).toBe(1)
  expect(counts.tokensOf(once)).toBe(11_003)
})
