import type { Member, Node, ScannedObject } from '../json/scanned-object.ts'
import { textNode } from './document.ts'

/** Tokens of a document with the query for which Cohere counts a chunk, and chunks of a search unit. */
const CHUNK_TOKENS = 500
const UNIT_CHUNKS = 100

/** Bounds the search units of a checked request without a tokenizer: no token is less than a byte. */
export function searchUnitBound(scan: ScannedObject): number {
  const { query, documents } = partsOf(scan)
  return unitsOf(documents.map((document) => query + lengthOf(scan, document)))
}

/**
 * Search units of a checked request whose query and documents have `tokens` in all: each text has its share
 * of them by its bytes, so that a request of any number of documents takes one count.
 */
export function searchUnits(scan: ScannedObject, tokens: number): number {
  const { query, documents } = partsOf(scan)
  const lengths = documents.map((document) => lengthOf(scan, textNode(scan, document) ?? document))
  const bytes = lengths.reduce((sum, length) => sum + length, query)
  return unitsOf(lengths.map((length) => ((query + length) * tokens) / bytes))
}

function partsOf(scan: ScannedObject): { readonly query: number; readonly documents: readonly Node[] } {
  return {
    query: lengthOf(scan, (scan.span('query') as Member).node),
    documents: scan.elements((scan.span('documents') as Member).node),
  }
}

// Without the quotes of a text.
function lengthOf(scan: ScannedObject, node: Node): number {
  return scan.endOf(node) - scan.startOf(node) - 2
}

function unitsOf(pairs: readonly number[]): number {
  const chunks = pairs.reduce((sum, tokens) => sum + Math.max(1, Math.ceil(tokens / CHUNK_TOKENS)), 0)
  return Math.ceil(chunks / UNIT_CHUNKS)
}
