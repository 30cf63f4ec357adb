import type { SignedPart, SigningWire } from './signing-model.ts'

type Fields = Readonly<Record<string, unknown>>

function list(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? (value as Fields[]) : []
}

function written(part: SignedPart): Fields {
  if ('summary' in part) return { text: part.summary, thought: true }
  if ('end' in part) return { text: '', thoughtSignature: part.signature }
  if ('text' in part) return { text: part.text }
  if (!('call' in part)) throw new Error('Gemini does not sign thoughts.')
  return {
    functionCall: { id: part.call, name: 'look', args: { at: 'Bern' } },
    ...(part.signature !== undefined && { thoughtSignature: part.signature }),
  }
}

function read(part: Fields): SignedPart {
  const signature = part['thoughtSignature'] as string | undefined
  const call = part['functionCall'] as Fields | undefined
  if (call) return { call: String(call['id']), ...(signature !== undefined && { signature }) }
  const text = String(part['text'])
  if (part['thought'] === true) return { summary: text }
  return signature !== undefined && text === '' ? { end: '', signature } : { text }
}

function response(parts: readonly SignedPart[], id: string, finishReason?: string): string {
  return JSON.stringify({
    candidates: [{ content: { role: 'model', parts: parts.map(written) }, finishReason, index: 0 }],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
    modelVersion: 'upstream',
    responseId: id,
  })
}

/** Gemini: the first call of a step and the end of an answer are signed; thoughts are not sent back. */
export const geminiWire: SigningWire = {
  history: 'contents',
  steps: [
    ['summarise', 'say', 'sign-call'],
    ['summarise', 'sign-call', 'call'],
    ['summarise', 'say', 'sign-end'],
  ],
  partsIn: ({ contents }) =>
    list(contents).flatMap(({ role, parts }) => (role === 'model' ? list(parts).map(read) : [])),
  lacks: ({ generationConfig }) => {
    const { thinkingConfig } = (generationConfig ?? {}) as { thinkingConfig?: Fields }
    return thinkingConfig?.['includeThoughts'] === true ? undefined : 'the request does not ask to think'
  },
  whole: (parts, id) => response(parts, id, 'STOP'),
  frames: (parts, id) =>
    parts.map((part, at) => {
      const reason = at === parts.length - 1 ? 'STOP' : undefined
      return `data: ${response([part], id, reason)}\r\n\r\n`
    }),
}
