import { refuse } from '../field-check.ts'
import { edit } from '../json/json-edit.ts'
import { scanObject } from '../json/json-scan.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import { promptText } from '../prompt-text.ts'
import type { PromptText } from '../prompt-tokens.ts'
import { resourceName } from './method-path.ts'
import { GEMINI_PROMPT } from './prompt-levels.ts'
import { readGeminiRequest } from './native/request.ts'
import { topMember, topValue } from './spelling.ts'

/** Member with a whole request; only this form can contain a system instruction and tools. */
const REQUEST = 'generateContentRequest'

/** Checks a request to count tokens, which contains contents or a whole request. Throws `invalid_request`. */
export function checkCounted(scan: ScannedObject): void {
  readGeminiRequest(countedPart(scan), '')
}

/** Returns the text to count. Throws `invalid_request` if content is stored at the provider. */
export function countableText(scan: ScannedObject): PromptText {
  const part = countedPart(scan)
  if (topValue(part, 'cachedContent') !== undefined)
    refuse('cachedContent', `all of the conversation in 'contents'`, 'content that only its provider has')
  return promptText(part, GEMINI_PROMPT, '')
}

/**
 * Renders the request for an upstream that has another name for the model: a whole request inside repeats the
 * name.
 */
export function countedBody(scan: ScannedObject, upstreamModel: string): Buffer {
  const member = topMember(scan, REQUEST)
  if (!member) return scan.bytes
  const inner = countedPart(scan)
  const named = inner.value('model')
  if (typeof named !== 'string' || resourceName(named) === resourceName(upstreamModel)) return scan.bytes
  const model = JSON.stringify(resourceName(upstreamModel))
  const text = edit(inner.bytes, inner, { remove: [], replace: new Map([['model', model]]) }).toString()
  return edit(scan.bytes, scan, { remove: [], replace: new Map([[member.key, text]]) })
}

function countedPart(scan: ScannedObject): ScannedObject {
  const member = topMember(scan, REQUEST)
  if (!member) return scan
  if (scan.kindOf(member.node) !== 'object') refuse(member.key, 'an object', 'something else')
  return scanObject(Buffer.from(scan.textOf(member.node)))
}
