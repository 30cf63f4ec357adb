import { scanObject } from '../json/json-scan.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { FEATURE_TOKENS, IMAGE_TOKENS, MESSAGE_TOKENS, type PromptText } from '../prompt-tokens.ts'
import { EMBEDDINGS_LIMITS } from './limits.ts'

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

/** Collects the texts of a valid request; token ids count as what they are. */
export function promptText(bytes: Buffer): PromptText {
  const scan = scanObject(bytes, EMBEDDINGS_LIMITS)
  const input = scan.span('input')
  if (!input) return { text: '', extraTokens: 0 }
  const texts: string[] = []
  let extraTokens = 0
  const add = (node: Node): void => {
    const kind = scan.kindOf(node)
    if (kind === 'string') texts.push(scan.parse(node) as string)
    else if (kind === 'number') extraTokens += 1
    else if (kind === 'array') extraTokens += scan.elements(node).length
    else texts.push(scan.textOf(node))
  }
  if (scan.kindOf(input.node) === 'array') for (const element of scan.elements(input.node)) add(element)
  else add(input.node)
  return { text: texts.join('\n'), extraTokens }
}
