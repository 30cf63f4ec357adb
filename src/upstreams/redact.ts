import { parseRecord } from '@sluice/wire/json/record'
import type { Channel } from '../domain/records/channel.ts'
import { parseProxy } from './parse-proxy.ts'
import { replaceUnfolded } from './unfold-text.ts'

/**
 * Matches keys with well-known prefixes, bearer credentials, Google's tokens, JSON Web Tokens, and ARNs of
 * AWS, which contain account ids.
 */
const KEY_PATTERN =
  /\b(?:sk|pk|rk|gsk|xai|key)-[A-Za-z0-9_*-]{6,}|\bBearer\s+[^\s"',]+|\bya29\.[\w.-]+|\beyJ[\w-]+\.[\w-]+\.[\w-]+|\barn:aws[\w-]*:[^\s"',]+/gi

/** Minimum characters of a header value that counts as secret; shorter values may be ordinary words. */
const MIN_SECRET_LENGTH = 8

/** What is removed from texts that a channel's upstream has sent. */
interface Redaction {
  /** Match the channel's secrets in all their forms. */
  readonly secrets: readonly RegExp[]
  readonly addresses: readonly string[]
}

// A channel's patterns are made when its first error is redacted, because channels without errors do not need
// them.
const redactions = new WeakMap<Channel, Redaction>()

/** Removes a channel's keys, secret headers, proxy credentials and address from an upstream's `text`. */
export function redact(text: string, channel: Channel): string {
  let redaction = redactions.get(channel)
  if (!redaction) redactions.set(channel, (redaction = redactionOf(channel)))
  const { secrets, addresses } = redaction
  let result = text
  for (const secret of secrets) result = replaceUnfolded(result, secret, '[redacted]')
  for (const address of addresses) result = result.replaceAll(address, '[upstream]')
  return replaceUnfolded(result, KEY_PATTERN, '[redacted]')
}

function redactionOf({ keys, headers, proxy, base_url }: Channel): Redaction {
  const secrets = new Set([
    ...keys.flatMap(secretsIn),
    ...[...headers.values()].filter((value) => value.length >= MIN_SECRET_LENGTH),
    ...(proxy === null ? [] : secretsOfProxy(proxy)),
  ])
  // The longest secret is searched first, because it may begin with a shorter one.
  const longestFirst = [...secrets].filter(Boolean).sort((one, other) => other.length - one.length)
  const { host, hostname } = new URL(base_url)
  const forms = longestFirst.map(formsOf)
  return {
    secrets: [
      ...patternOf(
        forms.flatMap(({ anyCase }) => anyCase),
        'gi',
      ),
      ...patternOf(
        forms.flatMap(({ exact }) => exact),
        'g',
      ),
    ],
    addresses: [base_url, host, hostname],
  }
}

function secretsOfProxy(proxy: string): string[] {
  const credentials = parseProxy(proxy)?.credentials
  return credentials ? [`${credentials.user}:${credentials.password}`, credentials.password] : []
}

// Returns a key and, if it consists of several secrets, each of these.
function secretsIn(key: string): string[] {
  const parts = key.startsWith('{') ? linesOfPrivateKey(key) : key.split(':')
  return [key, ...parts.filter((part) => part !== key && part.length >= MIN_SECRET_LENGTH)]
}

// Returns the lines of the private key in PEM format that the JSON key of a service account contains.
function linesOfPrivateKey(key: string): string[] {
  const text = parseRecord(key)?.['private_key']
  return typeof text === 'string' ? text.split('\n').filter((line) => !line.startsWith('-----')) : []
}

/**
 * Minimum bytes of a secret that is also searched in encoded form. The encoding of a shorter secret may occur
 * in ordinary words.
 */
const MIN_BYTES = 8
/**
 * Maximum bytes of a secret that are searched as one piece; a longer secret is searched in several pieces.
 */
const MAX_BYTES = 256

/** Regular expressions, as texts, for the forms in which an upstream may quote a secret. */
interface SecretForms {
  /** Forms that are recognized in upper and lower case. */
  readonly anyCase: readonly string[]
  readonly exact: readonly string[]
}

/**
 * The forms of a secret: plain, reversed, percent-encoded, in hexadecimal, and in base64 or base64url, even as
 * a part of a longer encoded text such as `Basic` credentials.
 */
function formsOf(secret: string): SecretForms {
  const bytes = Buffer.from(secret)
  if (bytes.length < MIN_BYTES) return { anyCase: [], exact: [literal(secret)] }
  const anyCase = [literal(secret), literal(Array.from(secret).toReversed().join(''))]
  const exact: string[] = []
  for (let start = 0; start < bytes.length; start += MAX_BYTES) {
    // If the last piece is short, it begins earlier, so that it has the minimum length.
    const piece = bytes.subarray(Math.max(0, Math.min(start, bytes.length - MIN_BYTES)), start + MAX_BYTES)
    anyCase.push(percentEncoded(piece), hexadecimal(piece))
    exact.push(...[0, 1, 2].map((before) => base64(piece, before)))
  }
  return { anyCase, exact }
}

function patternOf(forms: readonly string[], flags: string): readonly RegExp[] {
  return forms.length === 0 ? [] : [new RegExp(forms.join('|'), flags)]
}

function literal(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`)
}

/**
 * Returns a regular expression that matches these bytes, each of which may be percent-encoded once or twice.
 */
function percentEncoded(bytes: Buffer): string {
  return Array.from(bytes, (byte) => {
    const encoded = `%(?:25)?${hexadecimal(Buffer.of(byte))}`
    return byte > 0x20 && byte < 0x7f ? `(?:${literal(String.fromCharCode(byte))}|${encoded})` : encoded
  }).join('')
}

function hexadecimal(bytes: Buffer): string {
  return bytes.toString('hex')
}

/**
 * Returns a regular expression that matches these bytes within base64. `before` is the number of bytes (0 to
 * 2) before them in the group of three bytes that base64 encodes together.
 */
function base64(bytes: Buffer, before: number): string {
  const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
  const first = Math.ceil((before * 8) / 6)
  const last = Math.floor(((before + bytes.length) * 8) / 6)
  // The characters at both ends of the encoded secret encode neighbouring bytes, but contain bits of the
  // secret too, so they are also removed.
  const start = before === 0 ? '' : ANY
  const end = (before + bytes.length) % 3 === 0 ? '' : `${ANY}${PADDING}`
  const inner = text.slice(first, last).replaceAll(/[+/]/g, (sign) => SIGNS[sign] ?? '')
  return `${start}${inner}${end}`
}

const SIGNS: Readonly<Record<string, string>> = { '+': '(?:[+-]|%2[Bb])', '/': '(?:[/_]|%2[Ff])' }
const ANY = '(?:[\\w+/-]|%2[BbFf])?'
const PADDING = '(?:=|%3[Dd]){0,2}'

/**
 * Matches a JSON string literal, the text between two string literals, or a string literal without an end.
 */
const PIECE = /"[^"\\]*(?:\\.[^"\\]*)*"|[^"]+|".*/gs

/**
 * Redacts an upstream's error in JSON. Only strings that contain the channel's keys or address are changed.
 * @param checked Returns a redacted string as it may be sent.
 */
export function redactFrame(
  bytes: Buffer,
  channel: Channel,
  checked: (text: string) => string = (text) => text,
): Buffer {
  let isChanged = false
  const written = bytes.toString().replaceAll(PIECE, (piece) => {
    const value = valueOf(piece)
    const text = value ?? piece
    const redacted = redact(text, channel)
    const result = piece.startsWith('"') ? checked(redacted) : redacted
    if (result === text) return piece
    isChanged = true
    return value === undefined ? result : JSON.stringify(result)
  })
  return isChanged ? Buffer.from(written) : bytes
}

/** The value of a JSON string literal; undefined if the text is not one. */
function valueOf(piece: string): string | undefined {
  if (!piece.startsWith('"')) return undefined
  try {
    return JSON.parse(piece) as string
  } catch {
    return undefined
  }
}
