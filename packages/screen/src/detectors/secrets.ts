import type { CodePointRanges } from '../automaton/code-points.ts'
import type { Detector } from './detector.ts'
import { ASSIGNMENT, PRIVATE_KEY, SCHEME, SECRET_FORMS, VALUE_CHARACTER } from './secret-forms.ts'

const LETTERS_AND_DIGITS: CodePointRanges = [0x30, 0x39, 0x41, 0x5a, 0x61, 0x7a]
/** `-`, `/` and `_`, which join the parts of a name. */
const JOINTS: CodePointRanges = [0x2d, 0x2d, 0x2f, 0x2f, 0x5f, 0x5f]
const WORD_AND_JOINTS: CodePointRanges = [...LETTERS_AND_DIGITS, ...JOINTS]
/** The characters of a value that has a name, and `(`, which follows the name of a function. */
const VALUE_OR_CALL: CodePointRanges = [
  0x28, 0x28, 0x2b, 0x2b, 0x2d, 0x39, 0x3d, 0x3d, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a, 0x7e, 0x7e,
]

/**
 * Keys and tokens that are recognized by their form alone. A match may be longer than `most`, as long as the
 * characters of the key continue.
 */
export const KNOWN_SECRETS: Detector = {
  kind: 'SECRET',
  most: 256,
  forms: [
    ...SECRET_FORMS.map(({ source, border }) => ({
      source,
      notAfter: border === 'hex' ? WORD_AND_JOINTS : LETTERS_AND_DIGITS,
      ...(border && { notBefore: border === 'exact' ? LETTERS_AND_DIGITS : WORD_AND_JOINTS }),
    })),
    { source: PRIVATE_KEY },
  ],
}

/**
 * Values that are assigned to a name such as `password`, or follow `Bearer`, and look random. The match is
 * the whole value, without its name. Only the first 151 characters of a longer value are checked. The name of a function
 * is not a secret, but may follow one.
 */
export const NAMED_SECRETS: Detector = {
  kind: 'SECRET',
  most: 256,
  isCheckedOnce: true,
  forms: [ASSIGNMENT, SCHEME].flatMap((before) => {
    const form = {
      notAfter: LETTERS_AND_DIGITS,
      check: (text: string) => isSecret(valueOf(text)),
      valueAt: (text: string) => text.length - valueOf(text).length,
    }
    return [
      { ...form, source: `${before}${VALUE_CHARACTER}{20,150}`, notBefore: VALUE_OR_CALL },
      { ...form, source: `${before}${VALUE_CHARACTER}{20,150}\\(` },
      { ...form, source: `${before}${VALUE_CHARACTER}{151,}` },
    ]
  }),
}

/** The text after the assignment sign, or after the name of an authentication scheme. */
function valueOf(text: string): string {
  return text.replace(/^(?:\w+ {1,2}(?![ :=])|[^:=]*(?::=|=>|[:=])\s*["'`]?)/, '')
}

/** What a secret does not contain: words of a placeholder, dots of an omission, and a call. */
const FOREIGN = /example|placeholder|your[_-]?|x{6}|(?<!\.)\.{2,}[^.]|\(/i

/** Whether a value looks random, or does so up to the last sign in front of something foreign. */
function isSecret(value: string): boolean {
  const own = /^.*(?=[.~+/=-])/.exec(value.slice(0, value.search(FOREIGN) + 1))
  return looksRandom(own?.[0] ?? value)
}

/**
 * Random values have many different characters, digits among the letters, and contain no words. A path, a
 * name with dots or a short name is not a secret merely because its variable is called `token`.
 */
function looksRandom(value: string): boolean {
  if (value.length < 20 || !/[0-9]/.test(value) || !/[A-Za-z]/.test(value)) return false
  if (FOREIGN.test(value)) return false
  const digits = value.replaceAll(/[^0-9]/g, '').length
  // About one of six random base 62 characters is a digit; names that contain a number have fewer digits.
  if (digits < 2 || digits / value.length < 0.06) return false
  if (/^(?:[a-z]+[._/-])+[a-z0-9]+$/i.test(value)) return false
  return entropy(value) >= 3.3
}

/** Shannon entropy of a text, in bits per character. */
function entropy(text: string): number {
  const counts = new Map<string, number>()
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1)
  let bits = 0
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length)
  return bits
}
