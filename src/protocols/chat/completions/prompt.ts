import type { ScannedObject } from '../../json/scanned-object.ts'
import { FEATURE_TOKENS, MESSAGE_TOKENS } from '../../prompt-tokens.ts'

/** Bounds the tokens of a checked request without a tokenizer: no token is less than a byte. */
export function completionPromptBound(scan: ScannedObject): number {
  const prompt = scan.span('prompt')
  const suffix = scan.span('suffix')
  const promptBytes = prompt ? prompt.end - prompt.start + prompt.count * MESSAGE_TOKENS : 0
  const hasSuffix = suffix !== undefined && scan.kindOf(suffix.node) === 'string'
  return promptBytes + MESSAGE_TOKENS + (hasSuffix ? suffix.end - suffix.start + FEATURE_TOKENS : 0)
}
