import { FEATURE_TOKENS, MESSAGE_TOKENS } from '../prompt-tokens.ts'
import type { ScannedObject } from '../json/scanned-object.ts'

/**
 * Bounds the tokens of a checked request without a tokenizer: no token is less than a byte. A model reads the
 * query with each document, and some providers count it as often, with the markup around each pair.
 */
export function promptBound(scan: ScannedObject): number {
  const documents = scan.span('documents')?.count ?? 0
  const query = scan.span('query')
  const queryBytes = query ? query.end - query.start : 0
  return scan.bytes.length + documents * (queryBytes + MESSAGE_TOKENS) + FEATURE_TOKENS
}
