import { parseRecord } from '@sluice/wire/json/record'
import type { Channel } from '../domain/records/channel.ts'
import { parseProxy } from './parse-proxy.ts'
import { secretFinder } from './find-secrets.ts'
import { rangesIn, replaceUnfolded, type TextFinder } from './unfold-text.ts'

/**
 * Matches keys with well-known prefixes, bearer credentials, Google's tokens, JSON Web Tokens, and ARNs of
 * AWS, which contain account ids. A JSON Web Token is tried at the first `eyJ` of a run of its characters: where that
 * one is not the beginning of a token, no later one is, and each would read the run to its end.
 */
const KEY_PATTERN =
  /\b(?:sk|pk|rk|gsk|xai|key)-[A-Za-z0-9_*-]{6,}|\bBearer\s+[^\s"',]+|\bya29\.[\w.-]+|\beyJ(?<!\beyJ[\w-]*?eyJ)[\w-]+\.[\w-]+\.[\w-]+|\barn:aws[\w-]*:[^\s"',]+/gi

/** Minimum characters of a header value that counts as secret; shorter values may be ordinary words. */
const MIN_SECRET_LENGTH = 8

/** What has the secrets: a channel, or what stands for one. */
type SecretHolder = Pick<Channel, 'keys' | 'headers' | 'proxy' | 'base_url'>

/** What is removed from texts that a channel's upstream has sent. */
interface Redaction {
  /** Finds the channel's secrets in all their spellings. */
  readonly secrets: TextFinder
  readonly addresses: readonly string[]
}

// A channel's patterns are made when its first error is redacted, because channels without errors do not need
// them.
const redactions = new WeakMap<SecretHolder, Redaction>()

/** Removes a channel's keys, secret headers, proxy credentials and address from an upstream's `text`. */
export function redact(text: string, channel: SecretHolder): string {
  let redaction = redactions.get(channel)
  if (!redaction) redactions.set(channel, (redaction = redactionOf(channel)))
  const { secrets, addresses } = redaction
  let result = replaceUnfolded(text, secrets, '[redacted]')
  for (const address of addresses) result = result.replaceAll(address, '[upstream]')
  return replaceUnfolded(result, (unfolded) => rangesIn(unfolded, KEY_PATTERN), '[redacted]')
}

function redactionOf({ keys, headers, proxy, base_url }: SecretHolder): Redaction {
  const secrets = new Set([
    ...keys.flatMap(secretsIn),
    ...[...headers.values()].filter((value) => value.length >= MIN_SECRET_LENGTH),
    ...(proxy === null ? [] : secretsOfProxy(proxy)),
  ])
  const { host, hostname } = new URL(base_url)
  return { secrets: secretFinder([...secrets].filter(Boolean)), addresses: [base_url, host, hostname] }
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
 * Matches a JSON string literal, the text between two string literals, or a string literal without an end.
 */
const PIECE = /"[^"\\]*(?:\\.[^"\\]*)*"|[^"]+|".*/gs

/**
 * Redacts an upstream's error in JSON. Only strings that contain the channel's keys or address are changed.
 * @param checked Returns a redacted string as it may be sent.
 */
export function redactFrame(
  bytes: Buffer,
  channel: SecretHolder,
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
