import type { Content } from './oracle.ts'

type Json = Record<string, any> // oxlint-disable-line typescript/no-explicit-any -- JSON of a provider

/** Reads the content of a whole response with JSON.parse only, without code of the product. */
export function geminiReplySays(json: string): Content {
  const value = JSON.parse(json) as Json | Json[]
  return chunksSay(Array.isArray(value) ? value : [value])
}

/** Reads the content of a stream, without arguments that arrive in pieces. */
export function geminiStreamSays(stream: string): Content {
  const chunks = stream
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice('data: '.length)) as Json)
  return chunksSay(chunks)
}

function chunksSay(chunks: readonly Json[]): Content {
  const parts = chunks.flatMap((chunk) => {
    const candidate = ((chunk['candidates'] ?? []) as Json[]).find(({ index = 0 }) => index === 0)
    return (candidate?.['content']?.parts ?? []) as Json[]
  })
  const words = chunks.map(({ candidates: [{ finishReason, finishMessage }] = [{}], promptFeedback }) =>
    finishReason === 'STOP' ? '' : (finishMessage ?? promptFeedback?.blockReasonMessage ?? ''),
  )
  const textIn = (isThought: boolean): string =>
    parts
      .filter(({ thought }) => (thought === true) === isThought)
      .map(({ text, inlineData: data }) =>
        data ? `![image](data:${data.mimeType};base64,${data.data})` : (text ?? ''),
      )
      .join('')
  const usage = chunks.findLast((chunk) => chunk['usageMetadata']?.promptTokenCount)?.['usageMetadata'] as
    | Json
    | undefined
  return {
    text: textIn(false) + words.join(''),
    thoughts: textIn(true),
    calls: parts
      .filter(({ functionCall }) => functionCall?.name)
      .map(({ functionCall: { name, args = {} } }) => ({ name, input: args as unknown })),
    usage: usage && usageOf(usage),
  }
}

function usageOf(usage: Json): NonNullable<Content['usage']> {
  const of = (name: string): number => (usage[name] ?? 0) as number
  return {
    prompt: of('promptTokenCount') + of('toolUsePromptTokenCount'),
    cached: of('cachedContentTokenCount'),
    output: of('candidatesTokenCount') + of('thoughtsTokenCount'),
  }
}
