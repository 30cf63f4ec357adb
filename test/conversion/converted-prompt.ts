import { scanObject } from '@sluice/wire/json/json-scan'
import type { ConversionProtocol } from '@sluice/wire/protocols'

/** The member of a request that contains the history, and those that are before it in the prompt. */
const PROMPTS: Readonly<Record<ConversionProtocol, { history: string; front: readonly string[] }>> = {
  chat: { history: 'messages', front: ['tools'] },
  messages: { history: 'messages', front: ['tools', 'system'] },
  responses: { history: 'input', front: ['tools', 'instructions'] },
  gemini: { history: 'contents', front: ['tools', 'systemInstruction'] },
  converse: { history: 'messages', front: ['toolConfig', 'system'] },
}

/** The prompt of a request: what comes before the history, and the history without its closing brackets. */
export interface ConvertedPrompt {
  readonly front: readonly string[]
  readonly history: string
}

/** The prompt of a conversion as `requestAs` returns it; undefined if the request was refused. */
export function convertedPrompt(to: ConversionProtocol, converted: string): ConvertedPrompt | undefined {
  const outer = scanObject(Buffer.from(converted))
  const request = outer.span('request')
  if (!request) return undefined
  const scan = scanObject(Buffer.from(outer.textOf(request.node)))
  const textOf = (member: string): string => {
    const found = scan.span(member)
    return found ? scan.textOf(found.node) : ''
  }
  const { history, front } = PROMPTS[to]
  return { front: front.map(textOf), history: textOf(history).replace(/[\]}]+$/, '') }
}

/** Cache marks as the encoders write them: members of a part, or blocks after it. */
const MARKS =
  /,"cache_control":\{"type":"ephemeral"(?:,"ttl":"\w+")?\}|,"prompt_cache_breakpoint":\{"mode":"explicit"(?:,"ttl":"\w+")?\}|,\{"cachePoint":\{"type":"default"(?:,"ttl":"\w+")?\}\}/g

/** A prompt without its cache marks. */
export function withoutMarks({ front, history }: ConvertedPrompt): ConvertedPrompt {
  // The brackets that `convertedPrompt` left out may belong to the last mark.
  const plain = (text: string): string => text.replaceAll(MARKS, '')
  return { front: front.map(plain), history: plain(`${history}}}`).replace(/[\]}]+$/, '') }
}
