/**
 * The headers of a request that anything here reads; `x-forwarded-*` is any of these that is not named
 * besides. Others are weighed, counted and passed over: what nobody asks for is never made into a text.
 */
const HEADER_NAMES = [
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
  'gateway-user',
  'host',
  'origin',
  'sec-fetch-site',
  'traceparent',
  'transfer-encoding',
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

/** A header that is read. */
export type HeaderName = (typeof HEADER_NAMES)[number]

/**
 * The headers of a request, by their names in small letters; one byte a character, without the blanks around
 * it.
 */
export type Headers = { readonly [Name in HeaderName]?: string | undefined }

/** Those that say one thing: where one is there twice, the first counts. Of others the values are joined. */
const SINGLE_VALUED = new Set<HeaderName>(['authorization', 'content-length', 'content-type', 'host'])

/** Of each length, the names and their bytes. */
const BY_LENGTH: (readonly { readonly name: HeaderName; readonly bytes: Buffer }[] | undefined)[] = []
for (const name of HEADER_NAMES)
  BY_LENGTH[name.length] = [...(BY_LENGTH[name.length] ?? []), { name, bytes: Buffer.from(name) }]

const FORWARDED_PREFIX = Buffer.from('x-forwarded-')

/** The name that stands there, in letters of any size; undefined where nobody reads it. */
export function headerNameAt(bytes: Uint8Array, start: number, end: number): HeaderName | undefined {
  const candidates = BY_LENGTH[end - start]
  if (candidates)
    for (const { name, bytes: letters } of candidates) if (matchesAt(bytes, start, letters)) return name
  return end - start > FORWARDED_PREFIX.length && matchesAt(bytes, start, FORWARDED_PREFIX) ? 'x-forwarded-*' : undefined
}

/** What a header says whose value was `before`, and that comes once more. */
export function mergedValue(name: HeaderName, before: string, value: string): string {
  if (SINGLE_VALUED.has(name)) return before
  return `${before}${name === 'cookie' ? '; ' : ', '}${value}`
}

// Of what may stand in a name, only a capital letter becomes another of these by that bit.
function matchesAt(bytes: Uint8Array, start: number, letters: Buffer): boolean {
  for (let i = 0; i < letters.length; i++) {
    const letter = letters[i] as number
    const actual = bytes[start + i] as number
    if (actual !== letter && (actual | 0x20) !== letter) return false
  }
  return true
}
