import { scanObject } from '../json/json-scan.ts'
import { FEATURE_TOKENS, MESSAGE_TOKENS, type PromptText } from '../prompt-tokens.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { textNode } from './document.ts'

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

/** Collects the query and the documents of a valid request, each once. */
export function promptText(bytes: Buffer): PromptText {
  const scan = scanObject(bytes)
  const documents = scan.span('documents')
  const nodes = documents ? scan.elements(documents.node).map((document) => textNode(scan, document)) : []
  const pieces = [scan.span('query')?.node, ...nodes]
    .filter((node): node is Node => node !== undefined)
    .map((node) => scan.parse(node) as string)
  return { text: pieces.join('\n'), extraTokens: 0 }
}
