import type { ScannedObject } from '../json/scanned-object.ts'
import { IMAGE_TOKENS, MESSAGE_TOKENS } from '../prompt-tokens.ts'

/** Bounds the tokens of a checked request without a tokenizer: a byte each, and the most for each image. */
export function promptBound(scan: ScannedObject): number {
  const input = scan.span('input')
  if (!input) return 0
  const { node, start, end, count } = input
  const isList = scan.kindOf(node) === 'array'
  const elements = isList ? scan.elements(node) : []
  const images = elements.filter((element) => isImage(scan, element)).length
  return end - start + (count + 1) * MESSAGE_TOKENS + images * IMAGE_TOKENS.max(0, '')
}

function isImage(scan: ScannedObject, node: number): boolean {
  return scan.kindOf(node) === 'object' && scan.memberOf(node, 'image_url') !== undefined
}
