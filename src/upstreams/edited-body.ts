import type { ChannelEdits } from '../domain/channel.ts'
import { edit } from '../protocols/json/json-edit.ts'
import { scanObject } from '../protocols/json/json-scan.ts'
import { withSystemPrompt } from '../protocols/system-prompt.ts'
import type { DialectRequest } from './provider.ts'

/** Endpoints that take fewer members than those that generate. */
const COUNTING = /\/(?:count_tokens|input_tokens)$/
const COMPACTING = /\/compact$/

/**
 * The body with the changes that its channel states, as one splice. Requests that count tokens get the prompt
 * alone, those that compact a conversation nothing.
 */
export function editedBody({ body, protocol, path }: DialectRequest, edits: ChannelEdits): Buffer {
  if (COMPACTING.test(path)) return body
  const scan = scanObject(body)
  const replace = new Map<string, string>()
  const prompt = edits.systemPrompt === '' ? undefined : withSystemPrompt(scan, protocol, edits.systemPrompt)
  if (prompt) replace.set(...prompt)
  if (COUNTING.test(path)) return edit(body, scan, { remove: [], replace })
  for (const [name, text] of edits.defaults) if (!scan.has(name)) replace.set(name, text)
  for (const [name, text] of edits.set) replace.set(name, text)
  return edit(body, scan, { remove: edits.remove, replace })
}
