/** A coding of RFC 9112, 7, with parameters that none of those in use has. */
const CODING = /^[\w!#$%&'*+.^`|~-]+(?:[ \t]*;[^,"]*)?$/

/** Why a request's Transfer-Encoding cannot be served. */
export type TransferCodingError = 'malformed' | 'unknown transfer coding'

/**
 * What is wrong with a Transfer-Encoding; undefined for `chunked`, the only one that is served (RFC 9112,
 * 6.1). `lines` is the number of headers that it came in: one that is repeated is read in two ways by parties
 * on the way.
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
