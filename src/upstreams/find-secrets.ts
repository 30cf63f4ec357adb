import {
  mergedRanges,
  originalRanges,
  rangesIn,
  type TextFinder,
  type TextRange,
  unfold,
} from './unfold-text.ts'

/**
 * Minimum bytes of a secret that is also searched in other spellings. Those of a shorter secret may occur in ordinary
 * words.
 */
const MIN_BYTES = 8

/**
 * Returns a function that finds secrets in a text: as they are, and, if they are long enough, reversed, in any
 * case, percent-encoded up to three times, in hexadecimal, and in base64 or base64url, even as a part of a longer
 * encoded text such as `Basic` credentials. The text is decoded, so that the time does not depend on the spellings.
 */
export function secretFinder(secrets: readonly string[]): TextFinder {
  const [long, short] = [secrets.filter(isLong), secrets.filter((secret) => !isLong(secret))]
  const spellings = long.flatMap((secret) => [secret, Array.from(secret).toReversed().join('')])
  const inBytes = spellings.map((spelling) => Buffer.from(spelling).toString('latin1'))
  const patterns = [...patternOf([...new Set([...spellings, ...inBytes])], 'gi'), ...patternOf(short, 'g')]
  const needles = inBytes.map((spelling) => spelling.toLowerCase())
  const find = (text: string): readonly TextRange[] => [
    ...patterns.flatMap((pattern) => rangesIn(text, pattern)),
    ...ENCODINGS.flatMap((encoding) => rangesInRuns(text, needles, encoding)),
  ]
  // One level at a time: what stands before a secret may look like the beginning of an encoded percent sign.
  const findDecoded = (text: string, levels: number): readonly TextRange[] => {
    if (levels === 0 || !text.includes('%')) return find(text)
    const { unfolded, positions } = unfold(text, PERCENT_ENCODED, ({ 1: hex = '' }) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    )
    if (unfolded === text) return find(text)
    return [...find(text), ...originalRanges(findDecoded(unfolded, levels - 1), positions)]
  }
  return (text) => mergedRanges(findDecoded(text, MAX_PERCENT_LEVELS))
}

function isLong(secret: string): boolean {
  return Buffer.byteLength(secret) >= MIN_BYTES
}

function patternOf(texts: readonly string[], flags: string): readonly RegExp[] {
  return texts.length === 0 ? [] : [new RegExp(texts.map(literal).join('|'), flags)]
}

function literal(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`)
}

const PERCENT_ENCODED = /%([\da-f]{2})/gi
/** How many times a secret may be percent-encoded. */
const MAX_PERCENT_LEVELS = 3

/** An encoding of bytes in which each group of characters may begin with a byte. */
interface Encoding {
  readonly name: 'hex' | 'base64'
  /** Matches a run of its characters, with their padding. */
  readonly run: RegExp
  readonly bits: number
  readonly group: number
}

const ENCODINGS: readonly Encoding[] = [
  { name: 'hex', run: /[\da-f]{2,}/gi, bits: 4, group: 2 },
  { name: 'base64', run: /[\w+/-]{2,}={0,2}/g, bits: 6, group: 4 },
]

/** Finds bytes, given as characters in lower case, where a text contains them in an encoding. */
function rangesInRuns(text: string, needles: readonly string[], encoding: Encoding): readonly TextRange[] {
  const { name, run, bits, group } = encoding
  const least = Math.min(...needles.map(({ length }) => length)) * (8 / bits)
  const found: TextRange[] = []
  for (const { start: first, end: last } of rangesIn(text, run)) {
    for (let from = first; from < first + group && last - from >= least; from++) {
      const decoded = Buffer.from(text.slice(from, last), name).toString('latin1').toLowerCase()
      for (const needle of needles)
        for (let at = decoded.indexOf(needle); at >= 0; at = decoded.indexOf(needle, at + 1)) {
          const end = from + Math.ceil(((at + needle.length) * 8) / bits)
          found.push({
            start: from + Math.floor((at * 8) / bits),
            end: text.startsWith('=', end) ? last : end,
          })
        }
    }
  }
  return found
}
