/**
 * Headers of a request that are read; `x-forwarded-*` stands for all such headers that are not listed. Others
 * count towards the limits, but are never decoded.
 */
const HEADER_NAMES = [
  'accept',
  'accept-encoding',
  'accept-language',
  'access-control-request-headers',
  'access-control-request-method',
  'anthropic-beta',
  'anthropic-version',
  'authorization',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'expect',
  'forwarded',
  'gateway-key',
  'gateway-user',
  'host',
  'last-event-id',
  'new-api-user',
  'origin',
  'sec-fetch-site',
  'traceparent',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'vendor-version',
  'via',
  'x-alt-api-key',
  'x-api-key',
  'x-forwarded-*',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-gateway-via',
  'x-goog-api-key',
  'x-real-ip',
] as const

/** Name of a header that is read. */
export type HeaderName = (typeof HEADER_NAMES)[number]

/** Headers of a request by lower-case name; values in Latin-1, without surrounding blanks. */
export type Headers = { readonly [Name in HeaderName]?: string | undefined }

/** Headers with one value: the first counts. Repeated values of other headers are joined. */
const SINGLE_VALUED = new Set<HeaderName>(['authorization', 'content-length', 'content-type', 'host'])

/** Names and their bytes, by length. */
const BY_LENGTH: (readonly { readonly name: HeaderName; readonly bytes: Buffer }[] | undefined)[] = []
for (const name of HEADER_NAMES)
  BY_LENGTH[name.length] = [...(BY_LENGTH[name.length] ?? []), { name, bytes: Buffer.from(name) }]

const FORWARDED_PREFIX = Buffer.from('x-forwarded-')

/** Finds the header name at these positions, in any case; undefined for a header that is not read. */
export function headerNameAt(bytes: Uint8Array, start: number, end: number): HeaderName | undefined {
  const candidates = BY_LENGTH[end - start]
  if (candidates)
    for (const { name, bytes: letters } of candidates) if (matchesAt(bytes, start, letters)) return name
  return end - start > FORWARDED_PREFIX.length && matchesAt(bytes, start, FORWARDED_PREFIX)
    ? 'x-forwarded-*'
    : undefined
}

/** Merges the value of a repeated header into the value `before` it. */
export function mergedValue(name: HeaderName, before: string, value: string): string {
  if (SINGLE_VALUED.has(name)) return before
  return `${before}${name === 'cookie' ? '; ' : ', '}${value}`
}

// Ignores case by setting bit 0x20, which turns only a capital letter into another character of a name.
function matchesAt(bytes: Uint8Array, start: number, letters: Buffer): boolean {
  for (let i = 0; i < letters.length; i++) {
    const letter = letters[i] as number
    const actual = bytes[start + i] as number
    if (actual !== letter && (actual | 0x20) !== letter) return false
  }
  return true
}
