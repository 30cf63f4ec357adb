import type { Channel } from '../domain/channel.ts'
import { parseRecord } from '../protocols/json/record.ts'

/** Keys by their prefixes, bearer credentials, tokens of Google, signed tokens; ARNs, which name accounts. */
const KEY_PATTERN =
  /\b(?:sk|pk|rk|gsk|xai|key)-[A-Za-z0-9_*-]{6,}|\bBearer\s+[^\s"',]+|\bya29\.[\w.-]+|\beyJ[\w-]+\.[\w-]+\.[\w-]+|\barn:aws[\w-]*:[^\s"',]+/gi

/** Length from which a header's value counts as secret: shorter ones may be ordinary words. */
const MIN_SECRET_LENGTH = 8

/** Removes the channel's keys, secret header values and address from an upstream's `text`. */
export function redact(text: string, channel: Channel): string {
  let result = text
  const headers = [...channel.headers.values()].filter((value) => value.length >= MIN_SECRET_LENGTH)
  for (const secret of [...channel.keys.flatMap(secretsIn), ...headers]) {
    if (secret !== '') result = result.replaceAll(secret, '[redacted]')
  }
  const { host, hostname } = new URL(channel.baseUrl)
  for (const address of [channel.baseUrl, host, hostname]) result = result.replaceAll(address, '[upstream]')
  return result.replace(KEY_PATTERN, '[redacted]')
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
