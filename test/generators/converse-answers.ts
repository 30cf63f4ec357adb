import type { Answer } from './answers.ts'
import { jsonText, Raw } from './json.ts'

const STOPS = {
  end: 'end_turn',
  length: 'max_tokens',
  tools: 'tool_use',
  refusal: 'content_filtered',
} as const

/** A stream of Bedrock's Converse API with this response, framed as server-sent events. */
export function converseFrames({ segments, stop, usage }: Answer): string[] {
  const frames = [frame('messageStart', { role: 'assistant' })]
  for (const [contentBlockIndex, segment] of segments.entries()) {
    const delta = (given: object): number =>
      frames.push(
        frame('contentBlockDelta', { contentBlockIndex, delta: given, p: 'abcdef'.slice(frames.length % 7) }),
      )
    switch (segment.kind) {
      case 'text':
        for (const text of segment.pieces) delta({ text })
        break
      case 'thinking':
        for (const text of segment.pieces) delta({ reasoningContent: { text } })
        if (segment.signature !== undefined) delta({ reasoningContent: { signature: segment.signature } })
        break
      case 'tool':
        frames.push(
          frame('contentBlockStart', {
            contentBlockIndex,
            start: { toolUse: { toolUseId: segment.id, name: segment.name } },
          }),
        )
        for (const input of segment.pieces) delta({ toolUse: { input } })
    }
    frames.push(frame('contentBlockStop', { contentBlockIndex }))
  }
  return [
    ...frames,
    frame('messageStop', { stopReason: STOPS[stop] }),
    frame('metadata', { usage: countsOf(usage), metrics: { latencyMs: 1 } }),
  ]
}

/** The same answer whole. */
export function converseReply({ segments, stop, usage }: Answer): string {
  const content = segments.map((segment) => {
    const text = segment.pieces.join('')
    switch (segment.kind) {
      case 'text':
        return { text }
      case 'thinking': {
        const signature = segment.signature
        return {
          reasoningContent: { reasoningText: { text, ...(signature !== undefined && { signature }) } },
        }
      }
      case 'tool':
        return { toolUse: { toolUseId: segment.id, name: segment.name, input: new Raw(text) } }
    }
  })
  const message = { role: 'assistant', content }
  return jsonText({ output: { message }, stopReason: STOPS[stop], usage: countsOf(usage), metrics: {} })
}

function countsOf({ input, read, written, output }: Answer['usage']): object {
  return {
    inputTokens: input,
    outputTokens: output,
    totalTokens: input + read + written + output,
    cacheReadInputTokens: read,
    cacheWriteInputTokens: written,
  }
}

function frame(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}
