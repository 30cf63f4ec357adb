import type { Content } from './answer.ts'

interface Part {
  readonly text?: string
  readonly thought?: boolean
  readonly functionCall?: { readonly id?: string; readonly name?: string; readonly args?: object }
}

interface GeminiReply {
  readonly candidates?: readonly { readonly content?: { readonly parts?: readonly Part[] } }[]
  readonly error?: { readonly message?: string }
}

/** Adds to the content what an event of a stream, or a whole response, in the Gemini protocol contains. */
export function readGemini(content: Content, reply: unknown): Content {
  const { candidates, error } = reply as GeminiReply
  if (error) return { ...content, error: error.message ?? '' }
  return (candidates?.[0]?.content?.parts ?? []).reduce(withPart, content)
}

function withPart(content: Content, { text = '', thought, functionCall: called }: Part): Content {
  if (called) {
    const { id = `call_${content.calls.length}`, name = '', args = {} } = called
    return { ...content, calls: [...content.calls, { id, name, input: JSON.stringify(args) }] }
  }
  return thought === true
    ? { ...content, thinking: content.thinking + text }
    : { ...content, text: content.text + text }
}
