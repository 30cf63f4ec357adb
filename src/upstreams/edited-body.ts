import type { ChannelEdits } from '../domain/channel.ts'
import { edit } from '../protocols/json/json-edit.ts'
import { scanObject } from '../protocols/json/json-scan.ts'
import { withSystemPrompt } from '../protocols/system-prompt.ts'
import type { DialectRequest } from './provider.ts'

/** Endpoints whose requests are edited. */
const EDITED =
  /^\/(?:chat\/completions|completions|messages|responses|converse|converse-stream|rerank)$|:(?:generateContent|streamGenerateContent)\b/
/** Endpoints that count what those take, with fewer members. */
const COUNTING = /\/(?:count_tokens|input_tokens)$/

/**
 * The body with the changes that its channel states, as one splice. Requests that count tokens get the prompt
 * alone, those of other endpoints nothing.
 */
export function editedBody(
  body: Buffer,
  { protocol, path }: Pick<DialectRequest, 'protocol' | 'path'>,
  edits: ChannelEdits,
): Buffer {
  const isCount = COUNTING.test(path)
  if (!isCount && !EDITED.test(path)) return body
  const scan = scanObject(body)
  const replace = new Map<string, string>()
  const prompt = edits.systemPrompt === '' ? undefined : withSystemPrompt(scan, protocol, edits.systemPrompt)
  if (prompt) replace.set(...prompt)
  if (isCount) return edit(body, scan, { remove: [], replace })
  for (const [name, text] of edits.defaults) if (!scan.has(name)) replace.set(name, text)
  for (const [name, text] of edits.set) replace.set(name, text)
  return edit(body, scan, { remove: edits.remove, replace })
}
