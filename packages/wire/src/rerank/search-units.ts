import type { Member, Node, ScannedObject } from '../json/scanned-object.ts'
import { textNode } from './document.ts'

/** Cohere's rules: tokens of a document with the query per chunk, and chunks per search unit. */
const CHUNK_TOKENS = 500
const UNIT_CHUNKS = 100

/**
 * Upper bound on the search units of a checked request, without a tokenizer: a token has at least one byte.
 */
export function searchUnitBound(scan: ScannedObject): number {
  const { query, documents } = partsOf(scan)
  return unitsOf(documents.map((document) => query + lengthOf(scan, document)))
}

/**
 * Search units of a checked request whose query and documents have `tokens` in total. The tokens are divided
 * among the texts by their bytes, so that one count is enough for any number of documents.
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

// Excludes the quotes of a text.
function lengthOf(scan: ScannedObject, node: Node): number {
  return scan.endOf(node) - scan.startOf(node) - 2
}

function unitsOf(pairs: readonly number[]): number {
  const chunks = pairs.reduce((sum, tokens) => sum + Math.max(1, Math.ceil(tokens / CHUNK_TOKENS)), 0)
  return Math.ceil(chunks / UNIT_CHUNKS)
}
