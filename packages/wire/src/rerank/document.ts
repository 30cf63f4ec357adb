import type { Node, ScannedObject } from '../json/scanned-object.ts'

/** Finds the text of a document: the document itself or its `text`; undefined if it has none. */
export function textNode(scan: ScannedObject, document: Node): Node | undefined {
  const kind = scan.kindOf(document)
  if (kind === 'string') return document
  const text = kind === 'object' ? scan.memberOf(document, 'text') : undefined
  return text !== undefined && scan.kindOf(text) === 'string' ? text : undefined
}

/** Returns the bytes of one JSON value. */
export function written(scan: ScannedObject, node: Node): Buffer {
  return scan.bytes.subarray(scan.startOf(node), scan.endOf(node))
}
