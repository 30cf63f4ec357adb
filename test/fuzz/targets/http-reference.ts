/** An HTTP message, parsed from the whole text by its grammar alone. */
export interface ReferenceMessage {
  /** The first line. */
  readonly start: string
  /** Names in lower case, values trimmed. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
  /** Offset of the end of the message. */
  readonly end: number
}

/** Extent of the body where no header states one. A message with 'never a body' ignores its headers. */
export type UnframedBody = 'no body' | 'until closed' | 'never a body'

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const HEADER = new RegExp(`^(${TOKEN}):[ \\t]*([\\t\\x20-\\x7e\\x80-\\xff]*?)[ \\t]*$`)
const CHUNK = /^([0-9a-fA-F]+)[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?\r\n/
const LENGTH = /^\d+$/

/**
 * Parses a message of RFC 9112 that can be framed in one way only: one length, or chunks, never both, no bare
 * CR or LF, no folded lines. `unframed` tells a request from a response, which may have several codings.
 * Returns undefined for an invalid or incomplete message. One byte is one character.
 */
export function referenceMessage(
  text: string,
  from: number,
  unframed: UnframedBody,
): ReferenceMessage | undefined {
  const begin = from + (/^[\r\n]*/.exec(text.slice(from))?.[0].length ?? 0)
  const headEnd = text.indexOf('\r\n\r\n', begin)
  if (headEnd < 0) return undefined
  const [start = '', ...lines] = text.slice(begin, headEnd).split('\r\n')
  const headers: [string, string][] = []
  for (const line of lines) {
    const [, name, value] = HEADER.exec(line) ?? []
    if (name === undefined || value === undefined) return undefined
    headers.push([name.toLowerCase(), value])
  }
  const bodyAt = headEnd + 4
  const lengths = valuesOf(headers, 'content-length')
  // An empty list states no coding (RFC 9110, 5.6.1). The reader of requests refuses it.
  const codings = valuesOf(headers, 'transfer-encoding').filter(
    (value) => value !== '' || unframed !== 'until closed',
  )
  const whole = (body: string, end: number): ReferenceMessage => ({ start, headers, body, end })
  if (unframed === 'never a body') return whole('', bodyAt)
  if (codings.length > 0 && unframed === 'until closed') {
    // RFC 9112, 6.3: a response whose last coding is not chunked ends with the connection.
    if (lengths.length > 0) return undefined
    if (!/(?:^|,)[ \t]*chunked$/i.test(codings.join())) return whole(text.slice(bodyAt), text.length)
    const chunked = chunksAt(text, bodyAt)
    return chunked && whole(chunked.body, chunked.end)
  }
  if (codings.length > 0) {
    if (codings.length > 1 || codings[0]?.toLowerCase() !== 'chunked' || lengths.length > 0) return undefined
    const chunked = chunksAt(text, bodyAt)
    return chunked && whole(chunked.body, chunked.end)
  }
  if (lengths.length > 0) {
    const [length = ''] = lengths
    if (lengths.length > 1 || !LENGTH.test(length)) return undefined
    const end = bodyAt + Number(length)
    return end <= text.length ? whole(text.slice(bodyAt, end), end) : undefined
  }
  return unframed === 'no body' ? whole('', bodyAt) : whole(text.slice(bodyAt), text.length)
}

function valuesOf(headers: readonly (readonly [string, string])[], wanted: string): string[] {
  return headers.filter(([name]) => name === wanted).map(([, value]) => value)
}

function chunksAt(text: string, from: number): { readonly body: string; readonly end: number } | undefined {
  let body = ''
  let at = from
  for (;;) {
    const [line, size] = CHUNK.exec(text.slice(at)) ?? []
    if (line === undefined || size === undefined) return undefined
    at += line.length
    const length = Number.parseInt(size, 16)
    if (length === 0) return trailersEnd(text, at, body)
    if (text.slice(at + length, at + length + 2) !== '\r\n') return undefined
    body += text.slice(at, at + length)
    at += length + 2
  }
}

function trailersEnd(text: string, from: number, body: string): { body: string; end: number } | undefined {
  let at = from
  for (;;) {
    const end = text.indexOf('\r\n', at)
    if (end < 0) return undefined
    if (end === at) return { body, end: end + 2 }
    if (!HEADER.test(text.slice(at, end))) return undefined
    at = end + 2
  }
}
