import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import { FEATURE_TOKENS, MESSAGE_TOKENS, type PromptText } from '../../prompt-tokens.ts'

/** Bounds the tokens of a checked request without a tokenizer: no token is less than a byte. */
export function completionPromptBound(scan: ScannedObject): number {
  const prompt = scan.span('prompt')
  const suffix = scan.span('suffix')
  const promptBytes = prompt ? prompt.end - prompt.start + prompt.count * MESSAGE_TOKENS : 0
  const hasSuffix = suffix !== undefined && scan.kindOf(suffix.node) === 'string'
  return promptBytes + MESSAGE_TOKENS + (hasSuffix ? suffix.end - suffix.start + FEATURE_TOKENS : 0)
}

/** Collects prompt and suffix of a valid request; token ids count as what they are. */
export function completionPromptText(scan: ScannedObject): PromptText {
  const texts: string[] = []
  let extraTokens = 0
  const add = (node: Node): void => {
    const kind = scan.kindOf(node)
    if (kind === 'string') texts.push(scan.parse(node) as string)
    else if (kind === 'number') extraTokens += 1
    else if (kind === 'array') for (const element of scan.elements(node)) add(element)
  }
  for (const field of ['prompt', 'suffix']) {
    const member = scan.span(field)
    if (member) add(member.node)
  }
  return { text: texts.join('\n'), extraTokens }
}
