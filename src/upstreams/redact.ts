import type { Channel } from '../domain/records/channel.ts'
import { parseRecord } from '../protocols/json/record.ts'
import { parseProxy } from './parse-proxy.ts'

/** Keys by their prefixes, bearer credentials, tokens of Google, signed tokens; ARNs, which name accounts. */
const KEY_PATTERN =
  /\b(?:sk|pk|rk|gsk|xai|key)-[A-Za-z0-9_*-]{6,}|\bBearer\s+[^\s"',]+|\bya29\.[\w.-]+|\beyJ[\w-]+\.[\w-]+\.[\w-]+|\barn:aws[\w-]*:[^\s"',]+/gi

/** Length from which a header's value counts as secret: shorter ones may be ordinary words. */
const MIN_SECRET_LENGTH = 8

/** Parts of a channel that are removed from texts of its upstream. */
interface Redaction {
  /** Matches all forms of its secrets; undefined = it has none. */
  readonly secrets: RegExp | undefined
  readonly addresses: readonly string[]
}

// Made at a channel's first error: other calls need none.
const redactions = new WeakMap<Channel, Redaction>()

/** Removes a channel's keys, secret headers, proxy credentials and address from an upstream's `text`. */
export function redact(text: string, channel: Channel): string {
  let redaction = redactions.get(channel)
  if (!redaction) redactions.set(channel, (redaction = redactionOf(channel)))
  const { secrets, addresses } = redaction
  let result = secrets ? text.replaceAll(secrets, '[redacted]') : text
  for (const address of addresses) result = result.replaceAll(address, '[upstream]')
  return result.replace(KEY_PATTERN, '[redacted]')
}

function redactionOf({ keys, headers, proxy, base_url }: Channel): Redaction {
  const secrets = new Set([
    ...keys.flatMap(secretsIn),
    ...[...headers.values()].filter((value) => value.length >= MIN_SECRET_LENGTH),
    ...(proxy === null ? [] : secretsOfProxy(proxy)),
  ])
  // A longer one may begin with a shorter one.
  const longestFirst = [...secrets].filter(Boolean).sort((one, other) => other.length - one.length)
  const { host, hostname } = new URL(base_url)
  return {
    secrets: longestFirst.length > 0 ? new RegExp(longestFirst.map(secretForms).join('|'), 'g') : undefined,
    addresses: [base_url, host, hostname],
  }
}

function secretsOfProxy(proxy: string): string[] {
  const credentials = parseProxy(proxy)?.credentials
  return credentials ? [`${credentials.user}:${credentials.password}`, credentials.password] : []
}

// A key of several parts is as secret in parts.
function secretsIn(key: string): string[] {
  const parts = key.startsWith('{') ? linesOfPrivateKey(key) : key.split(':')
  return [key, ...parts.filter((part) => part !== key && part.length >= MIN_SECRET_LENGTH)]
}

// The key of a service account is JSON with a private key in PEM.
function linesOfPrivateKey(key: string): string[] {
  const text = parseRecord(key)?.['private_key']
  return typeof text === 'string' ? text.split('\n').filter((line) => !line.startsWith('-----')) : []
}

/** Bytes from which encoded forms are looked for: those of shorter secrets may be parts of ordinary words. */
const MIN_BYTES = 8
/** Bytes of one pattern; the encoded forms of a longer secret are found in pieces. */
const MAX_BYTES = 256

/**
 * Source of a regular expression that matches a secret as it is, percent-encoded, in hexadecimal, and within
 * base64 or base64url of any text around it (`Basic` credentials), in whatever case and alignment.
 */
function secretForms(secret: string): string {
  const bytes = Buffer.from(secret)
  const forms = [literal(secret)]
  if (bytes.length < MIN_BYTES) return forms[0] ?? ''
  for (let start = 0; start < bytes.length; start += MAX_BYTES) {
    // A short rest is a part of the piece before it.
    const piece = bytes.subarray(Math.max(0, Math.min(start, bytes.length - MIN_BYTES)), start + MAX_BYTES)
    forms.push(percentEncoded(piece), hexadecimal(piece), ...[0, 1, 2].map((before) => base64(piece, before)))
  }
  return forms.join('|')
}

function literal(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`)
}

/** Bytes of which each may be encoded, once or twice. */
function percentEncoded(bytes: Buffer): string {
  return Array.from(bytes, (byte) => {
    const encoded = `%(?:25)?${hexadecimal(Buffer.of(byte))}`
    return byte > 0x20 && byte < 0x7f ? `(?:${literal(String.fromCharCode(byte))}|${encoded})` : encoded
  }).join('')
}

function hexadecimal(bytes: Buffer): string {
  return bytes.toString('hex').replaceAll(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`)
}

/** Base64 that these bytes alone determine, `before` bytes after the start of a group of three. */
function base64(bytes: Buffer, before: number): string {
  const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
  const first = Math.ceil((before * 8) / 6)
  const last = Math.floor(((before + bytes.length) * 8) / 6)
  // The characters at both ends have bits of the secret, too.
  const start = before === 0 ? '' : ANY
  const end = (before + bytes.length) % 3 === 0 ? '' : `${ANY}${PADDING}`
  const inner = text.slice(first, last).replaceAll(/[+/]/g, (sign) => SIGNS[sign] ?? '')
  return `${start}${inner}${end}`
}

const SIGNS: Readonly<Record<string, string>> = { '+': '(?:[+-]|%2[Bb])', '/': '(?:[/_]|%2[Ff])' }
const ANY = '(?:[\\w+/-]|%2[BbFf])?'
const PADDING = '(?:=|%3[Dd]){0,2}'
