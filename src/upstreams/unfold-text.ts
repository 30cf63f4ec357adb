/** Invisible characters that do not change the meaning of a text. */
const INVISIBLE = String.raw`[\p{Default_Ignorable_Code_Point}\p{Cf}\u2800\ufffc\u{1d159}]|(?![\t\n\r])\p{Cc}`
/** A reference to a character in HTML or XML, whose `&` may be written as a reference too. */
const ENTITY = String.raw`&(?:amp;|#0*38;|#x0*26;)*(?:#(\d{1,9});?|#x([\da-f]{1,9});?|([a-z]{2,6});)`
const FOLDED = new RegExp(`${INVISIBLE}|${ENTITY}`, 'giu')
const MAY_BE_FOLDED = new RegExp(`&|${INVISIBLE}`, 'u')

/** The names of references to ASCII characters that are neither letters nor digits. */
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
  hat: '^',
  lowbar: '_',
  grave: '`',
  lcub: '{',
  lbrace: '{',
  verbar: '|',
  vert: '|',
  rcub: '}',
  rbrace: '}',
}

/**
 * Replaces matches of a pattern also where invisible characters are within them, or where their characters are
 * written as entities. All else keeps its spelling.
 */
export function replaceUnfolded(text: string, pattern: RegExp, by: string): string {
  const plain = text.replaceAll(pattern, by)
  return MAY_BE_FOLDED.test(plain) ? replaceFolded(plain, pattern, by) : plain
}

function replaceFolded(text: string, pattern: RegExp, by: string): string {
  const { unfolded, positions } = unfold(text)
  let result = ''
  let end = 0
  for (const { 0: match, index } of unfolded.matchAll(pattern)) {
    if (match === '') continue
    result += text.slice(end, positions[index]) + by
    // What is invisible after the last character of a match is removed with it.
    end = positions[index + match.length] as number
  }
  return result + text.slice(end)
}

/** The text as it is read, and for each of its code units, and its end, the position in the original. */
function unfold(text: string): { readonly unfolded: string; readonly positions: readonly number[] } {
  const positions: number[] = []
  let unfolded = ''
  let at = 0
  const copy = (end: number): void => {
    for (let from = at; from < end; from++) positions.push(from)
    unfolded += text.slice(at, end)
  }
  for (const { 0: folded, 1: decimal, 2: hexadecimal, 3: name, index } of text.matchAll(FOLDED)) {
    const read = folded.startsWith('&') ? referred(decimal, hexadecimal, name) : ''
    if (read === undefined) continue
    copy(index)
    for (let unit = 0; unit < read.length; unit++) positions.push(index)
    unfolded += read
    at = index + folded.length
  }
  copy(text.length)
  positions.push(text.length)
  return { unfolded, positions }
}

/** The character of a reference; undefined if there is none. An invisible one is read as nothing. */
function referred(decimal?: string, hexadecimal?: string, name?: string): string | undefined {
  if (name !== undefined) return NAMED[name.toLowerCase()]
  const point = decimal === undefined ? Number.parseInt(hexadecimal ?? '', 16) : Number(decimal)
  if (point > 0x10ffff) return undefined
  const character = String.fromCodePoint(point)
  return INVISIBLE_ALONE.test(character) ? '' : character
}

const INVISIBLE_ALONE = new RegExp(`^(?:${INVISIBLE})$`, 'u')
