/** Transfer coding of RFC 9112, 7, with optional parameters. */
const CODING = /^[\w!#$%&'*+.^`|~-]+(?:[ \t]*;[^,"]*)?$/

/** Reason why a request's Transfer-Encoding cannot be served. */
export type TransferCodingError = 'malformed' | 'unknown transfer coding'

/**
 * Finds the error of a Transfer-Encoding; undefined for `chunked`, the only one that is served (RFC 9112,
 * 6.1). `lines` is the number of headers that it came in: a repeated one could be read differently by
 * proxies.
 */
export function transferCodingError(value: string, lines: number): TransferCodingError | undefined {
  const known = value.toLowerCase()
  if (lines === 1 && known === 'chunked') return undefined
  const codings = known.split(',').map((coding) => coding.trim())
  const chunkedAt = codings.indexOf('chunked')
  const isWellFormed =
    lines === 1 &&
    codings.every((coding) => CODING.test(coding)) &&
    (chunkedAt === -1 || chunkedAt === codings.length - 1)
  return isWellFormed ? 'unknown transfer coding' : 'malformed'
}
