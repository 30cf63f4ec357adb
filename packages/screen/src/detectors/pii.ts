import { isIPv4, isIPv6 } from 'node:net'
import { isIbanChecksum, isLuhn } from './checksums.ts'
import type { CodePointRanges } from '../automaton/code-points.ts'
import { CARD_NUMBERS, COUNTRY_CODES, FILE_ENDINGS, IBAN_LENGTHS } from './numbering-plans.ts'
import type { Detector } from './detector.ts'

export type PII_KIND_NAMES = 'email' | 'phone' | 'credit_card' | 'iban' | 'ip' | 'ssn'

const DIGITS: CodePointRanges = [0x30, 0x39]
const LETTERS_AND_DIGITS: CodePointRanges = [...DIGITS, 0x41, 0x5a, 0x61, 0x7a]
/** ASCII letters, digits and `_`. */
const WORD: CodePointRanges = [...DIGITS, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a]
const DASH: CodePointRanges = [0x2d, 0x2d]
const DOT: CodePointRanges = [0x2e, 0x2e]
const COLON: CodePointRanges = [0x3a, 0x3a]

/**
 * The forms of each kind of personal data. The comment at each form names its standard (`docs/matching.md:
 * Detection data`).
 */
export const PII_DETECTORS: Readonly<Record<PII_KIND_NAMES, Detector>> = {
  // RFC 5321 4.5.3.1: 64 characters before the @ and 254 in total. The name may have letters of any script (RFC 6531).
  email: {
    kind: 'EMAIL',
    most: 254,
    forms: [
      {
        source: String.raw`[\pL\pN._%+'-]{1,64}@(?:[\pL\pN](?:[\pL\pN-]{0,61}[\pL\pN])?\.){1,8}(?:\pL{2,24}|xn--[a-z0-9-]{2,59})`,
        notAfter: [...LETTERS_AND_DIGITS, 0x25, 0x25, 0x2b, 0x2b, 0x2d, 0x2e, 0x5f, 0x5f],
        notBefore: [...WORD, ...DASH, 0x40, 0x40],
        check: isEmail,
      },
    ],
  },
  phone: { kind: 'PHONE', most: 32, forms: phoneForms() },
  // ISO/IEC 7812: 12 to 19 digits, in groups of four or as the brand writes them.
  credit_card: {
    kind: 'CREDIT_CARD',
    most: 32,
    forms: [
      String.raw`\d{12,19}`,
      String.raw`\d{4}(?: \d{4}){2,3}(?: \d{1,4})?`,
      String.raw`\d{4}(?:-\d{4}){2,3}(?:-\d{1,4})?`,
      String.raw`\d{4}[ -]\d{6}[ -]\d{4,5}`,
      // The decimal places of a number are not a card number.
    ].map((source) => ({ source, notAfter: [...WORD, ...DOT], notBefore: WORD, check: isCardNumber })),
  },
  // ISO 13616: country, two check digits, up to 30 letters and digits; on paper in groups of four.
  iban: {
    kind: 'IBAN',
    most: 48,
    forms: [
      {
        source: String.raw`(?i)[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?`,
        notAfter: WORD,
        notBefore: WORD,
        check: isIban,
      },
    ],
  },
  ip: {
    kind: 'IP',
    most: 64,
    forms: [
      {
        source: String.raw`\d{1,3}(?:\.\d{1,3}){3}`,
        notAfter: [...WORD, ...DOT, ...DASH],
        notBefore: [...WORD, ...DASH],
        check: isAddress,
      },
      // A version number or an object identifier, which would otherwise be taken for an address.
      { source: String.raw`\d{1,9}(?:\.\d{1,9}){4,7}`, notAfter: [...WORD, ...DOT, ...DASH], isOther: true },
      {
        source: String.raw`(?i)[0-9a-f:]{2,39}(?:\d{1,3}(?:\.\d{1,3}){3})?`,
        notAfter: [...WORD, ...COLON, ...DOT],
        notBefore: [...WORD, ...COLON],
        check: isAddress6,
      },
    ],
  },
  // 20 CFR 422.103; areas 000, 666 and 900 to 999, group 00 and serial number 0000 are never assigned.
  ssn: {
    kind: 'SSN',
    most: 16,
    forms: ['-', ' '].map((separator) => ({
      source: String.raw`\d{3}${separator}\d{2}${separator}\d{4}`,
      notAfter: [...WORD, ...DASH, ...DOT],
      notBefore: [...WORD, ...DASH],
      check: (text) => isSocialSecurityNumber(text.split(separator)),
    })),
  },
}

function isEmail(text: string): boolean {
  const [name = '', host = ''] = text.split('@')
  const ending = host.slice(host.lastIndexOf('.') + 1).toLowerCase()
  // git@host:repository is the address of a repository, and logo@2x.png is a file; neither is an e-mail
  // address.
  return name !== 'git' && /[\p{L}\p{N}]/u.test(name) && !FILE_ENDINGS.has(ending)
}

/**
 * Forms of phone numbers: with `+` or `00` and a country code, or with the separators that are usual in a
 * country. Digits without separators are mostly order numbers or times, so only Chinese mobile numbers are
 * matched that way, by their first digits.
 */
function phoneForms(): Detector['forms'] {
  const border = { notAfter: [...WORD, ...DASH, ...DOT, 0x2b, 0x2b], notBefore: [...WORD, ...DASH] }
  const international = (text: string) => isInternational(text.replace(/^00/, '').replaceAll(/\D/g, ''))
  return [
    {
      source: String.raw`\+\d{1,3}(?:[ .-]?\(\d{1,4}\))?(?:[ ./-]?\d{1,12}){1,6}`,
      ...border,
      check: international,
    },
    { source: String.raw`00[1-9]\d{0,2}(?:[ ./-]\d{1,12}){2,5}`, ...border, check: international },
    // North America: 3-3-4 digits. The area code and the next group each begin with 2 to 9.
    { source: String.raw`(?:1[ .-])?[2-9]\d{2}-[2-9]\d{2}-\d{4}`, ...border },
    { source: String.raw`(?:1[ .-])?[2-9]\d{2}\.[2-9]\d{2}\.\d{4}`, ...border },
    { source: String.raw`(?:1[ .-])?[2-9]\d{2} [2-9]\d{2}[ -]\d{4}`, ...border },
    { source: String.raw`(?:1[ .-]?)?\([2-9]\d{2}\)[ -]?[2-9]\d{2}[ .-]\d{4}`, ...border },
    // Numbers with a leading 0, as in most of Europe and Asia.
    { source: String.raw`0\d(?:[ .-]\d{2}){4}`, ...border },
    {
      source: String.raw`0[1-9]\d{0,3}[ /-]\d{2,5}(?: \d{2,4}){1,3}`,
      ...border,
      check: (text) => /^(?:\D*\d){9,12}\D*$/.test(text),
    },
    { source: String.raw`0[1-9]\d{0,3}[ /-]\d{3,4}-\d{3,4}`, ...border },
    { source: String.raw`0[1-9]\d{1,4}[ /-]\d{5,8}`, ...border },
    { source: String.raw`\(0\d{1,4}\) ?\d{3,4}[ -]?\d{3,4}`, ...border },
    { source: String.raw`1[3-9]\d-\d{4}-\d{4}`, ...border },
    { source: String.raw`1[3-9]\d \d{4} \d{4}`, ...border },
    { source: String.raw`1[3-9]\d{9}`, ...border },
  ]
}

/**
 * Whether these are the digits of an international phone number (ITU-T E.164): a country code, and at most 15
 * digits in all.
 */
function isInternational(digits: string): boolean {
  if (digits.length < 8 || digits.length > 15) return false
  return [1, 2, 3].some((length) => COUNTRY_CODES.has(digits.slice(0, length)))
}

function isCardNumber(text: string): boolean {
  const digits = text.replaceAll(/\D/g, '')
  if (new Set(digits).size < 2 || !isLuhn(digits)) return false
  return CARD_NUMBERS.some(
    ({ first, last, lengths }) =>
      lengths.includes(digits.length) &&
      digits.slice(0, first.length) >= first &&
      digits.slice(0, last.length) <= last,
  )
}

function isIban(text: string): boolean {
  const plain = text.replaceAll(/[ -]/g, '').toUpperCase()
  return IBAN_LENGTHS[plain.slice(0, 2)] === plain.length && isIbanChecksum(plain)
}

function isAddress(text: string): boolean {
  // 120.0.0.0 is a browser version or a network, not the address of a machine.
  return isIPv4(text) && !text.endsWith('.0.0.0') && text !== '255.255.255.255'
}

function isAddress6(text: string): boolean {
  if (!isIPv6(text)) return false
  // `::`, and two names such as `de::ad`, occur in program code and are not addresses.
  const groups = text.split(':').filter((group) => group !== '')
  return groups.length > 2 || text.includes('.') || /^(?:::1|f[cde][0-9a-f]{2}:|2[0-9a-f]{3}:)/i.test(text)
}

function isSocialSecurityNumber([area = '', group, serial]: readonly string[]): boolean {
  return area !== '000' && area !== '666' && area < '900' && group !== '00' && serial !== '0000'
}
