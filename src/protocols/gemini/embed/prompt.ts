import { scanObject } from '../../json/json-scan.ts'
import type { PromptText } from '../../prompt-tokens.ts'
import { contentText } from '../prompt.ts'
import { contentNodes } from './request.ts'

/** Text of the contents of a valid request, and an allowance for what is not text. */
export function embeddedText(bytes: Buffer): PromptText {
  const scan = scanObject(bytes)
  const read = contentNodes(scan).map((content) => contentText(scan, content))
  return {
    text: read.flatMap(({ pieces }) => pieces).join('\n'),
    extraTokens: read.reduce((sum, { mediaTokens }) => sum + mediaTokens, 0),
  }
}
