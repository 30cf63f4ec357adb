import type { Node, ScannedObject } from '../json/scanned-object.ts'
import type { FoundMedia, PromptLevels } from '../prompt-levels.ts'
import { IMAGE_TOKENS } from '../prompt-tokens.ts'

/** The prompt of a request for a moderation. */
export const MODERATIONS_PROMPT = {
  levels: {
    request: { notPrompt: { model: 'service' }, read: { input: 'part' } },
    part: { notPrompt: { type: 'kind' }, read: { text: 'text', image_url: 'media' }, media: findMedia },
    media: { notPrompt: {}, read: { url: 'text' } },
  },
  turns: 'input',
} as const satisfies PromptLevels

/** Finds the picture of a part. */
function findMedia(scan: ScannedObject, part: Node): FoundMedia | undefined {
  const held = scan.memberOf(part, 'image_url')
  if (held === undefined) return undefined
  const url = scan.kindOf(held) === 'object' ? scan.memberOf(held, 'url') : held
  const data = url !== undefined && scan.kindOf(url) === 'string' ? url : undefined
  return { tokens: IMAGE_TOKENS, data }
}
