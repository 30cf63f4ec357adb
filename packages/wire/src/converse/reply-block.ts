import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'
import type { ReplyPart } from '../reply.ts'

/** Type of a call of the provider's own tool. The client must not run it. */
const SERVER_CALL = 'server_tool_use'

/**
 * Decodes a block of a reply, or of a stream after its deltas were applied. `input` is the text of a call's
 * input. Blocks that other dialects cannot express become opaque parts; none is refused.
 */
export function readBlock(block: Fields, input: string): ReplyPart[] {
  if (typeof block['text'] === 'string') return textPart(block['text'])
  const call = asRecord(block['toolUse'])
  if (call && !isServerCall(call))
    return [{ kind: 'tool-call', id: textOf(call['toolUseId']), name: textOf(call['name']), input }]
  const reasoning = asRecord(asRecord(block['reasoningContent'])?.['reasoningText'])
  if (reasoning) return thinkingParts(textOf(reasoning['text']), textOf(reasoning['signature']))
  const cited = asRecord(block['citationsContent'])?.['content']
  // Other dialects cannot express these sources; only the cited text is kept.
  if (Array.isArray(cited))
    return textPart(cited.map((part: unknown) => textOf(asRecord(part)?.['text'])).join(''))
  return Object.keys(block).length > 0 ? [{ kind: 'opaque', protocol: 'converse', value: block }] : []
}

/** Reports whether a call is one of the provider's own tools. */
export function isServerCall(call: Fields): boolean {
  return call['type'] === SERVER_CALL
}

/** A thought with its signature, if it has one; an empty list if it has neither text nor signature. */
function thinkingParts(text: string, signature: string): ReplyPart[] {
  if (signature !== '') return [{ kind: 'thinking', text, proof: { protocol: 'converse', value: signature } }]
  return text === '' ? [] : [{ kind: 'thinking', text }]
}

function textPart(text: string): ReplyPart[] {
  return text === '' ? [] : [{ kind: 'text', text }]
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
