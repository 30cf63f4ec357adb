import { scanObject } from '../json/json-scan.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import { IMAGE_TOKENS, MESSAGE_TOKENS, type PromptText } from '../prompt-tokens.ts'

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

/** Collects the texts of a valid request; images count as a typical number of tokens. */
export function promptText(bytes: Buffer): PromptText {
  const scan = scanObject(bytes)
  const input = scan.span('input')
  if (!input) return { text: '', extraTokens: 0 }
  const nodes = scan.kindOf(input.node) === 'array' ? scan.elements(input.node) : [input.node]
  const images = nodes.filter((node) => isImage(scan, node))
  const texts = nodes.flatMap((node) => {
    const text = scan.kindOf(node) === 'object' ? scan.memberOf(node, 'text') : node
    return text !== undefined && scan.kindOf(text) === 'string' ? [scan.parse(text) as string] : []
  })
  return { text: texts.join('\n'), extraTokens: images.length * IMAGE_TOKENS.typical(0) }
}

function isImage(scan: ScannedObject, node: number): boolean {
  return scan.kindOf(node) === 'object' && scan.memberOf(node, 'image_url') !== undefined
}
