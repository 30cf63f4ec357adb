import type { Channel } from '../domain/records/channel.ts'
import { parseRecord } from '../protocols/json/record.ts'
import { parseProxy } from './http1/proxy.ts'
import { secretForms } from './secret-forms.ts'

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
