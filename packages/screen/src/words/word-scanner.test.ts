import { expect, test } from 'vitest'
import { lawRuns } from '../../../../test/runner/tier.ts'
import { isLetter, isMark, wordForms } from './word-forms.ts'
import { WordScanner } from './word-scanner.ts'
import { WordTree } from './word-tree.ts'

let seed = 7
/** A number from 0 to `end` (exclusive). */
function draw(end: number): number {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return Math.floor((seed / 2 ** 32) * end)
}
const oneOf = <Value>(values: readonly Value[]): Value => values[draw(values.length)] as Value
const random = (letters: readonly string[], length: number): string =>
  Array.from({ length }, () => oneOf(letters)).join('')

/** Letters with borders and without, marks, white space, two code units, and letters that change their length in capitals. */
const ALPHABETS = [
  ['中', '文'],
  ['中', 'a', '-'],
  ['a', 'A', '-', ' '],
  ['a', 'é', 'e', '\u0301', '中', ' '],
  ['ß', 's', 'S', '.', '\n', ' '],
  ['a', ' ', '\u00a0', '\v'],
  ['İ', 'i', 'I', '\u0307', ' '],
  ['म', 'ा', 'e', '\u0301', '中'],
  ['x', '-', '\u{10400}', '\u{11001}'],
  ['😀', '中', '\u{20000}', ' ', 'x'],
]

/** `docs/matching.md: What a rule finds`: the matches, looked for word by word at one place after the other. */
function naiveMatches(words: readonly string[], text: string): [number, number][] {
  const forms = words.flatMap(wordForms)
  const matches: [number, number][] = []
  for (let at = 0; at < text.length; ) {
    const before = Array.from(text.slice(0, at)).findLast((character) => !isMark(character)) ?? ''
    let longest = -1
    for (const { parts, borderBefore, borderAfter } of forms) {
      const end = endOf(parts, text, at)
      const after = Array.from(text.slice(end))[0] ?? ''
      if (end < 0 || isMark(after) || (borderBefore && isLetter(before)) || (borderAfter && isLetter(after)))
        continue
      longest = Math.max(longest, end)
    }
    if (longest >= 0) matches.push([at, longest])
    at = longest >= 0 ? longest : at + (Array.from(text.slice(at))[0] as string).length
  }
  return matches
}

/** The end of the parts of a phrase at a position, or -1. */
function endOf(parts: readonly string[], text: string, from: number): number {
  let at = from
  for (const [index, part] of parts.entries()) {
    const spaces = index === 0 ? 0 : (/^\s{1,4}/u.exec(text.slice(at))?.[0].length ?? -1)
    if (spaces < 0) return -1
    at += spaces
    for (const character of part) {
      const there = Array.from(text.slice(at, at + 2))[0] ?? ''
      if (there.toLowerCase() !== character.toLowerCase()) return -1
      at += there.length
    }
  }
  return at
}

function found(scanner: WordScanner): [number, number][] {
  return scanner.spans.map(({ start, end }) => [start, end])
}

test('finds the same words as a search word by word, whole, in pieces, and in a fork', () => {
  for (let run = 0; run < lawRuns(1500); run++) {
    const letters = oneOf(ALPHABETS)
    const words = Array.from({ length: 1 + draw(6) }, () => random(letters, 1 + draw(6))).filter(
      (word) =>
        word.trim() !== '' && wordForms(word).every(({ parts }) => parts.every((part) => part !== '')),
    )
    if (words.length === 0) continue
    const text = random(letters, draw(40))
    const expected = naiveMatches(words, text)
    const about = JSON.stringify({ words, text })
    const tree = new WordTree(words)
    const whole = new WordScanner(tree)
    whole.scan(text, 0, true)
    expect(found(whole), about).toEqual(expected)

    let pieces = new WordScanner(tree)
    for (let end = draw(3); end < text.length; end += 1 + draw(4)) {
      pieces.scan(text.slice(pieces.needed, end), pieces.needed, false)
      // All matches before it are known, and none that is known begins after it.
      const known = expected.filter(([start]) => start < pieces.decided)
      expect(found(pieces), `${about} to ${end}`).toEqual(known)
      const fork = pieces.fork()
      fork.spans.push(...pieces.spans)
      pieces = fork
    }
    pieces.scan(text.slice(pieces.needed), pieces.needed, true)
    expect(found(pieces), `${about} in pieces`).toEqual(expected)
  }
})

test('the space of a phrase is any white space, in the text as in the phrase', () => {
  const spaces = Array.from({ length: 0x10000 }, (_, unit) => String.fromCharCode(unit)).filter((unit) =>
    /\s/.test(unit),
  )
  expect(spaces.length).toBe(25)
  const spans = (phrase: string, text: string): [number, number][] => {
    const scanner = new WordScanner(new WordTree([phrase]))
    scanner.scan(text, 0, true)
    return found(scanner)
  }
  for (const space of spaces) {
    expect(spans('project yonder', `see project${space}yonder`), space.codePointAt(0)?.toString(16)).toEqual([
      [4, 18],
    ])
    expect(
      spans(`project${space}yonder`, `see project${space}yonder`),
      space.codePointAt(0)?.toString(16),
    ).toEqual([[4, 18]])
    expect(
      spans(`株式会社${space}山田`, 'これは株式会社 山田です'),
      space.codePointAt(0)?.toString(16),
    ).toEqual([[3, 10]])
  }
})

test('text is decided as soon as no word can begin in it', () => {
  const scanner = new WordScanner(new WordTree(['中文中文x', '文中']))
  scanner.scan('--中文中', 0, false)
  expect(scanner.decided).toBe(2)
  scanner.scan('--中文中-', 0, false)
  expect(scanner.decided).toBe(6)
  expect(found(scanner)).toEqual([[3, 5]])
})
