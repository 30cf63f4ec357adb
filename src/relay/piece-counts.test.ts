import { expect, test } from 'vitest'
import { countedText } from './text-sample.ts'
import { PieceCounts } from './piece-counts.ts'

test('a conversation that continues is counted from its new part', () => {
  const counted: string[] = []
  const counts = new PieceCounts((piece) => counted.push(piece) && piece.length)
  const sumOf = (text: string): number =>
    countedText(text, 0).pieces.reduce((sum, piece) => sum + counts.tokensOf(piece), 0)
  const turns = Array.from({ length: 20 }, (_, i) => `turn ${i} `.repeat(100))
  const soFar = turns.slice(0, -1).join('')
  expect(sumOf(soFar)).toBe(soFar.length)
  const before = counted.splice(0)
  const text = turns.join('')
  expect(sumOf(text)).toBe(text.length)
  expect(counted.join('')).toBe(text.slice(before.slice(0, -1).join('').length))
})

test('pieces that differ in one character are counted separately, in alphabets of any width', () => {
  const counts = new PieceCounts((piece) => piece.codePointAt(0) ?? 0)
  for (const first of ['a', 'b', 'é', 'ж', '語', '😀'])
    expect(counts.tokensOf(`${first}${'x'.repeat(99)}`)).toBe(first.codePointAt(0))
})

test('counts in use are kept, and those that have not been used for long are not', () => {
  let counted = 0
  const counts = new PieceCounts(() => ++counted)
  counts.tokensOf('often')
  counts.tokensOf('once')
  for (let i = 0; i < 11_000; i++) {
    counts.tokensOf(String(i))
    if (i % 1000 === 0) counts.tokensOf('often')
  }
  expect(counts.tokensOf('often')).toBe(1)
  expect(counts.tokensOf('once')).toBe(11_003)
})
