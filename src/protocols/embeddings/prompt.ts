import type { ScannedObject } from '../json/scanned-object.ts'
import { FEATURE_TOKENS, IMAGE_TOKENS, MESSAGE_TOKENS } from '../prompt-tokens.ts'

/**
 * Bounds the tokens of a checked request without a tokenizer: no token is less than a byte, each input has
 * a few around it, and a task or an instruction may be added.
 */
export function promptBound(scan: ScannedObject): number {
  const input = scan.span('input')
  if (!input) return 0
  const { node, start, end } = input
  let bound = end - start
  if (scan.kindOf(node) !== 'array') return bound + MESSAGE_TOKENS
  const model = String(scan.value('model'))
  for (const element of scan.elements(node)) {
    const kind = scan.kindOf(element)
    if (kind === 'object') bound += IMAGE_TOKENS.max(0, model) + FEATURE_TOKENS
    else if (kind !== 'number') bound += MESSAGE_TOKENS
  }
  return bound
}
