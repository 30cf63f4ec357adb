import { INVISIBLE_CHARACTERS } from '../domain/invisible-characters.ts'

/** The names of references to ASCII characters and, as an empty text, to invisible ones, in lower case. */
const NAMED: Readonly<Record<string, string>> = {
  excl: '!',
  quot: '"',
  num: '#',
  dollar: '$',
  percnt: '%',
  amp: '&',
  apos: "'",
  lpar: '(',
  rpar: ')',
  ast: '*',
  midast: '*',
  plus: '+',
  comma: ',',
  dash: '-',
  hyphen: '-',
  period: '.',
  sol: '/',
  colon: ':',
  semi: ';',
  lt: '<',
  equals: '=',
  gt: '>',
  quest: '?',
  commat: '@',
  lsqb: '[',
  lbrack: '[',
  bsol: '\\',
  rsqb: ']',
  rbrack: ']',
  lowbar: '_',
  grave: '`',
  lcub: '{',
  lbrace: '{',
  verbar: '|',
  vert: '|',
  rcub: '}',
  rbrace: '}',
  hat: '^',
  diacriticalgrave: '`',
  underbar: '_',
  verticalline: '|',
  fjlig: 'fj',
  ...Object.fromEntries(
    (
      'nbsp nonbreakingspace ensp emsp emsp13 emsp14 numsp puncsp thinsp thinspace hairsp verythinspace mediumspace ' +
      'thickspace shy zwnj zwj lrm rlm zerowidthspace negativeverythinspace negativethinspace negativemediumspace ' +
      'negativethickspace nobreak applyfunction af invisibletimes it invisiblecomma ic'
    )
      .split(' ')
      .map((name) => [name, '']),
  ),
}

/** Those that are also read without a semicolon. */
const WITHOUT_SEMICOLON = 'amp|gt|lt|nbsp|quot|shy'
/** Characters that do not change the meaning of a text. */
const INVISIBLE = String.raw`${INVISIBLE_CHARACTERS}|[\p{Cc}--[\t\n\r]]`
/** A reference to a character in HTML or XML, whose `&` may be written as a reference too. */
const ENTITY = String.raw`&(?:amp;|#0*38;|#x0*26;)*(?:#(\d{1,9});?|#x([\da-f]{1,9});?|(${Object.keys(NAMED).join('|')});|(${WITHOUT_SEMICOLON}))`
const FOLDED = new RegExp(`${INVISIBLE}|${ENTITY}`, 'giv')
const MAY_BE_FOLDED = new RegExp(`&|${INVISIBLE}`, 'v')

/** A part of a text, by the positions of its code units. */
export interface TextRange {
  readonly start: number
  readonly end: number
}

/** Finds parts of a text, in order and without overlaps. */
export type TextFinder = (text: string) => readonly TextRange[]

/** The matches of a pattern that are not empty. */
export function rangesIn(text: string, pattern: RegExp): readonly TextRange[] {
  return Array.from(text.matchAll(pattern), ({ 0: match, index }) => ({
    start: index,
    end: index + match.length,
  })).filter(({ start, end }) => start < end)
}

/** Joins ranges that overlap, and returns all in order. */
export function mergedRanges(ranges: readonly TextRange[]): readonly TextRange[] {
  const merged: TextRange[] = []
  for (const range of ranges.toSorted((one, other) => one.start - other.start)) {
    const before = merged.at(-1)
    if (before && range.start < before.end)
      merged[merged.length - 1] = { start: before.start, end: Math.max(before.end, range.end) }
    else merged.push(range)
  }
  return merged
}

/**
 * Replaces what is found in a text, also where invisible characters are within it, or where its characters are
 * written as entities. All else keeps its spelling.
 */
export function replaceUnfolded(text: string, find: TextFinder, by: string): string {
  const plain = replaced(text, find(text), by)
  if (!MAY_BE_FOLDED.test(plain)) return plain
  const { unfolded, positions } = unfold(plain, FOLDED, readFolded)
  return replaced(plain, originalRanges(find(unfolded), positions), by)
}

function replaced(text: string, ranges: readonly TextRange[], by: string): string {
  if (ranges.length === 0) return text
  let result = ''
  let from = 0
  for (const { start, end } of ranges) {
    result += text.slice(from, start) + by
    from = end
  }
  return result + text.slice(from)
}

/** A text as it is read, and for each of its code units, and its end, the position in the original. */
interface UnfoldedText {
  readonly unfolded: string
  readonly positions: readonly number[]
}

/** Reads what matches a pattern as another text; what `read` knows no text for stays as it is. */
export function unfold(
  text: string,
  pattern: RegExp,
  read: (match: RegExpExecArray) => string | undefined,
): UnfoldedText {
  const positions: number[] = []
  let unfolded = ''
  let at = 0
  const copy = (end: number): void => {
    for (let from = at; from < end; from++) positions.push(from)
    unfolded += text.slice(at, end)
  }
  for (const match of text.matchAll(pattern)) {
    const { 0: folded, index } = match
    const known = read(match)
    if (known === undefined) continue
    copy(index)
    for (let unit = 0; unit < known.length; unit++) positions.push(index)
    unfolded += known
    at = index + folded.length
  }
  copy(text.length)
  positions.push(text.length)
  return { unfolded, positions }
}

/** The ranges of the original. What is read as nothing after the last character of a range belongs to it. */
export function originalRanges(
  ranges: readonly TextRange[],
  positions: UnfoldedText['positions'],
): readonly TextRange[] {
  return ranges.map(({ start, end }) => ({
    start: positions[start] as number,
    end: positions[end] as number,
  }))
}

function readFolded({ 0: folded, 1: decimal, 2: hexadecimal, 3: name, 4: short }: RegExpExecArray) {
  return folded.startsWith('&') ? referred(decimal, hexadecimal, name ?? short) : ''
}

/** The character of a reference; undefined if there is none. An invisible one is read as nothing. */
function referred(decimal?: string, hexadecimal?: string, name?: string): string | undefined {
  if (name !== undefined) return NAMED[name.toLowerCase()]
  const point = decimal === undefined ? Number.parseInt(hexadecimal ?? '', 16) : Number(decimal)
  if (point > 0x10ffff) return undefined
  const character = String.fromCodePoint(point)
  return INVISIBLE_ALONE.test(character) ? '' : character
}

const INVISIBLE_ALONE = new RegExp(`^(?:${INVISIBLE})$`, 'v')
