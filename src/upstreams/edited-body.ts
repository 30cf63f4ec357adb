import type { ChannelEdits } from '../domain/records/channel.ts'
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
  { system_prompt, override }: ChannelEdits,
): Buffer {
  const isCount = COUNTING.test(path)
  if (!isCount && !EDITED.test(path)) return body
  const scan = scanObject(body)
  const replace = new Map<string, string>()
  const prompt = system_prompt === '' ? undefined : withSystemPrompt(scan, protocol, system_prompt)
  if (prompt) replace.set(...prompt)
  if (isCount) return edit(body, scan, { remove: [], replace })
  for (const [name, text] of override.default) if (!scan.has(name)) replace.set(name, text)
  for (const [name, text] of override.set) replace.set(name, text)
  return edit(body, scan, { remove: override.remove, replace })
}
