import type { Answer, Segment } from './answers.ts'
import { jsonText, Raw } from './json.ts'

const STOPS = { end: 'STOP', length: 'MAX_TOKENS', tools: 'STOP', refusal: 'SAFETY' } as const

/**
 * The response as a stream of a Gemini upstream, chunk by chunk: complete calls, the usage so far in each
 * chunk, and the finish reason in the last one. With `quirks.noise`, the finish reason is in a separate chunk
 * with an empty text.
 */
export function geminiFrames({ segments, stop, usage, quirks }: Answer): string[] {
  const chunk = (parts: readonly object[], finishReason?: string): string =>
    `data: ${jsonText({
      candidates: [{ content: { parts, role: 'model' }, finishReason, index: 0 }],
      usageMetadata: metadata(usage, finishReason !== undefined),
      modelVersion: 'gemini-3-pro-preview',
      responseId: 'answer-1',
    })}${quirks.lineEnd.repeat(2)}`
  const parts = segments.flatMap(partsOf)
  const last = parts.at(-1)
  if (quirks.noise || !last)
    return [...parts.map((part) => chunk([part])), chunk([{ text: '' }], STOPS[stop])]
  return [...parts.slice(0, -1).map((part) => chunk([part])), chunk([last], STOPS[stop])]
}

/** The answer as a whole one. */
export function geminiReply({ segments, stop, usage }: Answer): string {
  return jsonText({
    candidates: [
      { content: { parts: segments.flatMap(partsOf), role: 'model' }, finishReason: STOPS[stop], index: 0 },
    ],
    usageMetadata: metadata(usage, true),
    modelVersion: 'gemini-3-pro-preview',
    responseId: 'answer-1',
  })
}

function partsOf(segment: Segment): object[] {
  switch (segment.kind) {
    case 'text':
      return segment.pieces.map((text) => ({ text }))
    case 'thinking':
      return segment.pieces.map((text) => ({ text, thought: true }))
    case 'tool': {
      const { id, name, pieces } = segment
      const args = pieces.join('').trim()
      const isEmpty = args === '{}'
      return [
        {
          functionCall: { id, name, ...(!isEmpty && { args: new Raw(args) }) },
          thoughtSignature: name.length % 2 === 0 ? Buffer.from(name).toString('base64') : undefined,
        },
      ]
    }
  }
}

function metadata({ input, read, output }: Answer['usage'], isLast: boolean): object {
  const prompt = input + read
  const thoughts = Math.floor(output / 3)
  const candidates = isLast ? output - thoughts : 0
  return {
    promptTokenCount: prompt,
    ...(candidates > 0 && { candidatesTokenCount: candidates }),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    ...(read > 0 && { cachedContentTokenCount: read }),
    totalTokenCount: prompt + candidates + thoughts,
  }
}
